// One choice of a chat stream in the normal form of SPEC §7: role once and first, tool calls with index and id,
// reasoning before content, one finish reason of the closed set. Empty deltas vanish.

import { readObject, readText } from '../core/json-read.ts';
import { type Policy } from '../core/policy.ts';
import { type FinishReason } from './endpoint.ts';

/** What of a choice must be remembered between chunks. */
export type ChoiceState = {
  roleSent: boolean;
  finishReason: FinishReason | null;
  /** Deltas with text, reasoning or tool calls, for engines that report no usage. */
  deltas: number;
  toolCalls: number;
};

/** A choice as one outgoing chunk carries it. */
export type ChoiceChunk = {
  readonly index: number;
  readonly delta: Readonly<Record<string, unknown>>;
  readonly logprobs?: unknown;
  readonly finish_reason: FinishReason | null;
};

/** How reasoning leaves: under which name, or not at all when the effort is none. */
export type ReasoningOut = Policy['reasoning_field'] | 'nothing';

const FINISH_REASONS: Readonly<Record<string, FinishReason>> = {
  stop: 'stop',
  eos_token: 'stop',
  stop_sequence: 'stop',
  length: 'length',
  max_tokens: 'length',
  tool_calls: 'tool_calls',
  function_call: 'tool_calls',
  content_filter: 'content_filter',
};

/** A choice nothing has been said of. */
export function createChoiceState(): ChoiceState {
  return { roleSent: false, finishReason: null, deltas: 0, toolCalls: 0 };
}

/**
 * An engine's finish reason in the closed set; null while it is not finished (null, absent, or TGI's '').
 * A reason nobody knows ends the choice all the same, as `stop`.
 */
export function toFinishReason(value: unknown): FinishReason | null {
  if (typeof value !== 'string' || value === '') return null;
  return FINISH_REASONS[value] ?? 'stop';
}

/**
 * Translates an engine's choice into the chunks it becomes: none when it says nothing, two when reasoning and content
 * came in one delta. Updates `state`.
 */
export function toChoiceChunks(
  choice: Readonly<Record<string, unknown>>,
  index: number,
  state: ChoiceState,
  reasoningOut: ReasoningOut,
  requestId: string,
): readonly ChoiceChunk[] {
  if (state.finishReason !== null) return [];
  const delta = readObject(choice['delta']);
  const reasoning = readText(delta['reasoning']) || readText(delta['reasoning_content']);
  const said = {
    ...readPart('content', readText(delta['content'])),
    ...readPart('refusal', readText(delta['refusal'])),
    ...readToolCalls(delta['tool_calls'], index, state, requestId),
  };
  const thought = reasoning === '' ? {} : toReasoningFields(reasoning, reasoningOut);
  const finishReason = toFinishReason(choice['finish_reason']);
  if (reasoning !== '' || Object.keys(said).length > 0) state.deltas += 1;
  const parts = [thought, said].filter((part) => Object.keys(part).length > 0);
  if (parts.length === 0 && (finishReason !== null || !state.roleSent)) parts.push({});
  const logprobs = choice['logprobs'] ?? null;
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

/** Reasoning under the names the policy wants. */
export function toReasoningFields(text: string, out: ReasoningOut): Readonly<Record<string, string>> {
  switch (out) {
    case 'nothing':
      return {};
    case 'both':
      return { reasoning: text, reasoning_content: text };
    case 'reasoning':
      return { reasoning: text };
    case 'reasoning_content':
      return { reasoning_content: text };
  }
}

function withRole(part: Readonly<Record<string, unknown>>, state: ChoiceState): Readonly<Record<string, unknown>> {
  if (state.roleSent) return part;
  state.roleSent = true;
  const empty = Object.keys(part).length === 0;
  return { role: 'assistant', ...(empty ? { content: '' } : {}), ...part };
}

function readToolCalls(
  value: unknown,
  choiceIndex: number,
  state: ChoiceState,
  requestId: string,
): Readonly<Record<string, unknown>> {
  if (!Array.isArray(value) || value.length === 0) return {};
  const calls = value.map((item: unknown) => {
    const call = readObject(item);
    const details = readObject(call['function']);
    const index =
      typeof call['index'] === 'number' ? call['index'] : Math.max(0, state.toolCalls - (call['id'] ? 0 : 1));
    const first = index >= state.toolCalls;
    state.toolCalls = Math.max(state.toolCalls, index + 1);
    const name = readText(details['name']);
    const args = details['arguments'];
    const id = readText(call['id']);
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
