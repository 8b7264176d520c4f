// An engine's JSON answer to a chat or text completion in the normal form of SPEC §4.

import { type JsonObject, parseJsonObject, readCount, readObject, readText } from '../core/json-read.ts';
import { err, ok, type Result } from '../core/result.ts';
import { toCompletionUsage } from '../core/usage.ts';
import { countUtf8Bytes } from '../core/utf8.ts';
import { buildCompletionHead, type CompletionShape, type OutChoice, readTellingReason } from './completion-shape.ts';
import { type AnswerContext, type JsonAnswer, type Progress, type UpstreamFault } from './endpoint.ts';
import { createUsageMeter, type Metered } from './usage-meter.ts';
import { readAbort, readEmbeddedError } from './upstream-error.ts';

/** A whole answer as it was read: its choices in normal form, and what it used. */
export type ReadAnswer = {
  readonly choices: readonly OutChoice[];
  readonly metered: Metered;
  /** The engine's own object. */
  readonly source: JsonObject;
  /** All but the id. */
  readonly progress: Omit<Progress, 'completionId'>;
};

/** Reads an engine's JSON answer; an error object, no choices or no JSON is a fault. */
export function readCompletionAnswer(
  text: string,
  context: AnswerContext,
  shape: CompletionShape,
): Result<ReadAnswer, UpstreamFault> {
  const source = parseJsonObject(text);
  if (source === null) return err(garbage(text));
  const fault = readEmbeddedError(source, shape.promptParam) ?? readAbort(source);
  if (fault !== null) return err(fault);
  const list: unknown = source['choices'];
  if (!Array.isArray(list) || list.length === 0) return err(garbage(text));
  const choices = list.map((item: unknown, at) => {
    const choice = readObject(item);
    return shape.toChoice(choice, readCount(choice['index']) ?? at, context);
  });
  const meter = createUsageMeter(context);
  meter.read(source, true);
  const metered = meter.total(estimateOutput(list));
  const progress = {
    usage: metered.usage,
    usageSource: metered.source,
    finishReason: readTellingReason(choices.map((choice) => choice.finish_reason)),
    servedModel: readText(source['model']) || null,
    started: true,
  };
  return ok({ choices, metered, source, progress });
}

/** Normalises an engine's JSON answer. */
export function toCompletionAnswer(
  text: string,
  context: AnswerContext,
  shape: CompletionShape,
): Result<JsonAnswer, UpstreamFault> {
  const read = readCompletionAnswer(text, context, shape);
  if (!read.ok) return read;
  const { choices, metered, source, progress } = read.value;
  const { usage, reported } = metered;
  const head = buildCompletionHead(context, shape, shape.answerObject, source);
  const body = { ...head, choices, usage: toCompletionUsage(usage, reported, metered.source !== 'engine') };
  return ok({ body: JSON.stringify(body), progress: { ...progress, completionId: head.id } });
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
