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

/** An amount of nano-USD as a decimal string with nine decimals: 6600 → "0.000006600". */
export function toUsd(nanoUsd: number | bigint): string {
  const sign = nanoUsd < 0 ? '-' : '';
  const digits = String(nanoUsd).replace('-', '').padStart(10, '0');
  return `${sign}${digits.slice(0, -9)}.${digits.slice(-9)}`;
}

function toPico(rate: string): bigint {
  const pico = parseRate(rate);
  if (pico === null) throw new RangeError(`not a rate: ${rate}`);
  return pico;
}
