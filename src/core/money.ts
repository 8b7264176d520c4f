// Money in integers: rates are pico-USD per token, costs nano-USD (SPEC §9). No floating point touches an amount.

import type { Usage } from './usage.ts';

/** Prices as the catalog writes them: decimal strings, USD per million tokens, at most six decimals. */
export type Rates = {
  readonly input: string;
  readonly cached_input: string;
  readonly cache_write: string;
  readonly output: string;
};

/** The rates of a model without pricing. */
export const FREE_RATES: Rates = { input: '0', cached_input: '0', cache_write: '0', output: '0' };

const USD_PATTERN = /^([+-]?)(\d{1,7})(?:\.(\d{1,9}))?$/;
const SAFE_MAX = BigInt(Number.MAX_SAFE_INTEGER);
const RATE_PATTERN = /^(\d{1,9})(?:\.(\d{1,6}))?$/;

/**
 * A price in pico-USD per token. USD per million tokens with six decimals is exactly one pico-USD per token in its last
 * digit, so nothing is lost.
 *
 * @returns null when the text is not such a decimal.
 */
export function parseRate(text: string): bigint | null {
  const match = RATE_PATTERN.exec(text);
  if (match === null) return null;
  return BigInt(match[1] ?? '0') * 1_000_000n + BigInt((match[2] ?? '').padEnd(6, '0'));
}

/**
 * What a usage costs in nano-USD, rounded half up once. Cached and cache-write tokens are part of the input and priced
 * in its place, never on top; reasoning is part of the output (SPEC §9).
 *
 * @throws RangeError when the rates were not validated: the catalog does that on entry.
 */
export function toCostNanoUsd(usage: Usage, rates: Rates): number {
  const plainInput = usage.input_tokens - usage.cached_input_tokens - usage.cache_write_tokens;
  const picoUsd =
    BigInt(plainInput) * toPico(rates.input) +
    BigInt(usage.cached_input_tokens) * toPico(rates.cached_input) +
    BigInt(usage.cache_write_tokens) * toPico(rates.cache_write) +
    BigInt(usage.output_tokens) * toPico(rates.output);
  return Number((picoUsd + 500n) / 1000n);
}

/** How many tokens a request can use. */
export type TokenBounds = {
  /** Input tokens over all prompts. */
  readonly inputTokensMax: number;
  /** Output tokens of each choice. */
  readonly outputTokensMax: number;
  readonly choices: number;
};

/**
 * The most a request can cost, in nano-USD, rounded up: every input token at the highest of the input rates. More than
 * can be counted exactly is `Number.MAX_SAFE_INTEGER`, which no balance reaches.
 */
export function toHoldNanoUsd(bounds: TokenBounds, rates: Rates): number {
  const output = BigInt(bounds.outputTokensMax) * BigInt(bounds.choices) * toPico(rates.output);
  const nanoUsd = (toInputPico(bounds, rates) + output + 999n) / 1000n;
  return nanoUsd > SAFE_MAX ? Number.MAX_SAFE_INTEGER : Number(nanoUsd);
}

/** The output tokens per choice that an amount of nano-USD buys beside all input; null when it does not buy one. */
export function toAffordableOutput(nanoUsd: number, bounds: TokenBounds, rates: Rates): number | null {
  const sparePico = BigInt(nanoUsd) * 1000n - toInputPico(bounds, rates);
  const perToken = BigInt(bounds.choices) * toPico(rates.output);
  if (sparePico < 0n) return null;
  if (perToken === 0n) return bounds.outputTokensMax;
  const tokens = sparePico / perToken;
  return tokens < 1n ? null : Number(tokens < BigInt(bounds.outputTokensMax) ? tokens : bounds.outputTokensMax);
}

/** A signed amount of USD in nano-USD; null when it is not a decimal of at most nine decimals that can be counted. */
export function parseUsd(text: string): number | null {
  const match = USD_PATTERN.exec(text);
  if (match === null) return null;
  const nanoUsd = Number(`${match[2] ?? '0'}${(match[3] ?? '').padEnd(9, '0')}`);
  if (!Number.isSafeInteger(nanoUsd)) return null;
  return match[1] === '-' && nanoUsd > 0 ? -nanoUsd : nanoUsd;
}

/** An amount of nano-USD as a decimal string with nine decimals: 6600 → "0.000006600". */
export function toUsd(nanoUsd: number | bigint): string {
  const sign = nanoUsd < 0 ? '-' : '';
  const digits = String(nanoUsd).replace('-', '').padStart(10, '0');
  return `${sign}${digits.slice(0, -9)}.${digits.slice(-9)}`;
}

function toInputPico({ inputTokensMax }: TokenBounds, rates: Rates): bigint {
  const [first, ...others] = [toPico(rates.input), toPico(rates.cached_input), toPico(rates.cache_write)] as const;
  return BigInt(inputTokensMax) * others.reduce((highest, rate) => (rate > highest ? rate : highest), first);
}

function toPico(rate: string): bigint {
  const pico = parseRate(rate);
  if (pico === null) throw new RangeError(`not a rate: ${rate}`);
  return pico;
}
