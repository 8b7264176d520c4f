// The headers that tell a client whether and when to try again, and the limit headers in OpenAI's formats.
// SDK behaviour behind the choices: WIRE §2a and §3.

/** What to tell a client about trying again. */
export type RetryHint = { readonly retry: boolean; readonly afterMs?: number };

/** One bucket as the client sees it: per-minute limit, what is left, and the time until it is full again. */
export type RateStatus = { readonly limit: number; readonly remaining: number; readonly resetMs: number };

/** The buckets with the least left; null where no limit is set. */
export type RateSnapshot = { readonly requests: RateStatus | null; readonly tokens: RateStatus | null };

const RETRY_AFTER_SECONDS_MAX = 60;

/**
 * Retry headers of a refusal. Retry-After is whole seconds from 1 to 60: openai-node 7 ignores more, openai-python
 * gives up on much more. `retry-after-ms` says the same wait to the millisecond, and is capped alike.
 */
export function toHttpHints(hint: RetryHint): Record<string, string> {
  const headers: Record<string, string> = { 'x-should-retry': String(hint.retry) };
  if (hint.afterMs === undefined) return headers;
  const waitMs = Math.min(Math.max(1, Math.ceil(hint.afterMs)), RETRY_AFTER_SECONDS_MAX * 1000);
  headers['retry-after'] = String(Math.max(1, Math.ceil(waitMs / 1000)));
  headers['retry-after-ms'] = String(waitMs);
  return headers;
}

/** The six `x-ratelimit-*` headers of OpenAI; a bucket without a limit has none (SPEC §5). */
export function toRateLimitHeaders(rates: RateSnapshot): Record<string, string> {
  const headers: Record<string, string> = {};
  for (const [bucket, status] of [
    ['requests', rates.requests],
    ['tokens', rates.tokens],
  ] as const) {
    if (status === null) continue;
    headers[`x-ratelimit-limit-${bucket}`] = String(status.limit);
    headers[`x-ratelimit-remaining-${bucket}`] = String(status.remaining);
    headers[`x-ratelimit-reset-${bucket}`] = toGoDuration(status.resetMs);
  }
  return headers;
}

/** A duration as Go prints it at millisecond precision: `0s`, `120ms`, `8.64s`, `6m0s`, `1h0m0s`. */
export function toGoDuration(durationMs: number): string {
  const ms = Math.max(0, Math.ceil(durationMs));
  if (ms === 0) return '0s';
  if (ms < 1000) return `${ms}ms`;
  const hours = Math.floor(ms / 3_600_000);
  const minutes = Math.floor((ms % 3_600_000) / 60_000);
  const seconds = (ms % 60_000) / 1000;
  if (hours > 0) return `${hours}h${minutes}m${seconds}s`;
  return minutes > 0 ? `${minutes}m${seconds}s` : `${seconds}s`;
}
