// Runs one chat generation: tokens at the set speed, as server-sent events or as one JSON answer.
// Both are driven by the reader or the caller; both stop at the first await after the signal aborts, by throwing its
// reason. Parsing the request and answering errors is done before.

import {
  buildChatAnswer,
  buildFinishChunk,
  buildRoleChunk,
  buildTextChunk,
  buildUsage,
  buildUsageChunk,
  type AnswerHead,
} from './chat-wire.ts';
import { addStep, createChoice, isListed, isOpening } from './collect-choice.ts';
import { decodeChoices, type ChoiceStep } from './decode.ts';
import type { ChatRequest } from './parse-chat-request.ts';
import { tokenize } from './tokenize.ts';
import { planAnswer } from './plan-answer.ts';

/** Resolves when the next token is due, rejects after an abort. */
export type NextTurn = () => Promise<void>;

// The end of what an endless generation without a limit may become; longer than any answer, shorter than forever.
const outputTokensMax = 32_768;

/** Generates the events of a streamed answer, each one complete with its blank line. */
export async function* streamChat(
  request: ChatRequest,
  head: AnswerHead,
  turn: NextTurn,
): AsyncGenerator<string, void> {
  const promptTokens = tokenize(request.prompt).length;
  const counts = Array.from({ length: request.choices }, () => 0);
  let reasoningTokens = 0;
  // vLLM's running count is that of the chunk's own choice, not the sum over choices.
  const running = (tokens: number) => (request.continuousUsage ? buildUsage(promptTokens, tokens) : null);
  for (const index of counts.keys()) yield toEvent(buildRoleChunk(head, index, running(0)));
  for (const steps of startDecoding(request)) {
    await turn();
    for (const step of steps) {
      counts[step.index] = step.tokens;
      if (step.lane.kind === 'reasoning') reasoningTokens += 1;
      if (step.text !== '' || isOpening(step) || isListed(step, request.topLogprobs)) {
        yield toEvent(buildTextChunk(head, step, request.topLogprobs, running(step.tokens)));
      }
      if (step.finish) yield toEvent(buildFinishChunk(head, step.index, step.finish, running(step.tokens)));
    }
  }
  const completionTokens = counts.reduce((sum, count) => sum + count, 0);
  if (request.includeUsage)
    yield toEvent(buildUsageChunk(head, buildUsage(promptTokens, completionTokens, reasoningTokens)));
  yield 'data: [DONE]\n\n';
}

/** Generates the whole answer, taking as long as a stream of it would. */
export async function completeChat(request: ChatRequest, head: AnswerHead, turn: NextTurn): Promise<object> {
  const choices = Array.from({ length: request.choices }, createChoice);
  for (const steps of startDecoding(request)) {
    await turn();
    for (const step of steps) {
      const choice = choices[step.index];
      if (choice !== undefined) addStep(choice, step, request.topLogprobs);
    }
  }
  return buildChatAnswer(head, choices, tokenize(request.prompt).length);
}

function startDecoding(request: ChatRequest): Iterable<readonly ChoiceStep[]> {
  const sources = Array.from({ length: request.choices }, (_, choiceIndex) => planAnswer(request, choiceIndex));
  const maxTokens = Math.min(request.maxTokens ?? outputTokensMax, outputTokensMax);
  return decodeChoices(sources, { maxTokens, stops: request.stops });
}

function toEvent(chunk: object): string {
  return `data: ${JSON.stringify(chunk)}\n\n`;
}
