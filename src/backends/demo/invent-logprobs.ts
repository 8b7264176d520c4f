// Log probabilities that look like a model's: seeded by the token, never above zero, the token itself among the first.

import { hashText } from './seeded-random.ts';

/** One token with the alternatives it had. */
export interface TokenLogprob {
  readonly token: string;
  readonly logprob: number;
  readonly bytes: readonly number[];
  readonly top_logprobs: readonly {
    readonly token: string;
    readonly logprob: number;
    readonly bytes: readonly number[];
  }[];
}

// As many as can be asked for.
const alternatives = [
  ' the',
  ' a',
  ' road',
  ' toll',
  ',',
  '.',
  ' and',
  ' gate',
  ' of',
  ' in',
  ' at',
  ' to',
  ' by',
  ' on',
  ' is',
  ' with',
  ' for',
  ' from',
  ' it',
  ' or',
];
const encoder = new TextEncoder();

/** The log probability of a token and of `top` likely ones, itself first, falling. */
export function inventLogprob(token: string, top: number): TokenLogprob {
  const logprob = -(hashText(token) % 100) / 100;
  const others = alternatives
    .filter((other) => other !== token)
    .map((other, at) => ({ token: other, logprob: logprob - 1 - at }));
  const listed = [{ token, logprob }, ...others].slice(0, top);
  return {
    token,
    logprob,
    bytes: toBytes(token),
    top_logprobs: listed.map((entry) => ({ ...entry, bytes: toBytes(entry.token) })),
  };
}

function toBytes(text: string): readonly number[] {
  return [...encoder.encode(text)];
}
