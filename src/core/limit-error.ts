// What a refusal by a limit says: scope, limit, used, requested, and how long to wait (SPEC §3).

import { buildErrorAnswer as answer, type OpenAIError } from './error-envelope.ts';
import { type GatewayError } from './errors.ts';
import { toHttpHints } from './retry-hints.ts';

type LimitFault = Extract<
  GatewayError,
  {
    kind:
      'too_many_failed_keys' | 'rate_limited' | 'request_above_bucket' | 'concurrency_limited' | 'insufficient_quota';
  }
>;

/** Translates a refusal by a limit. */
export function toLimitFault(error: LimitFault): OpenAIError {
  switch (error.kind) {
    case 'too_many_failed_keys':
      return answer(
        429,
        'Too many requests with keys that are not valid. Please try again in 60s.',
        'requests',
        'rate_limit_exceeded',
        null,
        toHttpHints({ retry: false, afterMs: 60_000 }),
      );
    case 'rate_limited':
      return answer(
        429,
        `Rate limit reached for this ${error.scope} on ${error.bucket} per minute: Limit ${error.limit}, ` +
          `Used ${error.used}, Requested ${error.requested}. Please try again in ${error.retryAfterMs / 1000}s.`,
        error.bucket,
        'rate_limit_exceeded',
        null,
        toHttpHints({ retry: true, afterMs: error.retryAfterMs }),
      );
    case 'request_above_bucket':
      return answer(
        429,
        `Request too large for this ${error.scope} on tokens per minute: Limit ${error.limit}, ` +
          `Requested ${error.requested}. Shorten the prompt or lower the output limit.`,
        'tokens',
        'rate_limit_exceeded',
        null,
        toHttpHints({ retry: false }),
      );
    case 'concurrency_limited':
      return answer(
        429,
        `Too many requests in flight for this ${error.scope}: Limit ${error.limit}, Used ${error.used}, Requested 1.`,
        'requests',
        'concurrency_limit_exceeded',
        null,
        toHttpHints({ retry: true, afterMs: 1000 }),
      );
    case 'insufficient_quota':
      return answer(
        429,
        'The credits left in this workspace do not pay for this request. Add credits or shorten the prompt.',
        'insufficient_quota',
        'insufficient_quota',
        null,
        toHttpHints({ retry: false }),
      );
  }
}
