// An engine's JSON answer to a chat or text completion in the normal form of SPEC §4.

import { type JsonObject, parseJsonObject, readCount, readObject, readText } from '../core/json-read.ts';
import { err, ok, type Result } from '../core/result.ts';
import { toCompletionUsage } from '../core/usage.ts';
import { countUtf8Bytes } from '../core/utf8.ts';
import { buildCompletionHead, type CompletionShape, readTellingReason } from './completion-shape.ts';
import { type AnswerContext, type JsonAnswer, type UpstreamFault } from './endpoint.ts';
import { createUsageMeter } from './usage-meter.ts';
import { readAbort, readEmbeddedError } from './upstream-error.ts';

/** Normalises an engine's JSON answer; an error object, no choices or no JSON is a fault. */
export function toCompletionAnswer(
  text: string,
  context: AnswerContext,
  shape: CompletionShape,
): Result<JsonAnswer, UpstreamFault> {
  const answer = parseJsonObject(text);
  if (answer === null) return err(garbage(text));
  const fault = readEmbeddedError(answer, shape.promptParam) ?? readAbort(answer);
  if (fault !== null) return err(fault);
  const list: unknown = answer['choices'];
  if (!Array.isArray(list) || list.length === 0) return err(garbage(text));
  const choices = list.map((item: unknown, at) => {
    const choice = readObject(item);
    return shape.toChoice(choice, readCount(choice['index']) ?? at, context);
  });
  const meter = createUsageMeter(context);
  meter.read(answer, true);
  const { usage, source, reported } = meter.total(estimateOutput(list));
  const head = buildCompletionHead(context, shape, shape.answerObject, answer);
  const body = { ...head, choices, usage: toCompletionUsage(usage, reported, source !== 'engine') };
  return ok({
    body: JSON.stringify(body),
    progress: {
      usage,
      usageSource: source,
      finishReason: readTellingReason(choices.map((choice) => choice.finish_reason)),
      completionId: head.id,
      servedModel: readText(answer['model']) || null,
      started: true,
    },
  });
}

/**
 * Output tokens of an answer whose engine counted none: four bytes of UTF-8 each, at least one. Made of the engine's own
 * choices: reasoning was generated whether it is shown or not.
 */
function estimateOutput(choices: readonly unknown[]): number {
  const bytes = choices.flatMap((item) => readTexts(readObject(item))).map(countUtf8Bytes);
  return Math.max(1, Math.ceil(bytes.reduce((sum, size) => sum + size, 0) / 4));
}

function readTexts(choice: JsonObject): readonly string[] {
  const message = readObject(choice['message']);
  const calls: unknown = message['tool_calls'];
  return [
    readText(choice['text']),
    readText(message['content']),
    readText(message['refusal']),
    readText(message['reasoning']) || readText(message['reasoning_content']),
    ...(Array.isArray(calls) ? calls : []).flatMap((call: unknown) => {
      const { name, arguments: args } = readObject(readObject(call)['function']);
      return [readText(name), typeof args === 'string' ? args : JSON.stringify(args ?? '')];
    }),
  ];
}

function garbage(text: string): UpstreamFault {
  return {
    error: { kind: 'upstream', failure: 'upstream_error' },
    detail: `no completion in an answer of ${text.length} characters`,
  };
}
