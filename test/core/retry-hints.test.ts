// Headers about trying again, in the formats that SDKs and OpenAI's own clients read.

import { expect, test } from 'vitest';
import { toGoDuration, toHttpHints, toRateLimitHeaders } from '../../src/core/retry-hints.ts';

test.each([
  [0, '0s'],
  [1, '1ms'],
  [120, '120ms'],
  [999, '999ms'],
  [1000, '1s'],
  [8640, '8.64s'],
  [59_999, '59.999s'],
  [60_000, '1m0s'],
  [90_000, '1m30s'],
  [360_000, '6m0s'],
  [3_600_000, '1h0m0s'],
  [3_661_001, '1h1m1.001s'],
  [0.2, '1ms'],
  [-5, '0s'],
])('WIRE §3: %d ms is %s', (ms, text) => {
  expect(toGoDuration(ms)).toBe(text);
});

test.each([
  [0, '1', '1'],
  [1, '1', '1'],
  [999.2, '1', '1000'],
  [1000, '1', '1000'],
  [1001, '2', '1001'],
  [59_001, '60', '59001'],
  [60_000, '60', '60000'],
  [61_000, '60', '60000'],
  [120_000, '60', '60000'],
])('§5 Retry-After for %d ms is whole seconds from 1 to 60', (afterMs, seconds, ms) => {
  expect(toHttpHints({ retry: true, afterMs })).toEqual({
    'x-should-retry': 'true',
    'retry-after': seconds,
    'retry-after-ms': ms,
  });
});

test('§3 without a wait there is no Retry-After', () => {
  expect(toHttpHints({ retry: false })).toEqual({ 'x-should-retry': 'false' });
  expect(toHttpHints({ retry: true })).toEqual({ 'x-should-retry': 'true' });
});

test('§5 six headers in OpenAI’s formats; no limit, no header', () => {
  const requests = { limit: 60, remaining: 59, resetMs: 1000 };
  const tokens = { limit: 150_000, remaining: 149_984, resetMs: 360_000 };
  const ofRequests = {
    'x-ratelimit-limit-requests': '60',
    'x-ratelimit-remaining-requests': '59',
    'x-ratelimit-reset-requests': '1s',
  };
  expect(toRateLimitHeaders({ requests, tokens })).toEqual({
    ...ofRequests,
    'x-ratelimit-limit-tokens': '150000',
    'x-ratelimit-remaining-tokens': '149984',
    'x-ratelimit-reset-tokens': '6m0s',
  });
  expect(toRateLimitHeaders({ requests, tokens: null })).toEqual(ofRequests);
  expect(toRateLimitHeaders({ requests: null, tokens: null })).toEqual({});
});
