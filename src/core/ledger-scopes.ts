// Use of a workspace and its keys: reading it, changing it, and what refuses a request (SPEC §5). Pure; the commands
// that call this are in ledger-state.ts.

import { type CallerLimits, type Limits } from './api-key.ts';
import { type GatewayError, type LimitScope } from './errors.ts';
import { forgetBefore, type LowMark, lowerSince, noteLow, readLowSince } from './low-marks.ts';
import { type RateSnapshot } from './retry-hints.ts';
import {
  addUnits,
  type Bucket,
  drainBucket,
  EMPTY_BUCKET,
  readRateStatus,
  readUsed,
  readRefundUnits,
  readWaitMs,
  refundBucket,
  toUnits,
} from './token-bucket.ts';

/** Use by the workspace (`''`) or by one key (its id). */
export type Scope = {
  readonly requests: MarkedBucket;
  readonly tokens: MarkedBucket;
  readonly inFlight: number;
};

/** A bucket with how low its use has been since each reservation that is open. */
export type MarkedBucket = Bucket & { readonly lows: readonly LowMark[] };

/** Use by name, the time up to which it is drained, and the number of the newest reservation. */
export type ScopeTable = { readonly nowMs: number; readonly seq: number; readonly scopes: Map<string, Scope> };

/** A scope's name with the limits that arrived with the call. */
export type LimitedScope = readonly [name: string, limits: Limits];

/** The name under which the workspace's own use is kept. */
export const WORKSPACE_SCOPE = '';

/** The scopes that a key's requests count against: the workspace, and the key where it has limits of its own. */
export function toScopes(key: string, { workspaceLimits, keyLimits }: CallerLimits): readonly LimitedScope[] {
  const workspace = [WORKSPACE_SCOPE, workspaceLimits] as const;
  return keyLimits === null ? [workspace] : [workspace, [key, keyLimits]];
}

const NEVER_RETRY_MS = 60_000;

/**
 * Whether `tokens` more fit in every scope: null, or the refusal that takes longest to pass, so that a caller who waits
 * as told is admitted.
 */
export function findRefusal(table: ScopeTable, scopes: readonly LimitedScope[], tokens: number): GatewayError | null {
  let refusal: GatewayError | null = null;
  let longestMs = 0;
  for (const [name, limits] of scopes) {
    const scope: LimitScope = name === WORKSPACE_SCOPE ? 'workspace' : 'key';
    const use = readScope(table, name, limits);
    if (limits.tpm !== null && tokens > limits.tpm) {
      return { kind: 'request_above_bucket', scope, limit: limits.tpm, requested: tokens };
    }
    for (const [bucket, amount, limit] of [
      ['requests', 1, limits.rpm],
      ['tokens', tokens, limits.tpm],
    ] as const) {
      const waitMs = readWaitMs(use[bucket], limit, amount);
      if (limit === null || waitMs <= longestMs) continue;
      longestMs = waitMs;
      const retryAfterMs = Number.isFinite(waitMs) ? waitMs : NEVER_RETRY_MS;
      refusal = {
        kind: 'rate_limited',
        bucket,
        scope,
        limit,
        used: readUsed(use[bucket]),
        requested: amount,
        retryAfterMs,
      };
    }
    if (refusal === null && limits.concurrency !== null && use.inFlight >= limits.concurrency) {
      refusal = { kind: 'concurrency_limited', scope, limit: limits.concurrency, used: use.inFlight };
    }
  }
  return refusal;
}

function readScope(table: ScopeTable, name: string, limits: Limits): Scope {
  const scope = table.scopes.get(name);
  const read = (bucket: MarkedBucket | undefined, limit: number | null): MarkedBucket => {
    return { ...drainBucket(bucket ?? EMPTY_BUCKET, limit, table.nowMs), lows: bucket?.lows ?? [] };
  };
  return {
    requests: read(scope?.requests, limits.rpm),
    tokens: read(scope?.tokens, limits.tpm),
    inFlight: scope?.inFlight ?? 0,
  };
}

