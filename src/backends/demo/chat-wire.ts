// The chat shapes that go out, as vLLM writes them: stream chunks, the JSON answer, usage.
// Pure builders: they are told ids, time and counts and decide nothing about the text.

import { isListed, type CollectedChoice } from './collect-choice.ts';
import type { ChoiceStep, Finish } from './decode.ts';
import { inventLogprob } from './invent-logprobs.ts';

/** What is the same on every chunk of one answer. */
export interface AnswerHead {
  readonly id: string;
  readonly created: number;
  readonly model: string;
}

export interface Usage {
  readonly prompt_tokens: number;
  readonly completion_tokens: number;
  readonly total_tokens: number;
  readonly completion_tokens_details?: { readonly reasoning_tokens: number };
}

/** Usage in OpenAI's names; reasoning is told where there was any. */
export function buildUsage(promptTokens: number, completionTokens: number, reasoningTokens = 0): Usage {
  return {
    prompt_tokens: promptTokens,
    completion_tokens: completionTokens,
    total_tokens: promptTokens + completionTokens,
    ...(reasoningTokens > 0 ? { completion_tokens_details: { reasoning_tokens: reasoningTokens } } : {}),
  };
}

/** The first chunk of a choice: the role and empty content. */
export function buildRoleChunk(head: AnswerHead, index: number, usage: Usage | null): object {
  return buildChunk(head, { index, delta: { role: 'assistant', content: '' }, ...unfinished }, usage);
}

/** The chunk that carries a step: text, reasoning, or a piece of a tool call. */
export function buildTextChunk(
  head: AnswerHead,
  step: ChoiceStep,
  topLogprobs: number | null,
  usage: Usage | null,
): object {
  const logprobs = isListed(step, topLogprobs) ? { content: [inventLogprob(step.token, topLogprobs)] } : null;
  return buildChunk(head, { index: step.index, delta: toDelta(head, step), ...unfinished, logprobs }, usage);
}

function toDelta(head: AnswerHead, { lane, text, index }: ChoiceStep): object {
  if (lane.kind === 'content') return { content: text };
  if (lane.kind === 'reasoning') return { reasoning: text };
  if (lane.opens === null) return { tool_calls: [{ index: lane.index, function: { arguments: text } }] };
  const id = toCallId(head, index, lane.index);
  return { tool_calls: [{ index: lane.index, id, type: 'function', function: { name: lane.opens, arguments: '' } }] };
}

function toCallId(head: AnswerHead, choiceIndex: number, callIndex: number): string {
  return `call_${head.id.replace(/^chatcmpl-/, '')}_${choiceIndex}_${callIndex}`;
}

/** The last chunk of a choice: no text, the reason of its end. */
export function buildFinishChunk(head: AnswerHead, index: number, finish: Finish, usage: Usage | null): object {
  return buildChunk(head, { index, delta: { content: '' }, ...toFinishFields(finish) }, usage);
}

/** The chunk after all choices: usage and an empty list of choices. */
export function buildUsageChunk(head: AnswerHead, usage: Usage): object {
  return { ...toChunkHead(head), choices: [], usage };
}

/** The JSON answer. */
export function buildChatAnswer(head: AnswerHead, choices: readonly CollectedChoice[], promptTokens: number): object {
  const completionTokens = choices.reduce((sum, choice) => sum + choice.tokens, 0);
  const reasoningTokens = choices.reduce((sum, choice) => sum + choice.reasoningTokens, 0);
  return {
    id: head.id,
    object: 'chat.completion',
    created: head.created,
    model: head.model,
    choices: choices.map((choice, index) => ({
      index,
      message: toMessage(head, choice, index),
      ...toFinishFields(choice.finish),
      logprobs: choice.logprobs.length > 0 ? { content: choice.logprobs } : null,
    })),
    usage: buildUsage(promptTokens, completionTokens, reasoningTokens),
  };
}

function toMessage(head: AnswerHead, { text, reasoning, calls }: CollectedChoice, choiceIndex: number): object {
  return {
    role: 'assistant',
    content: calls.length > 0 ? null : text,
    ...(reasoning === '' ? {} : { reasoning }),
    ...(calls.length === 0
      ? {}
      : {
          tool_calls: calls.map((call, index) => ({
            id: toCallId(head, choiceIndex, index),
            type: 'function',
            function: call,
          })),
        }),
  };
}

const unfinished = { logprobs: null, finish_reason: null };

function toFinishFields(finish: Finish): object {
  return { logprobs: null, finish_reason: finish.reason, stop_reason: finish.stopReason };
}

function toChunkHead(head: AnswerHead): object {
  return { id: head.id, object: 'chat.completion.chunk', created: head.created, model: head.model };
}

function buildChunk(head: AnswerHead, choice: object, usage: Usage | null): object {
  const chunk = { ...toChunkHead(head), choices: [choice] };
  return usage === null ? chunk : { ...chunk, usage };
}
