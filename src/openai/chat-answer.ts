// An engine's JSON chat completion in the normal form of SPEC §4: every documented field there, every engine-internal
// one gone.

import { type JsonObject, parseJsonObject, readObject, readText } from '../core/json-read.ts';
import { err, ok, type Result } from '../core/result.ts';
import { toCompletionUsage } from '../core/usage.ts';
import { mintCallId, toFinishReason, toReasoningFields } from './chat-delta.ts';
import { toCompletionId } from './chat-stream.ts';
import { type AnswerContext, type FinishReason, type JsonAnswer, type UpstreamFault } from './endpoint.ts';
import { countUtf8Bytes } from './estimate-prompt.ts';
import { createUsageMeter } from './usage-meter.ts';
import { readEmbeddedError } from './upstream-error.ts';

type Choice = {
  readonly index: number;
  readonly message: JsonObject;
  readonly logprobs: unknown;
  readonly finish_reason: FinishReason;
};

/** Normalises an engine's JSON answer; an error object, no choices or no JSON is a fault. */
export function toChatAnswer(text: string, context: AnswerContext): Result<JsonAnswer, UpstreamFault> {
  const answer = parseJsonObject(text);
  if (answer === null) return err(garbage(text));
  const fault = readEmbeddedError(answer, 'messages');
  if (fault !== null) return err(fault);
  const list: unknown = answer['choices'];
  if (!Array.isArray(list) || list.length === 0) return err(garbage(text));
  const choices = list.map((item: unknown, at) => toChoice(readObject(item), at, context));
  const meter = createUsageMeter(context.request.promptTokens, false);
  meter.read(answer, true);
  const { usage, source, reported } = meter.total(estimateOutput(choices));
  const { resolved } = context.request;
  const engineModel = readText(answer['model']);
  const created = answer['created'];
  const id = readText(answer['id']) || toCompletionId(context.requestId);
  const fingerprint = readText(answer['system_fingerprint']);
  const body = {
    id,
    object: 'chat.completion',
    created: typeof created === 'number' && Number.isInteger(created) && created > 0 ? created : context.createdSeconds,
    model:
      resolved.model.policy.response_model === 'engine' && engineModel !== '' ? engineModel : resolved.requestedModel,
    choices,
    usage: toCompletionUsage(usage, reported, source !== 'engine'),
    ...(fingerprint === '' ? {} : { system_fingerprint: fingerprint }),
  };
  const reasons = choices.map((choice) => choice.finish_reason);
  return ok({
    body: JSON.stringify(body),
    progress: {
      usage,
      usageSource: source,
      finishReason: reasons.find((reason) => reason !== 'stop') ?? 'stop',
      completionId: id,
      servedModel: engineModel === '' ? null : engineModel,
      started: true,
    },
  });
}

function toChoice(choice: JsonObject, at: number, context: AnswerContext): Choice {
  const { request } = context;
  const message = readObject(choice['message']);
  const index = typeof choice['index'] === 'number' ? choice['index'] : at;
  const reasoning = readText(message['reasoning']) || readText(message['reasoning_content']);
  const out = request.effort === 'none' ? 'nothing' : request.resolved.model.policy.reasoning_field;
  const calls = toToolCalls(message['tool_calls'], index, context.requestId);
  return {
    index,
    message: {
      role: 'assistant',
      content: typeof message['content'] === 'string' ? message['content'] : null,
      refusal: typeof message['refusal'] === 'string' ? message['refusal'] : null,
      ...(reasoning === '' ? {} : toReasoningFields(reasoning, out)),
      ...(calls.length === 0 ? {} : { tool_calls: calls }),
    },
    logprobs: choice['logprobs'] ?? null,
    finish_reason: toFinishReason(choice['finish_reason']) ?? (calls.length > 0 ? 'tool_calls' : 'stop'),
  };
}

function toToolCalls(value: unknown, choiceIndex: number, requestId: string): readonly JsonObject[] {
  if (!Array.isArray(value)) return [];
  return value.map((item: unknown, at) => {
    const call = readObject(item);
    const details = readObject(call['function']);
    const args = details['arguments'];
    return {
      id: readText(call['id']) || mintCallId(requestId, choiceIndex, at),
      type: 'function',
      function: {
        name: readText(details['name']),
        arguments: typeof args === 'string' ? args : JSON.stringify(args ?? {}),
      },
    };
  });
}

/** Output tokens of an answer whose engine counted none: four bytes of UTF-8 each, at least one. */
function estimateOutput(choices: readonly Choice[]): number {
  const texts = choices.map(({ message }) => JSON.stringify([message['content'], message['tool_calls']]));
  return Math.max(1, Math.ceil(texts.reduce((bytes, text) => bytes + countUtf8Bytes(text), 0) / 4));
}

function garbage(text: string): UpstreamFault {
  return {
    error: { kind: 'upstream', failure: 'upstream_error' },
    detail: `no completion in an answer of ${text.length} characters`,
  };
}
