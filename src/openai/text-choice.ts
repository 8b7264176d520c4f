// One choice of a text completion, streamed and whole, in normal form; log probabilities always in the legacy shape
// (SPEC §4), although llama.cpp sends those of chat.

import { isObject, type JsonObject, readText } from '../core/json-read.ts';
import { type ChoiceState, type CompletionShape, type OutChoice } from './completion-shape.ts';
import { type FinishReason } from './endpoint.ts';
import { toFinishReason } from './finish-reason.ts';

/** An engine's streamed choice: text, or its end; a chunk that says neither vanishes. */
export const toTextChunks: CompletionShape['toChunks'] = (choice, index, state) => {
  if (state.finishReason !== null) return [];
  const text = readText(choice['text']);
  const logprobs = toLegacyLogprobs(choice['logprobs'], state.textLength);
  const finishReason = toFinishReason(choice['finish_reason']);
  const first = !state.roleSent;
  state.roleSent = true;
  state.textLength += text.length;
  state.finishReason = finishReason;
  if (text !== '') state.deltas += 1;
  if (text === '' && logprobs === null && finishReason === null && !first) return [];
  return [{ index, text, logprobs, finish_reason: finishReason }];
};

/** The chunk that ends a choice whose engine never ended it. */
export function toLastTextChunk(index: number, _state: ChoiceState, finishReason: FinishReason): OutChoice {
  return { index, text: '', logprobs: null, finish_reason: finishReason };
}

/** An engine's whole choice. */
export const toTextChoice: CompletionShape['toChoice'] = (choice, index) => ({
  index,
  text: readText(choice['text']),
  logprobs: toLegacyLogprobs(choice['logprobs'], 0),
  finish_reason: toFinishReason(choice['finish_reason']) ?? 'stop',
});

/**
 * Log probabilities as {tokens, token_logprobs, top_logprobs, text_offset}; those of chat ({content: […]}) are turned.
 *
 * @param textOffset Characters of text before these tokens.
 */
function toLegacyLogprobs(value: unknown, textOffset: number): JsonObject | null {
  if (!isObject(value)) return null;
  const content = value['content'];
  if (!Array.isArray(content)) return 'tokens' in value ? value : null;
  const entries = content.filter(isObject);
  let offset = textOffset;
  return {
    tokens: entries.map((entry) => readText(entry['token'])),
    token_logprobs: entries.map((entry) => entry['logprob'] ?? null),
    top_logprobs: entries.map((entry) => toTopLogprobs(entry['top_logprobs'])),
    text_offset: entries.map((entry) => {
      const at = offset;
      offset += readText(entry['token']).length;
      return at;
    }),
  };
}

function toTopLogprobs(value: unknown): JsonObject {
  const entries = Array.isArray(value) ? value.filter(isObject) : [];
  return Object.fromEntries(entries.map((entry) => [readText(entry['token']), entry['logprob'] ?? null]));
}
