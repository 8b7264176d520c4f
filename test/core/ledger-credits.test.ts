// Prepaid credits in the ledger: holds, limits bought, refusals, and what each way of ending gives back and charges
// (SPEC §5). A token costs 1,000 nano-USD here. What holds over any schedule is in ledger-schedules.test.ts too.

import { describe, expect, test } from 'vitest';
import { beginRebuild, createCredits, endRebuild } from '../../src/core/ledger-credits.ts';
import { applyCommand, createLedgerState } from '../../src/core/ledger-state.ts';
import { type LedgerDecision } from '../../src/core/ledger-types.ts';
import { type ReservationOptions } from './build-reservation.ts';
import { command, countBalance, createLedgerHarness, type LedgerHarness, readBalanceOf } from './ledger-harness.ts';
import { createSeededRandom } from './seeded-random.ts';

const NOW = 1_796_000_000_000;
const TOKEN = 1000;
/** At most 10 tokens in and 20 out: a hold of 30 tokens. */
const PREPAID: ReservationOptions = { credit: { inputTokensMax: 10, outputTokensMax: 20 } };
const HOLD = 30 * TOKEN;

function reserve(ledger: LedgerHarness, options: ReservationOptions = {}): LedgerDecision {
  return ledger.apply(command('reserve', { ...PREPAID, ...options }), NOW);
}

/** What a decision comes to: the limit granted, null for all that was asked for, or the kind of the refusal. */
function outcome(decision: LedgerDecision): number | null | string {
  if (decision.type === 'admitted') return decision.outputLimit ?? null;
  return decision.type === 'refused' ? decision.error.kind : decision.type;
}

describe('admission', () => {
  test.each<[string, number, ReservationOptions, number | null | string]>([
    ['a balance of exactly the hold buys all', HOLD, {}, null],
    ['one nano-USD less buys a token less', HOLD - 1, {}, 19],
    ['a balance for one token of output', 11 * TOKEN, {}, 1],
    ['no token of output: nothing affordable', 11 * TOKEN - 1, {}, 'insufficient_quota'],
    ['not even the input', 9 * TOKEN, {}, 'insufficient_quota'],
    ['nothing was ever granted', 0, {}, 'insufficient_quota'],
    ['a correction took more than there was', -1, {}, 'insufficient_quota'],
    ['several choices each get their share', 10 * TOKEN + 9 * TOKEN, { choices: 4 }, 2],
    ['a bucket refuses first: it passes by itself', 0, { limits: { rpm: 0 } }, 'rate_limited'],
    ['no credits at all and no credit terms: postpaid', 0, { credit: null }, null],
    ['a request that can cost nothing', -1, { credit: { inputTokensMax: 0, outputTokensMax: 0 } }, null],
  ])('§5 %s', (_name, granted, options, expected) => {
    const ledger = createLedgerHarness(granted);
    expect(outcome(reserve(ledger, options))).toBe(expected);
    expect(readBalanceOf(ledger)).toBe(countBalance(ledger));
    if (typeof expected === 'string') expect(ledger.state.credits.heldNanoUsd, 'a refusal holds nothing').toBe(0);
  });

  test('§5 what the balance does not buy is not taken from the token bucket either', () => {
    const ledger = createLedgerHarness(15 * TOKEN);
    expect(outcome(reserve(ledger, { limits: { tpm: 16 } }))).toBe(5);
    expect([...ledger.state.open.values()].map(({ takenTokens }) => takenTokens)).toEqual([15]);
  });

  test('§5 a repeated reserve is answered with the same limit and holds nothing more', () => {
    const ledger = createLedgerHarness(15 * TOKEN);
    expect([outcome(reserve(ledger)), outcome(reserve(ledger))]).toEqual([5, 5]);
    expect(ledger.state.credits.heldNanoUsd).toBe(15 * TOKEN);
  });

  test('§5 insufficient_quota is never said from an old copy of the grants; what they cover is admitted', () => {
    const ledger = createLedgerHarness(HOLD);
    ledger.funds = { grantedNanoUsd: HOLD, isCurrent: false };
    expect(outcome(reserve(ledger))).toBeNull();
    expect(outcome(reserve(ledger, { id: 'req_2' }))).toBe('limiter_unavailable');
  });

  test('§5 while it is not known what was spent before, no prepaid request is admitted; others are', () => {
    const state = createLedgerState();
    const funds = { grantedNanoUsd: 1e12, isCurrent: true };
    const ask = (options: ReservationOptions): LedgerDecision =>
      applyCommand(state, command('reserve', options), NOW, null, funds).decision;
    expect(outcome(ask(PREPAID))).toBe('limiter_unavailable');
    expect(outcome(ask({ credit: null }))).toBeNull();
  });

  test.each([
    [20 * HOLD, false],
    [20 * HOLD - 1, true],
    [HOLD / 2, true],
  ])('§5 with a balance of %i the hold is made durable first: %s', (granted, saveFirst) => {
    const { state, funds } = createLedgerHarness(granted);
    expect(applyCommand(state, command('reserve', PREPAID), NOW, null, funds).saveFirst).toBe(saveFirst);
  });
});

