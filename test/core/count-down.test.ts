// Refusals counted down, against the ledger's own answer at the later time: the same scope, limit and numbers, and never
// a shorter wait.

import { describe, expect, test } from 'vitest';
import { countDownError, countDownRates } from '../../src/core/count-down.ts';
import { type GatewayError } from '../../src/core/errors.ts';
import { applyCommand, createLedgerState } from '../../src/core/ledger-state.ts';
import { type LedgerDecision, type LedgerState } from '../../src/core/ledger-types.ts';
import { buildReservation, type ReservationOptions } from './build-reservation.ts';
import { createSeededRandom } from './seeded-random.ts';

const NOW = 1_796_000_000_000;
let ids = 0;

function reserve(state: LedgerState, nowMs: number, options: ReservationOptions): LedgerDecision {
  ids += 1;
  const reservation = buildReservation({ id: `req_${ids}`, ...options });
  return applyCommand(state, { type: 'reserve', reservation }, nowMs, null).decision;
}

describe('§5 hints are counted down', () => {
  test.each([...Array(60).keys()])('§5 as the ledger itself would tell it later (seed %i)', (seed) => {
    const random = createSeededRandom(seed);
    const limits = { rpm: random.int(1, 200), tpm: random.int(500, 20_000) };
    const options = { limits, prompt: random.int(1, 200), output: random.int(1, 200) };
    const state = createLedgerState();
    let refused = reserve(state, NOW, options);
    while (refused.type === 'admitted') refused = reserve(state, NOW, options);
    if (refused.type !== 'refused') throw new Error(refused.type);
    const elapsedMs = random.int(0, 2000);
    const error = countDownError(refused.error, elapsedMs, 0);
    const later = reserve(state, NOW + elapsedMs, options);
    if (later.type === 'admitted') {
      expect(error).toBeNull();
      return;
    }
    if (later.type !== 'refused') throw new Error(later.type);
    expect(error).toEqual(later.error);
    const rates = countDownRates(refused.rates, elapsedMs);
    for (const bucket of ['requests', 'tokens'] as const) {
      expect(rates[bucket]?.limit).toBe(later.rates[bucket]?.limit);
      expect(rates[bucket]?.resetMs).toBe(later.rates[bucket]?.resetMs);
      const off = (later.rates[bucket]?.remaining ?? 0) - (rates[bucket]?.remaining ?? 0);
      // Rounded down where the ledger knows better.
      expect([0, 1]).toContain(off);
    }
  });

  test('§5 a request for more tokens is told a longer wait, as the ledger would', () => {
    const limits = { tpm: 1000 };
    const state = createLedgerState();
    reserve(state, NOW, { limits, prompt: 900, output: 50 });
    const refused = reserve(state, NOW, { limits, prompt: 100, output: 50 });
    const more = reserve(state, NOW + 500, { limits, prompt: 300, output: 80 });
    if (refused.type !== 'refused' || more.type !== 'refused') throw new Error('admitted');
    expect(countDownError(refused.error, 500, 230)).toEqual(more.error);
    expect(countDownError(refused.error, 500, 900)).toBeNull();
  });

  test('§5 what has no wait stays as it is, but for what is asked', () => {
    const large: GatewayError = { kind: 'request_above_bucket', scope: 'key', limit: 10, requested: 11 };
    expect(countDownError(large, 500, 5)).toEqual({ ...large, requested: 16 });
    const busy: GatewayError = { kind: 'concurrency_limited', scope: 'key', limit: 1, used: 1 };
    expect(countDownError(busy, 100, 5)).toEqual(busy);
    expect(countDownRates({ requests: null, tokens: null }, 100)).toEqual({ requests: null, tokens: null });
  });
});
