// A whole JSON answer as the stream it stands for: some engines answer a streamed request that way. The events are those
// of an engine, so that the translator brings them into normal form like any other.

import { isObject, type JsonObject, readObject } from '../core/json-read.ts';

/** An engine's answer as the text of a stream: one chunk with all of it, one with the usage, [DONE]. */
export function toStreamText(answer: JsonObject): string {
  const { choices, usage, ...head } = answer;
  const list = Array.isArray(choices) ? choices.filter(isObject) : [];
  const chunks: JsonObject[] = [{ ...head, choices: list.map(toStreamedChoice) }];
  if (isObject(usage)) chunks.push({ ...head, choices: [], usage });
  return [...chunks.map((chunk) => JSON.stringify(chunk)), '[DONE]'].map((data) => `data: ${data}\n\n`).join('');
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
