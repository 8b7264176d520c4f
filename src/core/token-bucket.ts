// A bucket per minute, in integers: capacity = limit, rate = limit / 60 s (SPEC §5). What is kept is what is *used*, so
// that a new limit takes hold at once and an idle bucket needs no clock.

import type { RateStatus } from './retry-hints.ts';

/**
 * The units in which use is kept: one 60,000th of a request or token. A limit of L per minute then drains exactly L
 * units per millisecond, without fractions.
 */
const UNITS = 60_000;

/** How much is used, and when that was true. `usedUnits` is from 0 to twice the capacity: debt stops there. */
export type Bucket = { readonly usedUnits: number; readonly atMs: number };

/** A bucket nobody has used. */
export const EMPTY_BUCKET: Bucket = { usedUnits: 0, atMs: 0 };

/** The bucket at `nowMs`: drained at the limit's rate, never below empty. A clock that steps back drains nothing. */
export function drainBucket(bucket: Bucket, limit: number | null, nowMs: number): Bucket {
  if (limit === null) return { usedUnits: 0, atMs: nowMs };
  const elapsedMs = Math.max(0, nowMs - bucket.atMs);
  return { usedUnits: Math.max(0, bucket.usedUnits - elapsedMs * limit), atMs: Math.max(nowMs, bucket.atMs) };
}

/** Milliseconds until `amount` fits into a drained bucket; 0 when it fits now, Infinity when it never will. */
export function readWaitMs(bucket: Bucket, limit: number | null, amount: number): number {
  if (limit === null) return 0;
  if (amount > limit) return Infinity;
  const excessUnits = bucket.usedUnits + amount * UNITS - limit * UNITS;
  return excessUnits <= 0 ? 0 : Math.ceil(excessUnits / limit);
}

/** Adds an amount. Debt stops at minus one capacity. */
export function useBucket(bucket: Bucket, limit: number | null, amount: number): Bucket {
  return addUnits(bucket, limit, toUnits(amount));
}

/** Adds units, as {@link useBucket}. */
export function addUnits(bucket: Bucket, limit: number | null, units: number): Bucket {
  if (limit === null) return bucket;
  return { usedUnits: Math.min(bucket.usedUnits + units, 2 * limit * UNITS), atMs: bucket.atMs };
}

/** An amount in the units in which use is kept. */
export function toUnits(amount: number): number {
  return amount * UNITS;
}

/** The units that giving some back frees: never more than the lowest use since they were taken. */
export function readRefundUnits(units: number, lowestUnits: number): number {
  return Math.max(0, Math.min(units, lowestUnits));
}

/** Gives back units; never lifts the bucket above its capacity. */
export function refundBucket(bucket: Bucket, units: number): Bucket {
  return { usedUnits: Math.max(0, bucket.usedUnits - units), atMs: bucket.atMs };
}

/** The whole amount in use now, rounded up, as an error message says it. */
export function readUsed(bucket: Bucket): number {
  return Math.ceil(bucket.usedUnits / UNITS);
}

/** What the limit headers say of a drained bucket; null without a limit. */
export function readRateStatus(bucket: Bucket, limit: number | null): RateStatus | null {
  if (limit === null) return null;
  return {
    limit,
    remaining: Math.max(0, Math.floor((limit * UNITS - bucket.usedUnits) / UNITS)),
    resetMs: limit === 0 ? 0 : Math.ceil(bucket.usedUnits / limit),
  };
}
