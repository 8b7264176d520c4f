// The chat shapes that go out, as vLLM writes them: stream chunks, the JSON answer, usage.
// Pure builders: they are told ids, time and counts and decide nothing about the text.

import type { ChoiceStep, Finish } from './decode.ts';

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
}

/** One finished choice of a JSON answer. */
export interface FinishedChoice {
  readonly text: string;
  readonly tokens: number;
  readonly finish: Finish;
}

/** Usage in OpenAI's names. */
export function buildUsage(promptTokens: number, completionTokens: number): Usage {
  return {
    prompt_tokens: promptTokens,
    completion_tokens: completionTokens,
    total_tokens: promptTokens + completionTokens,
  };
}

/** The first chunk of a choice: the role and empty content. */
export function buildRoleChunk(head: AnswerHead, index: number, usage: Usage | null): object {
  return buildChunk(head, { index, delta: { role: 'assistant', content: '' }, ...unfinished }, usage);
}

/** The chunk that carries a step's text. */
export function buildTextChunk(head: AnswerHead, step: ChoiceStep, usage: Usage | null): object {
  return buildChunk(head, { index: step.index, delta: { content: step.text }, ...unfinished }, usage);
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
export function buildChatAnswer(head: AnswerHead, choices: readonly FinishedChoice[], promptTokens: number): object {
  const completionTokens = choices.reduce((sum, choice) => sum + choice.tokens, 0);
  return {
    id: head.id,
    object: 'chat.completion',
    created: head.created,
    model: head.model,
    choices: choices.map(({ text, finish }, index) => ({
      index,
      message: { role: 'assistant', content: text },
      ...toFinishFields(finish),
    })),
    usage: buildUsage(promptTokens, completionTokens),
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
