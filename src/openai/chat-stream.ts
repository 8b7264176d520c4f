// Translates an engine's chat stream into the client's: normal form, constant identity, usage once before the end, an
// error before [DONE] when it breaks (SPEC §7). Synchronous; moving bytes and waiting is the relay's work.

import { type GatewayError } from '../core/errors.ts';
import { isObject, type JsonObject, parseJsonObject, readObject, readText } from '../core/json-read.ts';
import { toOpenAIError } from '../core/openai-error.ts';
import { toCompletionUsage } from '../core/usage.ts';
import { type ChoiceState, createChoiceState, type ReasoningOut, toChoiceChunks } from './chat-delta.ts';
import { type AnswerContext, type Progress, type StreamTranslator, type Translated } from './endpoint.ts';
import { ENGINE_QUIRKS } from './engine-quirks.ts';
import { createUsageMeter } from './usage-meter.ts';
import { readEmbeddedError } from './upstream-error.ts';

const DONE = 'data: [DONE]\n\n';

/** Creates the translator of one chat stream. */
export function createChatTranslator(context: AnswerContext): StreamTranslator {
  const { request } = context;
  const { policy } = request.resolved.model;
  const choices = new Map<number, ChoiceState>();
  const meter = createUsageMeter(request.promptTokens, ENGINE_QUIRKS[context.backend.engine].countsPerTask);
  const reasoningOut: ReasoningOut = request.effort === 'none' ? 'nothing' : policy.reasoning_field;
  const showUsage = policy.usage_in_stream === 'always' || request.usageRequested;
  let head: ChunkHead | null = null;
  let engineId: string | null = null;
  let servedModel: string | null = null;

  function writeChunk(rest: JsonObject): string {
    head ??= buildHead(context, {});
    return `data: ${JSON.stringify({ ...head, ...rest })}\n\n`;
  }

  function deltas(): number {
    return [...choices.values()].reduce((sum, choice) => sum + choice.deltas, 0);
  }

  function translateChunk(chunk: JsonObject): string {
    head ??= buildHead(context, chunk);
    engineId ??= readText(chunk['id']) || null;
    servedModel ??= readText(chunk['model']) || null;
    let text = '';
    const list: unknown = chunk['choices'];
    for (const item of Array.isArray(list) ? list : []) {
      const choice = readObject(item);
      const index = typeof choice['index'] === 'number' ? choice['index'] : 0;
      const state = choices.get(index) ?? createChoiceState();
      choices.set(index, state);
      for (const out of toChoiceChunks(choice, index, state, reasoningOut, context.requestId)) {
        text += writeChunk({ choices: [out] });
      }
    }
    meter.read(chunk, isFinished(choices));
    return text;
  }

  function writeUsage(): string {
    if (!showUsage) return '';
    const { usage, source, reported } = meter.total(deltas());
    return writeChunk({ choices: [], usage: toCompletionUsage(usage, reported, source === 'estimated') });
  }

  return {
    push(event): Translated {
      const data = event.data.trim();
      if (data === '[DONE]') return { type: 'done' };
      const chunk = parseJsonObject(data);
      if (chunk === null) return toGarbage(data);
      const fault = readEmbeddedError(chunk, 'messages') ?? readAbort(chunk);
      if (fault !== null) return { type: 'fault', ...fault };
      return { type: 'output', text: translateChunk(chunk) };
    },
    isComplete: () => isFinished(choices),
    finish() {
      let text = '';
      for (const [index, state] of choices) {
        if (state.finishReason !== null) continue;
        state.finishReason = state.toolCalls > 0 ? 'tool_calls' : 'stop';
        text += writeChunk({ choices: [{ index, delta: {}, finish_reason: state.finishReason }] });
      }
      return text + writeUsage() + DONE;
    },
    fail(error: GatewayError) {
      const known = meter.total(0).source.startsWith('engine');
      return (known ? writeUsage() : '') + `data: ${JSON.stringify(toOpenAIError(error).body)}\n\n` + DONE;
    },
    progress(): Progress {
      const { usage, source } = meter.total(deltas());
      const reasons = [...choices.values()].map((choice) => choice.finishReason);
      return {
        usage,
        usageSource: source,
        finishReason: reasons.find((reason) => reason !== null && reason !== 'stop') ?? reasons[0] ?? null,
        completionId: head?.id ?? engineId,
        servedModel,
        started: deltas() > 0,
      };
    },
  };
}

type ChunkHead = {
  readonly id: string;
  readonly object: 'chat.completion.chunk';
  readonly created: number;
  readonly model: string;
  readonly system_fingerprint?: string;
};

/** What every chunk of a stream has in common, fixed by the first (some engines change `created`, some send no id). */
function buildHead(context: AnswerContext, chunk: JsonObject): ChunkHead {
  const { resolved } = context.request;
  const created = chunk['created'];
  const engineModel = readText(chunk['model']);
  const fingerprint = readText(chunk['system_fingerprint']);
  return {
    id: readText(chunk['id']) || toCompletionId(context.requestId),
    object: 'chat.completion.chunk',
    created: typeof created === 'number' && Number.isInteger(created) && created > 0 ? created : context.createdSeconds,
    model:
      resolved.model.policy.response_model === 'engine' && engineModel !== '' ? engineModel : resolved.requestedModel,
    ...(fingerprint === '' ? {} : { system_fingerprint: fingerprint }),
  };
}

/** The completion id where the engine has none. */
export function toCompletionId(requestId: string): string {
  return `chatcmpl-${requestId.replace(/^req_/, '')}`;
}

function isFinished(choices: ReadonlyMap<number, ChoiceState>): boolean {
  return choices.size > 0 && [...choices.values()].every((choice) => choice.finishReason !== null);
}

/** SGLang ends an aborted generation with the finish reason `abort`: not an answer, though it looks like one. */
function readAbort(chunk: JsonObject): { readonly error: GatewayError; readonly detail: string } | null {
  const list: unknown = chunk['choices'];
  const aborted = Array.isArray(list) && list.some((item) => isObject(item) && item['finish_reason'] === 'abort');
  return aborted ? { error: { kind: 'upstream', failure: 'upstream_error' }, detail: 'finish_reason abort' } : null;
}

function toGarbage(data: string): Translated {
  const detail = `an event of ${data.length} characters that is no JSON object`;
  return { type: 'fault', error: { kind: 'upstream', failure: 'upstream_error' }, detail };
}
