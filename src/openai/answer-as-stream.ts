// A whole JSON answer as the stream it stands for: some engines answer a streamed request that way. The events are those
// of an engine, so that the translator brings them into normal form like any other.

import { isObject, type JsonObject, readObject } from '../core/json-read.ts';
import { type SseEvent } from '../core/sse.ts';

/** The events of an engine's answer: one chunk with all of it, one with the usage, [DONE]. */
export function toStreamEvents(answer: JsonObject): readonly SseEvent[] {
  const { choices, usage, ...head } = answer;
  const list = Array.isArray(choices) ? choices.filter(isObject) : [];
  const chunks: JsonObject[] = [{ ...head, choices: list.map(toStreamedChoice) }];
  if (isObject(usage)) chunks.push({ ...head, choices: [], usage });
  const events = chunks.map((chunk) => ({ type: '', data: JSON.stringify(chunk) }));
  return [...events, { type: '', data: '[DONE]' }];
}

function toStreamedChoice(choice: JsonObject): JsonObject {
  const { message, ...rest } = choice;
  if (!isObject(message)) return rest;
  const calls = message['tool_calls'];
  const indexed = Array.isArray(calls)
    ? calls.map((call: unknown, index) => ({ index, ...readObject(call) }))
    : undefined;
  return { ...rest, delta: indexed === undefined ? message : { ...message, tool_calls: indexed } };
}
