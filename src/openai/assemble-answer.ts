// Puts a stream that was translated into normal form together as the JSON answer it amounts to: for engines that are
// asked to stream although the client is not (SPEC §6). Chunks are the gateway's own, so nothing here is unknown.

import { isObject, type JsonObject, parseJsonObject, readObject, readText } from '../core/json-read.ts';
import { type CompletionShape } from './completion-shape.ts';
import { type AnswerContext } from './endpoint.ts';

/** One choice while it is put together. */
type Parts = {
  text: string;
  content: string | null;
  refusal: string | null;
  reasoning: string;
  readonly calls: Map<number, { id: string; name: string; arguments: string }>;
  readonly logprobs: Map<string, unknown[]>;
  finishReason: unknown;
};

/**
 * The JSON answer of a stream that went well.
 *
 * @param streamText All `data:` lines as the client would have got them, the usage chunk included.
 */
export function assembleAnswer(streamText: string, context: AnswerContext, shape: CompletionShape): string {
  const choices = new Map<number, Parts>();
  let head: JsonObject = {};
  let usage: unknown;
  for (const line of streamText.split('\n')) {
    const chunk = line.startsWith('data: ') ? parseJsonObject(line.slice('data: '.length)) : null;
    if (chunk === null) continue;
    const { choices: list, usage: counted, ...rest } = chunk;
    head = rest;
    usage = counted ?? usage;
    for (const choice of Array.isArray(list) ? list.filter(isObject) : []) {
      const index = Number(choice['index']);
      const parts = choices.get(index) ?? createParts();
      choices.set(index, parts);
      addChoice(parts, choice);
    }
  }
  const inOrder = [...choices].toSorted(([left], [right]) => left - right);
  const whole = inOrder.map(([index, parts]) => shape.toChoice(toRawChoice(parts), index, context));
  return JSON.stringify({ ...head, object: shape.answerObject, choices: whole, usage });
}

function createParts(): Parts {
  return {
    text: '',
    content: null,
    refusal: null,
    reasoning: '',
    calls: new Map(),
    logprobs: new Map(),
    finishReason: null,
  };
}

function addChoice(parts: Parts, choice: JsonObject): void {
  const delta = readObject(choice['delta']);
  parts.text += readText(choice['text']);
  if (typeof delta['content'] === 'string') parts.content = (parts.content ?? '') + delta['content'];
  if (typeof delta['refusal'] === 'string') parts.refusal = (parts.refusal ?? '') + delta['refusal'];
  parts.reasoning += readText(delta['reasoning']) || readText(delta['reasoning_content']);
  const calls: unknown = delta['tool_calls'];
  for (const call of Array.isArray(calls) ? calls.filter(isObject) : []) addCall(parts, call);
  for (const [name, values] of Object.entries(readObject(choice['logprobs']))) {
    if (!Array.isArray(values)) continue;
    const known = parts.logprobs.get(name) ?? [];
    known.push(...values);
    parts.logprobs.set(name, known);
  }
  parts.finishReason = choice['finish_reason'] ?? parts.finishReason;
}

function addCall(parts: Parts, call: JsonObject): void {
  const index = Number(call['index']);
  const details = readObject(call['function']);
  const known = parts.calls.get(index) ?? { id: '', name: '', arguments: '' };
  known.id ||= readText(call['id']);
  known.name ||= readText(details['name']);
  known.arguments += readText(details['arguments']);
  parts.calls.set(index, known);
}

/** The parts as an engine would have sent the whole choice. */
function toRawChoice(parts: Parts): JsonObject {
  const inOrder = [...parts.calls].toSorted(([left], [right]) => left - right);
  const calls = inOrder.map(([, { id, name, arguments: text }]) => ({
    id,
    type: 'function',
    function: { name, arguments: text },
  }));
  return {
    text: parts.text,
    message: {
      // A turn that only calls tools has no content; the empty text of its first delta is the role's.
      content: parts.content === '' && calls.length > 0 ? null : parts.content,
      refusal: parts.refusal,
      reasoning: parts.reasoning,
      ...(calls.length > 0 ? { tool_calls: calls } : {}),
    },
    logprobs: parts.logprobs.size === 0 ? null : Object.fromEntries(parts.logprobs),
    finish_reason: parts.finishReason,
  };
}
