// One choice of a text completion, streamed and whole, in normal form (SPEC §4): log probabilities in the legacy shape, no
// finish reason of tools.

import { readText } from '../core/json-read.ts';
import { type ChoiceState, type CompletionShape, type OutChoice } from './completion-shape.ts';
import { type FinishReason } from './endpoint.ts';
import { toFinishReason } from './finish-reason.ts';
import { toTextLogprobs } from './published-logprobs.ts';

/** An engine's streamed choice: text, or its end; a chunk that says neither vanishes. */
export const toTextChunks: CompletionShape['toChunks'] = (choice, index, state) => {
  if (state.finishReason !== null) return [];
  const text = readText(choice['text']);
  const logprobs = toTextLogprobs(choice['logprobs'], state.textLength);
  const finishReason = toTextFinishReason(choice['finish_reason']);
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
  logprobs: toTextLogprobs(choice['logprobs'], 0),
  finish_reason: toTextFinishReason(choice['finish_reason']) ?? 'stop',
});

/** A text completion calls no tools: OpenAI's set for it has no such reason. */
function toTextFinishReason(value: unknown): FinishReason | null {
  const reason = toFinishReason(value);
  return reason === 'tool_calls' ? 'stop' : reason;
}
