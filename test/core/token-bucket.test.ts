// One bucket: capacity, drain, debt, refunds, and a limit that changes under it.

import { describe, expect, test } from 'vitest';
import {
  type Bucket,
  drainBucket,
  EMPTY_BUCKET,
  readRateStatus,
  readUsed,
  readWaitMs,
  readRefundUnits,
  refundBucket,
  toUnits,
  useBucket,
} from '../../src/core/token-bucket.ts';

const NOW = 1_796_000_000_000;

/** A bucket of `limit` a minute with `used` taken at NOW. */
function bucket(limit: number, used: number): Bucket {
  return useBucket(drainBucket(EMPTY_BUCKET, limit, NOW), limit, used);
}

describe('capacity and drain', () => {
  test('§5 capacity is the limit: that many fit at once, one more waits exactly one slot', () => {
    expect(readWaitMs(bucket(60, 59), 60, 1)).toBe(0);
    expect(readWaitMs(bucket(60, 60), 60, 1)).toBe(1000);
    expect(readWaitMs(bucket(7, 7), 7, 1)).toBe(Math.ceil(60_000 / 7));
  });

  test.each([1, 7, 60, 600, 1_000_000, 1_000_000_000])(
    '§5 limit %i: the wait is exact: one millisecond less is refused, all of it is admitted',
    (limit) => {
      const full = bucket(limit, limit);
      const waitMs = readWaitMs(full, limit, 1);
      expect(readWaitMs(drainBucket(full, limit, NOW + waitMs), limit, 1)).toBe(0);
      expect(readWaitMs(drainBucket(full, limit, NOW + waitMs - 1), limit, 1)).toBe(1);
    },
  );

  test('§5 rate is limit / 60 s, without loss by many small steps', () => {
    let stepped = bucket(7, 7);
    for (let ms = 1; ms <= 30_000; ms += 1) stepped = drainBucket(stepped, 7, NOW + ms);
    expect(stepped).toEqual(drainBucket(bucket(7, 7), 7, NOW + 30_000));
    expect(readUsed(stepped)).toBe(4);
    expect(readUsed(drainBucket(stepped, 7, NOW + 60_000))).toBe(0);
    expect(drainBucket(stepped, 7, NOW + 1e9).usedUnits).toBe(0);
  });

  test('§5 a clock that steps back drains nothing, and forgets no time', () => {
    const back = drainBucket(bucket(60, 30), 60, NOW - 60_000);
    expect(back).toEqual({ usedUnits: 30 * 60_000, atMs: NOW });
    expect(readUsed(drainBucket(back, 60, NOW + 1000))).toBe(29);
  });

  test('§5 an amount above the limit never fits; a limit of zero admits nothing', () => {
    expect(readWaitMs(bucket(60, 0), 60, 61)).toBe(Infinity);
    expect(readWaitMs(bucket(0, 0), 0, 1)).toBe(Infinity);
  });

  test('§2 null is unlimited', () => {
    expect(readWaitMs(EMPTY_BUCKET, null, 1e12)).toBe(0);
    expect(useBucket(EMPTY_BUCKET, null, 5)).toEqual(EMPTY_BUCKET);
    expect(readRateStatus(EMPTY_BUCKET, null)).toBeNull();
  });
});

describe('debt and refunds', () => {
  test('§5 debt stops at minus one capacity: never more than two minutes to wait', () => {
    const debt = bucket(60, 1_000_000);
    expect(readUsed(debt)).toBe(120);
    expect(readRateStatus(debt, 60)).toEqual({ limit: 60, remaining: 0, resetMs: 120_000 });
  });

  test('§5 a refund never lifts a bucket above capacity', () => {
    const refunded = refundBucket(bucket(60, 10), readRefundUnits(toUnits(50), Infinity));
    expect(readUsed(refunded)).toBe(0);
    expect(readRateStatus(refunded, 60)?.remaining).toBe(60);
    expect(readWaitMs(refunded, 60, 60)).toBe(0);
    expect(readWaitMs(useBucket(refunded, 60, 60), 60, 1)).toBe(1000);
  });

  test('§5 a refund gives back what was taken', () => {
    expect(refundBucket(bucket(60, 30), readRefundUnits(toUnits(10), Infinity))).toEqual(bucket(60, 20));
  });

  test('§5 what has drained away since it was taken is not given back', () => {
    const low = bucket(60, 4).usedUnits;
    expect(refundBucket(bucket(60, 30), readRefundUnits(toUnits(10), low))).toEqual(bucket(60, 26));
    expect(readRefundUnits(toUnits(10), 0)).toBe(0);
  });
});

describe('a new limit takes hold at once', () => {
  test('§5 what is kept is what is used: raised, there is more left; lowered, less', () => {
    const half = bucket(60, 30);
    expect(readRateStatus(half, 600)).toEqual({ limit: 600, remaining: 570, resetMs: 3000 });
    expect(readRateStatus(half, 20)).toEqual({ limit: 20, remaining: 0, resetMs: 90_000 });
    expect(readWaitMs(half, 20, 1)).toBe(33_000);
  });
});

test.each([
  [0, { limit: 60, remaining: 60, resetMs: 0 }],
  [1, { limit: 60, remaining: 59, resetMs: 1000 }],
  [60, { limit: 60, remaining: 0, resetMs: 60_000 }],
])('§5 headers with %i used: what is left, and the time until full', (used, status) => {
  expect(readRateStatus(bucket(60, used), 60)).toEqual(status);
});

test('§5 half a request left is none left', () => {
  expect(readRateStatus(drainBucket(bucket(60, 60), 60, NOW + 500), 60)).toEqual({
    limit: 60,
    remaining: 0,
    resetMs: 59_500,
  });
});
