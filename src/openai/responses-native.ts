// Translates an engine's own /v1/responses stream, or its whole response, into the client's (SPEC §8): what it says goes
// through the same state machine as chat does, so ids, numbers and the end are the gateway's and no defect of an engine's
// own events reaches the client (WIRE §4d).

import { type GatewayError } from '../core/errors.ts';
import { isObject, type JsonObject, parseJsonObject, readCount, readObject, readText } from '../core/json-read.ts';
import { err, ok, type Result } from '../core/result.ts';
import { toGarbageFault } from './completion-reader.ts';
import {
  type AnswerContext,
  type FinishReason,
  type JsonAnswer,
  type Progress,
  type StreamTranslator,
  type Translated,
  type UpstreamFault,
} from './endpoint.ts';
import { ENGINE_QUIRKS } from './engine-quirks.ts';
import { createItemFollower } from './native-items.ts';
import { createResponseMachine } from './response-machine.ts';
import { readLastWords } from './responses-stream.ts';
import { readEmbeddedError } from './upstream-error.ts';
import { createUsageMeter } from './usage-meter.ts';

/** Events that carry the response as it stands. */
const OPENING = new Set(['response.created', 'response.in_progress', 'response.queued']);
const TERMINAL = new Set(['response.completed', 'response.incomplete', 'response.failed', 'response.cancelled']);
const NOTHING: Translated = { type: 'output', text: '' };

/** Creates the translator of one stream of an engine's own events. */
export function createNativeToResponses(context: AnswerContext): StreamTranslator {
  const answer = createNativeAnswer(context);
  const last = readLastWords(context);
  return {
    pushAlike: () => null,
    push(event): Translated {
      const data = event.data.trim();
      if (data === '[DONE]') return { type: 'done', text: '' };
      if (data === '' || data === 'null') return NOTHING;
      const value = parseJsonObject(data);
      if (value === null) return { type: 'fault', ...toGarbageFault(data) };
      const type = readText(value['type']) || event.type;
      const fault = readFault(type, value);
      if (fault !== null) return { type: 'fault', ...fault };
      if (!TERMINAL.has(type)) return { type: 'output', text: answer.follow(type, value) };
      return { type: 'done', text: answer.end(value) };
    },
    // Only a terminal event completes a response: some engines leave it out when they give up.
    isComplete: () => false,
    finish: () => answer.complete() + last,
    fail: (error: GatewayError) => answer.fail(error) + last,
    progress: answer.progress,
  };
}

/** An engine's whole response. */
export function toNativeAnswer(text: string, context: AnswerContext): Result<JsonAnswer, UpstreamFault> {
  const value = parseJsonObject(text);
  if (value === null) return err(toGarbageFault(text));
  const fault = readResponseFault(value);
  if (fault !== null) return err(fault);
  if (!Array.isArray(value['output'])) return err(toGarbageFault(text));
  const answer = createNativeAnswer(context);
  answer.end({ response: value });
  answer.complete();
  return ok({ body: JSON.stringify(answer.toObject()), progress: answer.progress() });
}

/** An engine's own response while it is told anew. */
type NativeAnswer = {
  readonly follow: (type: string, value: JsonObject) => string;
  /** Reads the terminal event: usage, how it ended, and what was not said before. */
  readonly end: (value: JsonObject) => string;
  readonly complete: () => string;
  readonly fail: (error: GatewayError) => string;
  readonly toObject: () => JsonObject;
  readonly progress: () => Progress;
};

function createNativeAnswer(context: AnswerContext): NativeAnswer {
  const { request, backend } = context;
  const machine = createResponseMachine(context);
  const items = createItemFollower(machine, request.effort !== 'none');
  const meter = createUsageMeter(context);
  let servedModel: string | null = null;
  let reason: FinishReason | null = null;
  let ended = false;

  function note(response: JsonObject): void {
    servedModel ??= readText(response['model']) || null;
    meter.read({ ...response, usage: toChatUsage(response['usage']), choices: [] }, ended);
  }

  function readReason(response: JsonObject): FinishReason {
    const details = readObject(response['incomplete_details']);
    if (response['status'] === 'incomplete')
      return details['reason'] === 'content_filter' ? 'content_filter' : 'length';
    const used = meter.total(0).usage.output_tokens;
    const limit = request.outputLimit ?? Infinity;
    if (ENGINE_QUIRKS[backend.engine].hidesLimit && used >= limit) return 'length';
    return items.calls() > 0 ? 'tool_calls' : 'stop';
  }

  const begin = (): string => {
    const own = request.resolved.model.policy.response_model === 'engine' ? servedModel : null;
    return machine.begin(own ?? request.resolved.requestedModel);
  };
  const total = (): ReturnType<typeof meter.total> => meter.total(Math.max(items.deltas(), ended ? 1 : 0));

  return {
    // Nothing is said before the engine has: until then another backend may still be asked.
    follow(type, value) {
      if (OPENING.has(type)) note(readObject(value['response']));
      return OPENING.has(type) || !items.concerns(type, value) ? '' : begin() + items.follow(type, value);
    },
    end(value) {
      const response = readObject(value['response']);
      ended = true;
      note({ timings: value['timings'], ...response });
      const output: unknown = response['output'];
      const text = begin() + items.settle(Array.isArray(output) ? output.filter(isObject) : []);
      reason = readReason(response);
      return text;
    },
    complete: () => begin() + machine.complete(reason, total()),
    fail: (error) => begin() + machine.fail(error, meter.total(0).source.startsWith('engine') ? total() : null),
    toObject: machine.toObject,
    progress() {
      const { usage, source } = total();
      return {
        usage,
        usageSource: source,
        finishReason: reason,
        completionId: machine.hasBegun() ? machine.id : null,
        servedModel,
        started: items.deltas() > 0,
      };
    },
  };
}

/** What an event says went wrong; OpenAI's `error` event has its members at the top, others nest them. */
function readFault(type: string, value: JsonObject): UpstreamFault | null {
  if (TERMINAL.has(type)) {
    const response = readObject(value['response']);
    const failed = type === 'response.failed' || type === 'response.cancelled';
    return readResponseFault(failed ? { ...response, status: response['status'] ?? 'failed' } : response);
  }
  if (type === 'error') return readEmbeddedError({ error: value['error'] ?? value }, 'input');
  return readEmbeddedError(value, 'input');
}

function readResponseFault(response: JsonObject): UpstreamFault | null {
  const fault = readEmbeddedError(response, 'input');
  if (fault !== null) return fault;
  const { status } = response;
  if (status !== 'failed' && status !== 'cancelled') return null;
  return { error: { kind: 'upstream', failure: 'upstream_error' }, detail: `a response that is ${status}` };
}

/** Usage of a response under the names of chat, which the meter reads. */
function toChatUsage(value: unknown): unknown {
  if (!isObject(value)) return null;
  return {
    prompt_tokens: readCount(value['input_tokens']),
    completion_tokens: readCount(value['output_tokens']),
    total_tokens: readCount(value['total_tokens']),
    prompt_tokens_details: value['input_tokens_details'],
    completion_tokens_details: value['output_tokens_details'],
  };
}
