// A refusal told again a little later: the same words with the time that has passed taken off (SPEC §5). Pure; what is
// told is never better than the ledger's own answer would be to a caller who is alone.

import { type GatewayError } from './errors.ts';
import { type RateSnapshot, type RateStatus } from './retry-hints.ts';

const MINUTE_MS = 60_000;

/**
 * The error for a request that asks for `moreTokens` more than the one refused, `elapsedMs` later.
 *
 * @returns null when it would be another error: the wait is over, or the request has outgrown the bucket.
 */
export function countDownError(error: GatewayError, elapsedMs: number, moreTokens: number): GatewayError | null {
  if (error.kind === 'request_above_bucket') return { ...error, requested: error.requested + moreTokens };
  if (error.kind !== 'rate_limited') return error;
  const { limit } = error;
  const more = error.bucket === 'tokens' ? moreTokens : 0;
  const requested = error.requested + more;
  if (more > 0 && requested > limit) return null;
  const moreMs = more === 0 ? 0 : Math.ceil((more * MINUTE_MS) / limit);
  const retryAfterMs = error.retryAfterMs - elapsedMs + moreMs;
  if (retryAfterMs <= 0) return null;
  const used = Math.max(0, error.used - Math.floor((elapsedMs * limit) / MINUTE_MS));
  return { ...error, used, requested, retryAfterMs };
}

/** The limits as they stand `elapsedMs` later, if nothing else was used or given back. */
export function countDownRates({ requests, tokens }: RateSnapshot, elapsedMs: number): RateSnapshot {
  return { requests: countDownStatus(requests, elapsedMs), tokens: countDownStatus(tokens, elapsedMs) };
}

function countDownStatus(status: RateStatus | null, elapsedMs: number): RateStatus | null {
  if (status === null) return null;
  const { limit } = status;
  const resetMs = Math.max(0, status.resetMs - elapsedMs);
  const drained = Math.floor(limit - (resetMs * limit) / MINUTE_MS);
  return { limit, remaining: Math.max(status.remaining, drained), resetMs };
}