describe('what is given back and what is charged', () => {
  const used = [8, 5] as const;
  const cost = 13 * TOKEN;

  test.each<[string, (ledger: LedgerHarness) => void, spent: number, held: number]>([
    ['settled', (ledger) => ledger.apply(command('settle', { used }), NOW), cost, 0],
    [
      'settled twice',
      (ledger) => {
        ledger.apply(command('settle', { used }), NOW);
        ledger.apply(command('settle', { used: [100, 100] }), NOW);
      },
      cost,
      0,
    ],
    ['failed', (ledger) => ledger.apply(command('settle', { used, status: 'failed' }), NOW), 0, 0],
    ['released', (ledger) => ledger.apply({ type: 'release', id: 'req_1' }, NOW), 0, 0],
    ['renewed', (ledger) => ledger.apply(command('renew', { ...PREPAID, used }), NOW), 0, HOLD],
    [
      'lost at the last counts',
      (ledger) => {
        ledger.apply(command('renew', { ...PREPAID, used }), NOW);
        ledger.expire(NOW + 60_000);
      },
      cost,
      0,
    ],
    [
      'lost, then settled: the difference',
      (ledger) => {
        ledger.apply(command('renew', { ...PREPAID, used }), NOW);
        ledger.expire(NOW + 60_000);
        ledger.apply(command('settle', { used: [8, 9] }), NOW + 61_000);
      },
      17 * TOKEN,
      0,
    ],
    [
      'lost, then renewed: held is what it may still be charged',
      (ledger) => {
        ledger.apply(command('renew', { ...PREPAID, used }), NOW);
        ledger.expire(NOW + 60_000);
        ledger.apply(command('renew', { ...PREPAID, used: [8, 6] }), NOW + 61_000);
      },
      cost,
      HOLD - cost,
    ],
  ])('§5 %s', (_name, run, spent, held) => {
    const ledger = createLedgerHarness(HOLD);
    reserve(ledger);
    run(ledger);
    expect(ledger.state.credits).toMatchObject({ spentNanoUsd: spent, heldNanoUsd: held });
    expect(readBalanceOf(ledger)).toBe(countBalance(ledger));
  });

  test('§5 a reservation that was forgotten is taken in again by its renewal, with its hold, and charged when it ends', () => {
    const ledger = createLedgerHarness(HOLD / 2);
    ledger.apply(command('renew', PREPAID), NOW);
    expect(ledger.state.credits.heldNanoUsd).toBe(HOLD);
    expect(outcome(reserve(ledger, { id: 'req_2' }))).toBe('insufficient_quota');
    ledger.apply(command('settle', { ...PREPAID, used }), NOW);
    expect(ledger.state.credits).toMatchObject({ spentNanoUsd: cost, heldNanoUsd: 0 });
  });

  test('§9 a postpaid workspace’s spending is summed too', () => {
    const ledger = createLedgerHarness();
    reserve(ledger, { credit: null });
    ledger.apply(command('settle', { used }), NOW);
    expect(ledger.state.credits).toMatchObject({ spentNanoUsd: cost, heldNanoUsd: 0 });
  });
});

test('§5 counting anew: own receipts first, those closed meanwhile once, all others when D1 has answered', () => {
  const credits = createCredits();
  credits.spentNanoUsd = 7;
  beginRebuild(credits, 5);
  credits.spentNanoUsd += 2;
  expect(credits.isWhole).toBe(false);
  endRebuild(credits, 100);
  expect(credits).toEqual({ spentNanoUsd: 107, heldNanoUsd: 0, isWhole: true });
});

test('§5 2,000 bursts of requests that keep to their limits: no balance ever goes below zero', () => {
  let cut = 0;
  let refused = 0;
  for (let seed = 0; seed < 2000; seed += 1) {
    const random = createSeededRandom(seed);
    const ledger = createLedgerHarness(random.int(0, 300) * TOKEN + random.int(0, 999));
    for (let step = 0; step < 30; step += 1) {
      const options = {
        id: `req_${step}`,
        choices: random.int(1, 3),
        credit: { inputTokensMax: random.int(1, 30), outputTokensMax: random.int(1, 60) },
      };
      const granted = outcome(ledger.apply(command('reserve', options), NOW + step));
      if (typeof granted === 'string') refused += 1;
      else if (granted !== null) cut += 1;
      const running = [...ledger.state.open.values()];
      if (running.length > 0 && random.chance(0.5)) {
        const { reservation, outputLimit } = random.pick(running);
        const { credit, choices, receipt } = reservation;
        const most = (outputLimit ?? credit?.outputTokensMax ?? 0) * choices;
        const spent = [random.int(0, credit?.inputTokensMax ?? 0), random.int(0, most)] as const;
        ledger.apply(command('settle', { id: receipt.id, used: spent }), NOW + step);
      }
      const balance = readBalanceOf(ledger);
      if (balance < 0 || balance !== countBalance(ledger)) expect.fail(`seed ${seed}, step ${step}: ${balance}`);
    }
  }
  expect(Math.min(cut, refused), 'the bursts must run out of credits').toBeGreaterThan(2000);
});
