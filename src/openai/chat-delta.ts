// One choice of a chat stream in the normal form of SPEC §7: role once and first, tool calls with index and id,
// reasoning before content, one finish reason of the closed set. Empty deltas vanish.

import { type JsonObject, readCount, readObject, readText } from '../core/json-read.ts';
import { type ChoiceState, type OutChoice } from './completion-shape.ts';
import { type AnswerContext, type FinishReason } from './endpoint.ts';
import { toFinishReason } from './finish-reason.ts';
import { toChatLogprobs } from './published-logprobs.ts';
import { spellNothingElse } from './shown-logprobs.ts';

/**
 * Translates an engine's choice into the chunks it becomes: none when it says nothing, two when reasoning and content
 * came in one delta. Updates `state`.
 */
export function toChatChunks(
  choice: JsonObject,
  index: number,
  state: ChoiceState,
  context: AnswerContext,
): readonly OutChoice[] {
  if (state.finishReason !== null) return [];
  const delta = readObject(choice['delta']);
  const reasoning = readText(delta['reasoning']) || readText(delta['reasoning_content']);
  const content = readText(delta['content']);
  const refusal = readText(delta['refusal']);
  const said = {
    ...readPart('content', content),
    ...readPart('refusal', refusal),
    ...readToolCalls(delta['tool_calls'], index, state, context.requestId),
  };
  const thought = reasoning === '' ? {} : toReasoningFields(reasoning, context);
  const finishReason = toFinishReason(choice['finish_reason']);
  if (reasoning !== '' || Object.keys(said).length > 0) state.deltas += 1;
  const parts = [thought, said].filter((part) => Object.keys(part).length > 0);
  // With effort none log probabilities of reasoning are not shown, nor those of tokens the engine said nothing for: they
  // may be what it swallowed, up to the delta in which the answer begins.
  const begun = state.textLength > 0;
  state.textLength += content.length + refusal.length;
  const isPlain = (): boolean =>
    begun ? Object.keys(said).length > 0 : spellNothingElse(choice['logprobs'], content || refusal);
  const shown = context.request.effort !== 'none' || (reasoning === '' && isPlain());
  const logprobs = shown ? toChatLogprobs(choice['logprobs']) : null;
  if (parts.length === 0 && (finishReason !== null || !state.roleSent || logprobs !== null)) parts.push({});
  state.finishReason = finishReason;
  return parts.map((part, at) => {
    const last = at === parts.length - 1;
    return {
      index,
      delta: withRole(part, state),
      ...(last && logprobs !== null ? { logprobs } : {}),
      finish_reason: last ? finishReason : null,
    };
  });
}

/** The chunk that ends a choice whose engine never ended it. */
export function toLastChatChunk(index: number, state: ChoiceState, finishReason: FinishReason): OutChoice {
  return { index, delta: withRole({}, state), finish_reason: finishReason };
}

/** Reasoning under the names the policy wants; nothing when the effort is none (SPEC §4). */
export function toReasoningFields(text: string, { request }: AnswerContext): Readonly<Record<string, string>> {
  if (request.effort === 'none') return {};
  switch (request.resolved.model.policy.reasoning_field) {
    case 'both':
      return { reasoning: text, reasoning_content: text };
    case 'reasoning':
      return { reasoning: text };
    case 'reasoning_content':
      return { reasoning_content: text };
  }
}

function withRole(part: JsonObject, state: ChoiceState): JsonObject {
  if (state.roleSent) return part;
  state.roleSent = true;
  const empty = Object.keys(part).length === 0;
  return { role: 'assistant', ...(empty ? { content: '' } : {}), ...part };
}

function readToolCalls(value: unknown, choiceIndex: number, state: ChoiceState, requestId: string): JsonObject {
  if (!Array.isArray(value) || value.length === 0) return {};
  const calls = value.map((item: unknown) => {
    const call = readObject(item);
    const details = readObject(call['function']);
    const name = readText(details['name']);
    const args = details['arguments'];
    const id = readText(call['id']);
    // Without an index a new id begins a new call, and so does a name that comes without an id.
    const begins = id === '' ? name !== '' : id !== state.toolCallId;
    const index = readCount(call['index']) ?? Math.max(0, state.toolCalls - (begins ? 0 : 1));
    const first = !state.toolIndexes.has(index);
    state.toolIndexes.add(index);
    state.toolCalls = Math.max(state.toolCalls, index + 1);
    state.toolCallId = id || state.toolCallId;
    return {
      index,
      ...(first ? { id: id === '' ? mintCallId(requestId, choiceIndex, index) : id, type: 'function' } : {}),
      function: {
        ...(first && name !== '' ? { name } : {}),
        arguments: typeof args === 'string' ? args : args === undefined || args === null ? '' : JSON.stringify(args),
      },
    };
  });
  return { tool_calls: calls };
}

function readPart(name: string, text: string): Readonly<Record<string, string>> {
  return text === '' ? {} : { [name]: text };
}

/** An id for a tool call that the engine left without one: unique in the answer, and the same if made again. */
export function mintCallId(requestId: string, choiceIndex: number, callIndex: number): string {
  return `call_${requestId.replace(/^req_/, '')}_${choiceIndex}_${callIndex}`;
}
