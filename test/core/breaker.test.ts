// The breaker: three failures open it, one probe at a time, a success closes it.

import { describe, expect, it } from 'vitest';

import {
  beginAttempt,
  type Breaker,
  CLOSED_BREAKER,
  noteFailure,
  noteNothing,
  noteSuccess,
  readBreaker,
} from '../../src/core/breaker.ts';

function failTimes(times: number, nowMs: number): Breaker {
  let breaker = CLOSED_BREAKER;
  for (let failure = 0; failure < times; failure += 1) breaker = noteFailure(breaker, nowMs);
  return breaker;
}

describe('§6 a breaker per isolate with a half-open probe', () => {
  it('§6 an isolate learns in three failures in a row', () => {
    expect(readBreaker(failTimes(2, 0), 0)).toBe('closed');
    expect(readBreaker(failTimes(3, 0), 0)).toBe('open');
    expect(readBreaker(noteFailure(noteSuccess(), 0), 0)).toBe('closed');
  });

  it('§6 after the pause one request may probe, the others still ask elsewhere', () => {
    const open = failTimes(3, 0);
    expect(readBreaker(open, 4999)).toBe('open');
    expect(readBreaker(open, 5000)).toBe('probe');
    const probing = beginAttempt(open, 5000);
    expect(readBreaker(probing, 5000)).toBe('open');
    expect(readBreaker(noteSuccess(), 5000)).toBe('closed');
    expect(readBreaker(noteNothing(probing), 5000)).toBe('probe');
  });

  it('§6 a probe that fails doubles the pause, up to a minute', () => {
    const again = noteFailure(beginAttempt(failTimes(3, 0), 5000), 5000);
    expect(readBreaker(again, 14_999)).toBe('open');
    expect(readBreaker(again, 15_000)).toBe('probe');
    expect(readBreaker(failTimes(50, 0), 59_999)).toBe('open');
    expect(readBreaker(failTimes(50, 0), 60_000)).toBe('probe');
  });

  it('§6 an attempt on a closed breaker is no probe', () => {
    expect(beginAttempt(failTimes(1, 0), 0)).toEqual(failTimes(1, 0));
  });
});
