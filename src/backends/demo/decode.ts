// The decoding: takes tokens from a source, applies limit and stop strings, says how each choice ended.
// Choices advance together, one token each per step, as a batch does on a GPU. Pure and lazy: no time, no wire;
// a step is made only when it is asked for.

import { createStopMatcher } from './stop-matcher.ts';

export interface DecodeLimits {
  readonly maxTokens: number;
  readonly stops: readonly string[];
}

/** Where a token belongs in a chat answer; `opens` names the tool whose call begins. */
export type Lane =
  | { readonly kind: 'content' }
  | { readonly kind: 'reasoning' }
  | { readonly kind: 'call'; readonly index: number; readonly opens: string | null };

/** A token of a lane; a bare string is content. */
export interface LaneToken {
  readonly lane: Lane;
  readonly text: string;
}

/** How a choice ended; `stopReason` is the stop string that did it. */
export interface Finish {
  readonly reason: 'stop' | 'length' | 'tool_calls';
  readonly stopReason: string | null;
}

/** One step of one choice: new text (empty while it may belong to a stop string) and all its tokens so far. */
export interface ChoiceStep {
  readonly index: number;
  readonly lane: Lane;
  /** The token that was made, before stop strings held any of it back; '' where none was. */
  readonly token: string;
  readonly text: string;
  readonly tokens: number;
  readonly finish: Finish | null;
}

/** Runs all choices side by side; each result holds one step of every choice that is not at its end. */
export function* decodeChoices(
  sources: readonly Iterable<string | LaneToken>[],
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

const contentLane: Lane = { kind: 'content' };

/** Runs one choice. The last step, and only that, has a `finish`; the tokens of a cut stop string count as generated. */
function* decodeChoice(
  source: Iterable<string | LaneToken>,
  index: number,
  limits: DecodeLimits,
): Generator<ChoiceStep, void> {
  const matcher = createStopMatcher(limits.stops);
  let tokens = 0;
  let called = false;
  for (const item of source) {
    const { lane, text: token } = typeof item === 'string' ? { lane: contentLane, text: item } : item;
    // The opening of a call is a mark, not a token.
    if (token !== '') tokens += 1;
    called ||= lane.kind === 'call';
    const { text, matched } = lane.kind === 'content' ? matcher.push(token) : { text: token, matched: null };
    const step = { index, lane, token, text, tokens };
    if (matched !== null) {
      yield { ...step, finish: { reason: 'stop', stopReason: matched } };
      return;
    }
    if (tokens >= limits.maxTokens) {
      const rest = lane.kind === 'content' ? matcher.flush() : '';
      yield { ...step, text: text + rest, finish: { reason: 'length', stopReason: null } };
      return;
    }
    yield { ...step, finish: null };
  }
  const finish: Finish = { reason: called ? 'tool_calls' : 'stop', stopReason: null };
  yield { index, lane: contentLane, token: '', text: matcher.flush(), tokens, finish };
}
