// The version of a price: a short hash of the rates, so that a receipt says which prices it was made with (SPEC §9).

import { type Rates } from './money.ts';

/** A catalog's rates are one object for as long as the catalog is; hashing them once is enough. */
const known = new WeakMap<Rates, string>();

/** Twelve hex digits of the SHA-256 of the four rates in canonical order. */
export async function toPriceVersion(rates: Rates): Promise<string> {
  const before = known.get(rates);
  if (before !== undefined) return before;
  const text = JSON.stringify([rates.input, rates.cached_input, rates.cache_write, rates.output]);
  const digest = await crypto.subtle.digest('SHA-256', new TextEncoder().encode(text));
  const version = toHex(new Uint8Array(digest)).slice(0, 12);
  known.set(rates, version);
  return version;
}

/** Bytes as lower-case hex digits. */
export function toHex(bytes: Uint8Array): string {
  return [...bytes].map((byte) => byte.toString(16).padStart(2, '0')).join('');
}
