// Low marks against the plain definition: the lowest use noted since a reservation was taken.

import { describe, expect, test } from 'vitest';

import { forgetBefore, type LowMark, lowerSince, noteLow, readLowSince } from '../../src/core/low-marks.ts';
import { createSeededRandom } from './seeded-random.ts';

describe('§5 what has drained away cannot be given back', () => {
  test('§5 the lowest use since each reservation, as a list of all uses would say it: 500 seeded histories', () => {
    for (let seed = 1; seed <= 500; seed += 1) {
      const random = createSeededRandom(seed);
      let marks: readonly LowMark[] = [];
      let all: LowMark[] = [];
      let seq = 0;
      let oldest = 0;
      for (let step = 0; step < 60; step += 1) {
        const units = random.int(0, 100);
        marks = noteLow(marks, seq, units);
        all.push({ seq, units });
        const choice = random.int(0, 3);
        if (choice === 0) seq += 1;
        if (choice === 1) {
          const since = random.int(oldest, seq);
          const lowest = Math.min(...all.filter((mark) => mark.seq >= since).map((mark) => mark.units));
          const refund = random.int(0, Number.isFinite(lowest) ? lowest : 0);
          marks = lowerSince(marks, since, refund);
          all = all.map((mark) => (mark.seq >= since ? { seq: mark.seq, units: mark.units - refund } : mark));
        }
        if (choice === 2) {
          oldest = random.int(oldest, seq);
          marks = forgetBefore(marks, oldest);
        }
        for (let since = oldest; since <= seq; since += 1) {
          const lowest = Math.min(...all.filter((mark) => mark.seq >= since).map((mark) => mark.units));
          expect(readLowSince(marks, since), `seed ${seed}, since ${since}`).toBe(lowest);
        }
      }
    }
  });
});
