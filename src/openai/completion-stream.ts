// Translates an engine's stream of a chat or text completion into the client's: normal form, constant identity, usage
// once before the end, an error before [DONE] when it breaks (SPEC §7). Synchronous; moving bytes and waiting is the
// relay's work.

import { type GatewayError } from '../core/errors.ts';
import { type JsonObject, parseJsonObject, readCount, readObject, readText } from '../core/json-read.ts';
import { toOpenAIError } from '../core/openai-error.ts';
import { toCompletionUsage } from '../core/usage.ts';
import {
  buildCompletionHead,
  type ChoiceState,
  type CompletionHead,
  type CompletionShape,
  createChoiceState,
  readTellingReason,
} from './completion-shape.ts';
import { type AnswerContext, type Progress, type StreamTranslator, type Translated } from './endpoint.ts';
import { createDeltaTemplates, type Rendering } from './delta-templates.ts';
import { createUsageMeter } from './usage-meter.ts';
import { readAbort, readEmbeddedError } from './upstream-error.ts';

const DONE = 'data: [DONE]\n\n';

/** Creates the translator of one stream. */
export function createCompletionTranslator(context: AnswerContext, shape: CompletionShape): StreamTranslator {
  const { request } = context;
  const { policy } = request.resolved.model;
  const choices = new Map<number, ChoiceState>();
  const meter = createUsageMeter(context);
  const templates = createDeltaTemplates();
  const showUsage = policy.usage_in_stream === 'always' || request.usageRequested;
  let head: CompletionHead | null = null;
  /** The members every chunk begins with, as text: they are the same each time. */
  let headText = '';
  let servedModel: string | null = null;

  function fixHead(chunk: JsonObject): void {
    if (head !== null) return;
    head = buildCompletionHead(context, shape, shape.chunkObject, chunk);
    headText = JSON.stringify(head).slice(0, -1);
    servedModel = readText(chunk['model']) || null;
  }

  function writeChunk(rest: JsonObject): string {
    fixHead({});
    return `data: ${headText},${JSON.stringify(rest).slice(1)}\n\n`;
  }

  function deltas(): number {
    return [...choices.values()].reduce((sum, choice) => sum + choice.deltas, 0);
  }

  /** Output tokens where the engine counts none; a choice that ended without a word took a token all the same. */
  function estimateOutput(): number {
    return Math.max(deltas(), isFinished(choices, request.choices) ? 1 : 0);
  }

  function translateChunk(chunk: JsonObject): string {
    fixHead(chunk);
    let text = '';
    const list: unknown = chunk['choices'];
    for (const item of Array.isArray(list) ? list : []) {
      const choice = readObject(item);
      const index = readCount(choice['index']) ?? 0;
      const state = choices.get(index) ?? createChoiceState();
      choices.set(index, state);
      for (const out of shape.toChunks(choice, index, state, context)) {
        text += writeChunk({ choices: [out] });
      }
    }
    meter.read(chunk, isFinished(choices, request.choices));
    return text;
  }

  function writeUsage(): string {
    if (!showUsage) return '';
    const { usage, source, reported } = meter.total(estimateOutput());
    return writeChunk({ choices: [], usage: toCompletionUsage(usage, reported, source === 'estimated') });
  }

  /** Translates a sample of a delta in the middle of its choice, leaving no trace. */
  function render(sample: JsonObject): Rendering | null {
    const list: unknown = sample['choices'];
    const choice = readObject(Array.isArray(list) ? list[0] : null);
    const index = typeof choice['index'] === 'number' ? choice['index'] : 0;
    const state = choices.get(index);
    if (state === undefined || !state.roleSent || state.finishReason !== null) return null;
    const trial = { ...state };
    const chunks = shape.toChunks(choice, index, trial, context);
    if (trial.finishReason !== null || trial.deltas !== state.deltas + 1) return null;
    const text = chunks.map((out) => writeChunk({ choices: [out] })).join('');
    return { text, index, isText: trial.textLength > state.textLength };
  }

  return {
    pushAlike(text, from) {
      const match = templates.match(text, from);
      const state = match === null ? undefined : choices.get(match.template.index);
      if (match === null || state === undefined || state.finishReason !== null) return null;
      const { template, literal, counts, end } = match;
      state.deltas += 1;
      if (template.isText) state.textLength += readLength(literal);
      if (template.counts !== null && counts !== null) meter.note(template.index, template.counts.name, counts);
      return { text: template.parts.join(literal), end };
    },
    push(event): Translated {
      const data = event.data.trim();
      if (data === '[DONE]') return { type: 'done' };
      // llama-server begins several choices with a null.
      if (data === '' || data === 'null') return { type: 'output', text: '' };
      const chunk = parseJsonObject(data);
      if (chunk === null) return toGarbage(data);
      const fault = readEmbeddedError(chunk, shape.promptParam) ?? readAbort(chunk);
      if (fault !== null) return { type: 'fault', ...fault };
      const text = translateChunk(chunk);
      templates.learn(data, chunk, render);
      return { type: 'output', text };
    },
    isComplete: () => isFinished(choices, request.choices),
    finish() {
      let text = '';
      for (const [index, state] of choices) {
        if (state.finishReason !== null) continue;
        state.finishReason = state.toolCalls > 0 ? 'tool_calls' : 'stop';
        text += writeChunk({ choices: [shape.toLastChunk(index, state, state.finishReason)] });
      }
      return text + writeUsage() + DONE;
    },
    fail(error: GatewayError) {
      const known = meter.total(0).source.startsWith('engine');
      return (known ? writeUsage() : '') + `data: ${JSON.stringify(toOpenAIError(error).body)}\n\n` + DONE;
    },
    progress(): Progress {
      const { usage, source } = meter.total(estimateOutput());
      return {
        usage,
        usageSource: source,
        finishReason: readTellingReason([...choices.values()].map((choice) => choice.finishReason)),
        completionId: head?.id ?? null,
        servedModel,
        started: deltas() > 0,
      };
    },
  };
}

/** Characters of a string as it is spelled in JSON. */
function readLength(literal: string): number {
  return literal.includes('\\') ? readText(JSON.parse(`"${literal}"`)).length : literal.length;
}

/** Whether every choice that was asked for has come and ended. */
function isFinished(choices: ReadonlyMap<number, ChoiceState>, wanted: number): boolean {
  return choices.size >= wanted && [...choices.values()].every((choice) => choice.finishReason !== null);
}

function toGarbage(data: string): Translated {
  const detail = `an event of ${data.length} characters that is no JSON object`;
  return { type: 'fault', error: { kind: 'upstream', failure: 'upstream_error' }, detail };
}
