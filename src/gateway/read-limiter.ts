// Reads are limited per key in this isolate: a damper against polling, not an account (SPEC §1).

import { type GatewayError } from '../core/errors.ts';
import { err, ok, type Result } from '../core/result.ts';
import { type Bucket, drainBucket, EMPTY_BUCKET, readUsed, readWaitMs, useBucket } from '../core/token-bucket.ts';

/** Takes one read of a key, or refuses it with the time to wait. */
export type ReadLimiter = (keyId: string, nowMs: number) => Result<null, GatewayError>;

const READS_PER_MINUTE = 60;
const KEYS_MAX = 10_000;

/** Creates a limiter of 60 reads a minute per key. */
export function createReadLimiter(): ReadLimiter {
  const buckets = new Map<string, Bucket>();
  return (keyId, nowMs) => {
    const bucket = drainBucket(buckets.get(keyId) ?? EMPTY_BUCKET, READS_PER_MINUTE, nowMs);
    const retryAfterMs = readWaitMs(bucket, READS_PER_MINUTE, 1);
    if (retryAfterMs > 0) {
      const used = readUsed(bucket);
      const limit = READS_PER_MINUTE;
      return err({ kind: 'rate_limited', bucket: 'requests', scope: 'key', limit, used, requested: 1, retryAfterMs });
    }
    if (buckets.size >= KEYS_MAX) buckets.clear();
    buckets.set(keyId, useBucket(bucket, READS_PER_MINUTE, 1));
    return ok(null);
  };
}
