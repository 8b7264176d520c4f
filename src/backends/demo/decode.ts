// The decoding: takes tokens from a source, applies limit and stop strings, says how each choice ended.
// Choices advance together, one token each per step, as a batch does on a GPU. Pure and lazy: no time, no wire;
// a step is made only when it is asked for.

import { createStopMatcher } from './stop-matcher.ts';

export interface DecodeLimits {
  readonly maxTokens: number;
  readonly stops: readonly string[];
}

/** How a choice ended; `stopReason` is the stop string that did it. */
export interface Finish {
  readonly reason: 'stop' | 'length';
  readonly stopReason: string | null;
}

/** One step of one choice: new text (empty while it may belong to a stop string) and all its tokens so far. */
export interface ChoiceStep {
  readonly index: number;
  readonly text: string;
  readonly tokens: number;
  readonly finish: Finish | null;
}

/** Runs all choices side by side; each result holds one step of every choice that is not at its end. */
export function* decodeChoices(
  sources: readonly Iterable<string>[],
  limits: DecodeLimits,
): Generator<readonly ChoiceStep[], void> {
  let running = sources.map((source, index) => decodeChoice(source, index, limits));
  while (running.length > 0) {
    const steps: ChoiceStep[] = [];
    running = running.filter((choice) => {
      const next = choice.next();
      if (next.done === true) return false;
      steps.push(next.value);
      return next.value.finish === null;
    });
    yield steps;
  }
}

/** Runs one choice. The last step, and only that, has a `finish`; the tokens of a cut stop string count as generated. */
function* decodeChoice(source: Iterable<string>, index: number, limits: DecodeLimits): Generator<ChoiceStep, void> {
  const matcher = createStopMatcher(limits.stops);
  let tokens = 0;
  for (const token of source) {
    tokens += 1;
    const { text, matched } = matcher.push(token);
    if (matched !== null) {
      yield { index, text, tokens, finish: { reason: 'stop', stopReason: matched } };
      return;
    }
    if (tokens >= limits.maxTokens) {
      yield { index, text: text + matcher.flush(), tokens, finish: { reason: 'length', stopReason: null } };
      return;
    }
    yield { index, text, tokens, finish: null };
  }
  yield { index, text: matcher.flush(), tokens, finish: { reason: 'stop', stopReason: null } };
}
