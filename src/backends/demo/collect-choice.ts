// Collects the steps of one choice into what a JSON answer says of it. Pure.

import type { ChoiceStep, Finish } from './decode.ts';
import { inventLogprob, type TokenLogprob } from './invent-logprobs.ts';

/** One choice of a JSON answer, while it is made. */
export interface CollectedChoice {
  text: string;
  reasoning: string;
  reasoningTokens: number;
  readonly calls: { readonly name: string; arguments: string }[];
  readonly logprobs: TokenLogprob[];
  tokens: number;
  finish: Finish;
}

/** A choice nothing was made of. */
export function createChoice(): CollectedChoice {
  const finish: Finish = { reason: 'stop', stopReason: null };
  return { text: '', reasoning: '', reasoningTokens: 0, calls: [], logprobs: [], tokens: 0, finish };
}

/** Whether a step begins a tool call: it has no text and must be told all the same. */
export function isOpening({ lane }: ChoiceStep): boolean {
  return lane.kind === 'call' && lane.opens !== null;
}

/** Whether a step's token is listed with its log probability; one that is must be told even while its text is held back. */
export function isListed({ lane, token }: ChoiceStep, topLogprobs: number | null): topLogprobs is number {
  return topLogprobs !== null && lane.kind === 'content' && token !== '';
}

/** Adds one step. `topLogprobs` is null where none are asked for. */
export function addStep(choice: CollectedChoice, step: ChoiceStep, topLogprobs: number | null): void {
  const { lane } = step;
  choice.tokens = step.tokens;
  choice.finish = step.finish ?? choice.finish;
  if (lane.kind === 'reasoning') {
    choice.reasoning += step.text;
    choice.reasoningTokens += 1;
  } else if (lane.kind === 'call') {
    if (lane.opens !== null) choice.calls.push({ name: lane.opens, arguments: '' });
    const call = choice.calls[lane.index];
    if (call !== undefined) call.arguments += step.text;
  } else {
    choice.text += step.text;
    if (isListed(step, topLogprobs)) choice.logprobs.push(inventLogprob(step.token, topLogprobs));
  }
}
