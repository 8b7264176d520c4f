// Request ids sort by time and are as random as what they are given.

import { expect, test } from 'vitest';
import { BEYOND_IDS, buildRequestId, toLowestId } from '../../src/core/request-id.ts';
import { createSeededRandom } from './seeded-random.ts';

const LOW = new Uint8Array(16);
const HIGH = new Uint8Array(16).fill(255);

test('§1 req_ and 26 digits of Crockford’s base 32', () => {
  expect(buildRequestId(1_796_093_522_000, HIGH)).toMatch(/^req_[0-9a-hjkmnp-tv-z]{10}z{16}$/);
  expect(buildRequestId(0, LOW)).toBe(`req_${'0'.repeat(26)}`);
});

test('§1 ids sort by time, whatever the random part', () => {
  const random = createSeededRandom(1);
  for (let round = 0; round < 2000; round += 1) {
    const early = random.int(0, 2 ** 48 - 2);
    const late = random.int(early + 1, Math.min(2 ** 48 - 1, early + 10 ** random.int(0, 13)));
    const [first, second] = [buildRequestId(early, HIGH), buildRequestId(late, LOW)];
    if (first >= second || first.length !== second.length) expect.fail(`${early} → ${first}, ${late} → ${second}`);
  }
});

test('§1 each of the sixteen random bytes counts; more are not used', () => {
  const ids = new Set(Array.from({ length: 16 }, (_, at) => buildRequestId(5, LOW.with(at, 1))));
  expect(ids.size).toBe(16);
  expect(buildRequestId(5, new Uint8Array(32))).toBe(buildRequestId(5, LOW));
});

test('§9 a span of time is a range of ids: the lowest id of a millisecond lies between those before and its own', () => {
  for (const timeMs of [0, 1, 31, 32, 1_764_547_199_999, 2 ** 48 - 2]) {
    const bound = toLowestId(timeMs);
    expect(bound < buildRequestId(timeMs, new Uint8Array(16))).toBe(true);
    if (timeMs > 0) expect(buildRequestId(timeMs - 1, new Uint8Array(16).fill(255)) < bound).toBe(true);
    expect(buildRequestId(timeMs, new Uint8Array(16).fill(255)) < BEYOND_IDS).toBe(true);
  }
  expect(toLowestId(-5)).toBe(toLowestId(0));
});