/** What is taken from a scope or, negative, given back to it. */
export type ScopeChange = {
  readonly requests: number;
  readonly tokens: number;
  readonly inFlight: number;
  /** The number of the reservation that gives back. */
  readonly seq: number;
  /** The number of the oldest reservation still open. */
  readonly oldestSeq: number;
};

/** Units a reservation asked for and did not get, since the bucket was at its debt limit. */
export type ClippedUnits = { readonly requests: number; readonly tokens: number };

/** Nothing was clipped: the rule, since only re-adopted reservations are taken without a check. */
export const NOTHING_CLIPPED: ClippedUnits = { requests: 0, tokens: 0 };

/**
 * Takes from, or gives back to, a scope.
 *
 * @param clipped What the reservation did not get when it was taken: it cannot give that back.
 * @returns what the debt limit kept it from taking now.
 */
export function changeScope(
  table: ScopeTable,
  name: string,
  limits: Limits,
  change: ScopeChange,
  clipped: ClippedUnits,
): ClippedUnits {
  const scope = readScope(table, name, limits);
  const requests = changeBucket(
    scope.requests,
    limits.rpm,
    toUnits(change.requests) + clipped.requests,
    change,
    table.seq,
  );
  const tokens = changeBucket(scope.tokens, limits.tpm, toUnits(change.tokens) + clipped.tokens, change, table.seq);
  const inFlight = Math.max(0, scope.inFlight + change.inFlight);
  table.scopes.set(name, { requests: requests.bucket, tokens: tokens.bucket, inFlight });
  return { requests: requests.clippedUnits, tokens: tokens.clippedUnits };
}

function changeBucket(
  bucket: MarkedBucket,
  limit: number | null,
  units: number,
  { seq, oldestSeq }: ScopeChange,
  newestSeq: number,
): { readonly bucket: MarkedBucket; readonly clippedUnits: number } {
  const lows = forgetBefore(noteLow(bucket.lows, newestSeq, bucket.usedUnits), Math.min(seq, oldestSeq));
  if (units >= 0) {
    const used = addUnits(bucket, limit, units);
    const clippedUnits = limit === null ? 0 : bucket.usedUnits + units - used.usedUnits;
    return { bucket: { ...used, lows }, clippedUnits };
  }
  const refund = readRefundUnits(-units, readLowSince(lows, seq));
  return { bucket: { ...refundBucket(bucket, refund), lows: lowerSince(lows, seq, refund) }, clippedUnits: 0 };
}

/** Of each kind of bucket, the one with the least left. */
export function readRates(table: ScopeTable, scopes: readonly LimitedScope[]): RateSnapshot {
  let rates: RateSnapshot = { requests: null, tokens: null };
  for (const [name, limits] of scopes) {
    const use = readScope(table, name, limits);
    const requests = readRateStatus(use.requests, limits.rpm);
    const tokens = readRateStatus(use.tokens, limits.tpm);
    rates = {
      requests:
        rates.requests === null || (requests?.remaining ?? Infinity) < rates.requests.remaining
          ? requests
          : rates.requests,
      tokens: rates.tokens === null || (tokens?.remaining ?? Infinity) < rates.tokens.remaining ? tokens : rates.tokens,
    };
  }
  return rates;
}

/** Requests in flight beside their limit, of the scope that has the least room. */
export type ConcurrencyStatus = { readonly limit: number | null; readonly inUse: number };

/** How many requests are in flight, and how many may be. */
export function readConcurrency(table: ScopeTable, scopes: readonly LimitedScope[]): ConcurrencyStatus {
  let least: ConcurrencyStatus = { limit: null, inUse: table.scopes.get(WORKSPACE_SCOPE)?.inFlight ?? 0 };
  for (const [name, { concurrency }] of scopes) {
    if (concurrency === null) continue;
    const inUse = table.scopes.get(name)?.inFlight ?? 0;
    if (least.limit === null || concurrency - inUse < least.limit - least.inUse) least = { limit: concurrency, inUse };
  }
  return least;
}
