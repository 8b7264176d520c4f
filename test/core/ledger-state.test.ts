// The ledger's rules one by one (SPEC §5). What holds over any schedule is in ledger-schedules.test.ts.

import { describe, expect, test } from 'vitest';
import { type GatewayError } from '../../src/core/errors.ts';
import { applyCommand, createLedgerState } from '../../src/core/ledger-state.ts';
import { type LedgerDecision } from '../../src/core/ledger-types.ts';
import { type ReservationOptions } from './build-reservation.ts';
import { command, createLedgerHarness, type LedgerHarness, readUse } from './ledger-harness.ts';

const NOW = 1_796_000_000_000;
const LIMITS = { rpm: 60, tpm: 6000, concurrency: 5 };
const NO_DRAIN = { rpm: 60, tpm: 6000 };

function reserve(ledger: LedgerHarness, options: ReservationOptions, nowMs = NOW): GatewayError | 'admitted' {
  const decision = ledger.apply(command('reserve', options), nowMs);
  if (decision.type === 'refused') return decision.error;
  expect(decision.type).toBe('admitted');
  return 'admitted';
}

/** A ledger in which `count` requests of `options` were admitted at NOW. */
function filled(count: number, options: ReservationOptions): LedgerHarness {
  const ledger = createLedgerHarness();
  for (let at = 0; at < count; at += 1) expect(reserve(ledger, { ...options, id: `req_old_${at}` })).toBe('admitted');
  return ledger;
}

const taken = (ledger: LedgerHarness): number => readUse(ledger.state, '', { rpm: null, tpm: 1e9 }).tokens;
const uses = (ledger: LedgerHarness): unknown => [
  readUse(ledger.state, '', NO_DRAIN),
  readUse(ledger.state, 'k', { rpm: 30, tpm: 600 }),
];
const both = (requests: number, tokens: number, inFlight: number): unknown => [
  { requests, tokens, inFlight },
  { requests, tokens, inFlight },
];
/** Used at `later`, when one minute has drained everything taken before. */
const use = (ledger: LedgerHarness): unknown => readUse(ledger.state, '', NO_DRAIN);

describe('refusals', () => {
  test.each<[string, number, ReservationOptions, GatewayError]>([
    [
      'the workspace’s requests',
      6,
      { limits: { rpm: 6 } },
      {
        kind: 'rate_limited',
        bucket: 'requests',
        scope: 'workspace',
        limit: 6,
        used: 6,
        requested: 1,
        retryAfterMs: 10_000,
      },
    ],
    [
      'the workspace’s tokens',
      3,
      { limits: { tpm: 100 } },
      {
        kind: 'rate_limited',
        bucket: 'tokens',
        scope: 'workspace',
        limit: 100,
        used: 90,
        requested: 30,
        retryAfterMs: 12_000,
      },
    ],
    [
      'the key’s requests',
      6,
      { keyLimits: { rpm: 6 } },
      { kind: 'rate_limited', bucket: 'requests', scope: 'key', limit: 6, used: 6, requested: 1, retryAfterMs: 10_000 },
    ],
    [
      'the key’s tokens',
      3,
      { keyLimits: { tpm: 100 } },
      {
        kind: 'rate_limited',
        bucket: 'tokens',
        scope: 'key',
        limit: 100,
        used: 90,
        requested: 30,
        retryAfterMs: 12_000,
      },
    ],
    [
      'both, of which the longer wait counts',
      6,
      { limits: { rpm: 6 }, keyLimits: { tpm: 180 } },
      {
        kind: 'rate_limited',
        bucket: 'requests',
        scope: 'workspace',
        limit: 6,
        used: 6,
        requested: 1,
        retryAfterMs: 10_000,
      },
    ],
    [
      'both the other way round',
      6,
      { limits: { rpm: 6 }, keyLimits: { rpm: 6, tpm: 100_000 } },
      {
        kind: 'rate_limited',
        bucket: 'requests',
        scope: 'workspace',
        limit: 6,
        used: 6,
        requested: 1,
        retryAfterMs: 10_000,
      },
    ],
    [
      'in flight, workspace',
      2,
      { limits: { concurrency: 2 } },
      { kind: 'concurrency_limited', scope: 'workspace', limit: 2, used: 2 },
    ],
    [
      'in flight, key',
      2,
      { keyLimits: { concurrency: 2 } },
      { kind: 'concurrency_limited', scope: 'key', limit: 2, used: 2 },
    ],
    [
      'a bucket before in flight',
      2,
      { limits: { concurrency: 2, rpm: 2 } },
      {
        kind: 'rate_limited',
        bucket: 'requests',
        scope: 'workspace',
        limit: 2,
        used: 2,
        requested: 1,
        retryAfterMs: 30_000,
      },
    ],
    [
      'larger than the whole bucket',
      0,
      { limits: { tpm: 29 } },
      { kind: 'request_above_bucket', scope: 'workspace', limit: 29, requested: 30 },
    ],
    [
      'larger than the key’s bucket',
      0,
      { limits: { tpm: 100 }, keyLimits: { tpm: 29 } },
      { kind: 'request_above_bucket', scope: 'key', limit: 29, requested: 30 },
    ],
    [
      'no requests at all',
      0,
      { limits: { rpm: 0 } },
      {
        kind: 'rate_limited',
        bucket: 'requests',
        scope: 'workspace',
        limit: 0,
        used: 0,
        requested: 1,
        retryAfterMs: 60_000,
      },
    ],
  ])('§5 names scope, limit, used and requested: %s', (_name, count, options, error) => {
    const ledger = filled(count, options);
    expect(reserve(ledger, options)).toEqual(error);
  });

  test.each<[string, number, ReservationOptions]>([
    ['requests', 6, { limits: { rpm: 6 } }],
    ['tokens', 3, { limits: { tpm: 100 } }],
    ['tokens of the key', 3, { limits: { tpm: 1000 }, keyLimits: { tpm: 97 } }],
    ['requests of both', 6, { limits: { rpm: 7 }, keyLimits: { rpm: 6 } }],
  ])(
    '§5 a lone caller who waits retryAfterMs is admitted, and one millisecond less is not enough: %s',
    (_name, count, options) => {
      const refusal = reserve(filled(count, options), options);
      if (typeof refusal === 'string' || refusal.kind !== 'rate_limited') throw new Error('expected a refusal');
      const waitMs = refusal.retryAfterMs;
      expect(reserve(filled(count, options), options, NOW + waitMs - 1)).toMatchObject({
        kind: 'rate_limited',
        retryAfterMs: 1,
      });
      expect(reserve(filled(count, options), options, NOW + waitMs)).toBe('admitted');
    },
  );

  test('§5 a refusal costs nothing, in no bucket and no scope, however often', () => {
    const options = { limits: LIMITS, keyLimits: { rpm: 1 } };
    const ledger = filled(1, options);
    const before = [readUse(ledger.state, '', LIMITS), readUse(ledger.state, 'k', { rpm: 1, tpm: null })];
    for (let round = 0; round < 50; round += 1) expect(reserve(ledger, options)).not.toBe('admitted');
    expect([readUse(ledger.state, '', LIMITS), readUse(ledger.state, 'k', { rpm: 1, tpm: null })]).toEqual(before);
    expect(ledger.state.open.size).toBe(1);
  });

  test('§5 all or nothing: a key’s refusal takes nothing from the workspace, nor the workspace’s from the key', () => {
    const ledger = filled(1, { limits: LIMITS, keyLimits: { concurrency: 1 } });
    reserve(ledger, { id: 'b', limits: LIMITS, keyLimits: { concurrency: 1 } });
    expect(readUse(ledger.state, '', LIMITS)).toEqual({ requests: 1, tokens: 30, inFlight: 1 });
    const other = filled(1, { key: 'a', limits: { concurrency: 1 } });
    reserve(other, { id: 'b', key: 'b', limits: { concurrency: 1 }, keyLimits: LIMITS });
    expect(readUse(other.state, 'b', LIMITS)).toEqual({ requests: 0, tokens: 0, inFlight: 0 });
  });

  test('§5 headers of the bucket with the least left, on admission and refusal alike', () => {
    const options = { limits: { rpm: 10, tpm: 1000 }, keyLimits: { rpm: 60, tpm: 100 } };
    const ledger = createLedgerHarness();
    const rates = {
      requests: { limit: 10, remaining: 9, resetMs: 6000 },
      tokens: { limit: 100, remaining: 70, resetMs: 18_000 },
    };
    expect(ledger.apply(command('reserve', options), NOW)).toEqual({ type: 'admitted', rates });
    const refused = ledger.apply(command('reserve', { ...options, id: 'b', prompt: 90 }), NOW);
    expect(refused).toMatchObject({ type: 'refused', error: { kind: 'request_above_bucket' }, rates });
    const none = { requests: null, tokens: null };
    expect(ledger.apply(command('reserve', { id: 'c' }), NOW)).toEqual({ type: 'admitted', rates: none });
  });

  test('§5 new limits take hold with the call that brings them', () => {
    const ledger = filled(6, { limits: { rpm: 6 } });
    expect(reserve(ledger, { id: 'a', limits: { rpm: 7 } })).toBe('admitted');
    expect(reserve(ledger, { id: 'b', limits: { rpm: 3 } })).toMatchObject({
      kind: 'rate_limited',
      limit: 3,
      used: 7,
      retryAfterMs: 100_000,
    });
    expect(reserve(ledger, { id: 'b', limits: { rpm: null } })).toBe('admitted');
  });
});

describe('estimates', () => {
  const limits = { tpm: 1e9 };
  test('§5 prompt and output limit are taken when there is one', () => {
    const ledger = filled(1, { limits, prompt: 7, output: 13, choices: 3 });
    expect(taken(ledger)).toBe(20);
  });

  test('§5 without a limit, what the model’s recent requests made per choice', () => {
    const ledger = createLedgerHarness();
    for (let at = 0; at < 40; at += 1) {
      const options = { id: `req_${at}`, limits, model: 'm', choices: 2 };
      ledger.apply(command('reserve', options), NOW);
      ledger.apply(command('settle', { ...options, used: [0, 200] }), NOW);
    }
    const before = taken(ledger);
    reserve(ledger, { id: 'x', limits, prompt: 5, output: null, choices: 3 });
    expect(taken(ledger) - before).toBe(5 + 300);
  });

  test('§5 requests that were cut teach nothing', () => {
    const ledger = createLedgerHarness();
    for (const status of ['failed', 'interrupted'] as const) {
      ledger.apply(command('settle', { id: status, limits, status, used: [1, 9] }), NOW);
    }
    expect(ledger.state.learned.size).toBe(0);
  });

  test.each([1000, 400, 100, 12, 10])('§5 a small bucket of %i admits a small request, whatever was learned', (tpm) => {
    const ledger = createLedgerHarness();
    ledger.apply(command('settle', { id: 'long', used: [10, 100_000] }), NOW);
    expect(reserve(ledger, { id: 'small', prompt: 10, output: null, choices: 4, limits: { tpm } })).toBe('admitted');
    expect(readUse(ledger.state, '', { rpm: null, tpm }).tokens).toBeLessThanOrEqual(tpm);
  });
});

describe('reserve, renew, settle', () => {
  const base = { limits: LIMITS, keyLimits: { rpm: 30, tpm: 600 } };

  test.each([
    [0, 0],
    [10, 5],
    [10, 20],
    [100, 200],
  ])('§5 reserve + settle(%i in, %i out) = spend of that, in every scope', (input, output) => {
    const ledger = filled(1, base);
    expect(uses(ledger)).toEqual(both(1, 30, 1));
    ledger.apply(command('settle', { ...base, id: 'req_old_0', used: [input, output] }), NOW);
    expect(uses(ledger)).toEqual(both(1, input + output, 0));
    expect(ledger.closings).toMatchObject([
      { rev: 1, receipt: { status: 'completed', usage: { output_tokens: output } } },
    ]);
  });

  test('§5 a second reserve of an open id takes nothing more', () => {
    const ledger = filled(1, base);
    expect(reserve(ledger, { ...base, id: 'req_old_0' })).toBe('admitted');
    expect(uses(ledger)).toEqual(both(1, 30, 1));
  });

  test('§5 a reserve that arrives after its settle opens nothing and charges nothing', () => {
    const ledger = filled(1, base);
    ledger.apply(command('settle', { ...base, id: 'req_old_0', used: [10, 5] }), NOW);
    expect(reserve(ledger, { ...base, id: 'req_old_0' })).toBe('admitted');
    ledger.expire(NOW + 300_000);
    expect(ledger.closings).toHaveLength(1);
    expect(ledger.store.get('req_old_0')).toMatchObject({ rev: 1, receipt: { status: 'completed' } });
  });

  test('§5 a second settle changes nothing, with other counts neither', () => {
    const ledger = filled(1, base);
    const settle = command('settle', { ...base, id: 'req_old_0', used: [10, 5] });
    ledger.apply(settle, NOW);
    const before = structuredClone([ledger.state, ledger.closings]);
    expect(ledger.apply(settle, NOW)).toEqual({ type: 'settled' });
    expect(ledger.apply(command('settle', { ...base, id: 'req_old_0', used: [500, 500] }), NOW)).toEqual({
      type: 'settled',
    });
    expect([ledger.state, ledger.closings]).toEqual(before);
  });

  test('§5 renew says go, extends the lease by its length and keeps the counts for the receipt', () => {
    const ledger = filled(1, base);
    const renew = (nowMs: number, used: readonly [number, number]): LedgerDecision =>
      ledger.apply(command('renew', { ...base, id: 'req_old_0', used }), nowMs);
    expect(renew(NOW + 59_999, [10, 1])).toEqual({ type: 'renewed', go: true });
    expect(renew(NOW + 119_998, [10, 2])).toEqual({ type: 'renewed', go: true });
    ledger.expire(NOW + 179_997);
    expect(ledger.closings).toEqual([]);
    ledger.expire(NOW + 179_998);
    expect(ledger.closings).toMatchObject([
      { rev: 1, receipt: { status: 'lost', usage: { input_tokens: 10, output_tokens: 2 } } },
    ]);
  });

  test('§5 renew of an id that was settled says stop', () => {
    const ledger = filled(1, base);
    ledger.apply(command('settle', { ...base, id: 'req_old_0' }), NOW);
    expect(ledger.apply(command('renew', { ...base, id: 'req_old_0' }), NOW)).toEqual({ type: 'renewed', go: false });
    expect(ledger.state.open.size).toBe(0);
  });

  test('§5 renew of an unknown id adopts it: slot, request and tokens are taken, the receipt follows', () => {
    const ledger = createLedgerHarness();
    expect(ledger.apply(command('renew', { ...base, used: [10, 3] }), NOW)).toEqual({ type: 'renewed', go: true });
    expect(uses(ledger)).toEqual(both(1, 30, 1));
    ledger.apply(command('settle', { ...base, used: [10, 4] }), NOW);
    expect(uses(ledger)).toEqual(both(1, 14, 0));
  });

  test('§5 settle of an unknown id adopts it: one request, its tokens, one receipt', () => {
    const ledger = createLedgerHarness();
    ledger.apply(command('settle', { ...base, used: [10, 4] }), NOW);
    expect(uses(ledger)).toEqual(both(1, 14, 0));
    expect(ledger.closings).toMatchObject([{ rev: 1, receipt: { status: 'completed' } }]);
  });

  test('§5 adoption is never refused, be the limits full', () => {
    const options = { limits: { rpm: 1, tpm: 30, concurrency: 1 } };
    const ledger = filled(1, options);
    expect(ledger.apply(command('renew', { ...options, id: 'b' }), NOW)).toEqual({ type: 'renewed', go: true });
    expect(readUse(ledger.state, '', { rpm: 1, tpm: 30 })).toEqual({ requests: 2, tokens: 60, inFlight: 2 });
  });
});

describe('leases', () => {
  const base = { id: 'req_old_0', limits: LIMITS };
  const later = NOW + 60_000;

  test('§5 60 s without renewal: lost at the last counts, slot and unused tokens freed, billed', () => {
    const ledger = filled(5, { limits: { ...LIMITS, rpm: null, tpm: 150 }, leaseMs: 6000 });
    ledger.apply(
      command('renew', { ...base, limits: { ...LIMITS, rpm: null, tpm: 150 }, leaseMs: 6000, used: [10, 5] }),
      NOW,
    );
    expect(reserve(ledger, { id: 'n', limits: { concurrency: 5 } })).toMatchObject({ kind: 'concurrency_limited' });
    ledger.expire(NOW + 6000);
    expect(ledger.closings).toHaveLength(5);
    expect(ledger.closings[0]).toMatchObject({
      rev: 1,
      receipt: { status: 'lost', cost_nano_usd: 15_000, ended_at: new Date(NOW + 6000).toISOString() },
    });
    expect(readUse(ledger.state, '', { rpm: null, tpm: 150 })).toEqual({ requests: 0, tokens: 0, inFlight: 0 });
  });

  test('§5 any command expires what has run out before it is decided', () => {
    const ledger = filled(5, { limits: LIMITS });
    expect(reserve(ledger, { id: 'n', limits: LIMITS }, later - 1)).toMatchObject({ kind: 'concurrency_limited' });
    expect(reserve(ledger, { id: 'n', limits: LIMITS }, later)).toBe('admitted');
    expect(ledger.closings).toHaveLength(5);
  });

  test('§5 settle after lost replaces it with rev 2 and charges only the difference', () => {
    const ledger = filled(1, { limits: LIMITS });
    ledger.apply(command('renew', { ...base, used: [10, 5] }), NOW);
    ledger.expire(later);
    expect(use(ledger)).toEqual({ requests: 0, tokens: 0, inFlight: 0 });
    ledger.apply(command('settle', { ...base, used: [10, 25] }), later);
    expect(use(ledger)).toEqual({ requests: 0, tokens: 20, inFlight: 0 });
    expect(ledger.store.get('req_old_0')).toMatchObject({
      rev: 2,
      receipt: { status: 'completed', usage: { output_tokens: 25 } },
    });
    ledger.apply(command('settle', { ...base, used: [10, 99] }), later);
    expect(ledger.closings).toHaveLength(2);
    expect(use(ledger)).toEqual({ requests: 0, tokens: 20, inFlight: 0 });
  });

  test('§5 a settle that finds the lease just run out, in the same call: lost, then rev 2, charged once', () => {
    const ledger = filled(1, { limits: LIMITS });
    ledger.apply(command('renew', { ...base, used: [10, 5] }), NOW);
    ledger.apply(command('settle', { ...base, used: [10, 25] }), later);
    expect(ledger.closings.map(({ rev, receipt }) => [rev, receipt.status])).toEqual([
      [1, 'lost'],
      [2, 'completed'],
    ]);
    expect(use(ledger)).toEqual({ requests: 0, tokens: 20, inFlight: 0 });
  });

  test('§5 a renewal that finds the lease just run out adopts it again; its request is not counted twice', () => {
    const ledger = filled(1, { limits: LIMITS });
    expect(ledger.apply(command('renew', { ...base, used: [10, 5] }), later)).toEqual({ type: 'renewed', go: true });
    expect(use(ledger)).toEqual({ requests: 0, tokens: 30, inFlight: 1 });
    ledger.apply(command('settle', { ...base, used: [10, 8] }), later);
    expect(use(ledger)).toEqual({ requests: 0, tokens: 18, inFlight: 0 });
    expect(ledger.store.get('req_old_0')).toMatchObject({ rev: 2, receipt: { status: 'completed' } });
  });

  test('§5 a clock that steps back frees nothing and expires nothing; time goes on from the latest seen', () => {
    const options = { limits: { rpm: 1 } };
    const ledger = filled(1, options);
    expect(reserve(ledger, options, NOW - 3_600_000)).toMatchObject({ kind: 'rate_limited', retryAfterMs: 60_000 });
    expect(ledger.state.nowMs).toBe(NOW);
    expect(reserve(ledger, options, NOW + 30_000)).toMatchObject({ retryAfterMs: 30_000 });
    expect(ledger.closings).toEqual([]);
  });
});

describe('release', () => {
  const base = { id: 'req_old_0', limits: LIMITS };
  const release = { type: 'release', id: 'req_old_0' } as const;

  test('§5 refunds request, tokens and slot, and leaves no receipt', () => {
    const ledger = filled(1, { limits: LIMITS });
    expect(ledger.apply(release, NOW)).toEqual({ type: 'released' });
    expect(readUse(ledger.state, '', NO_DRAIN)).toEqual({ requests: 0, tokens: 0, inFlight: 0 });
    ledger.expire(NOW + 300_000);
    expect(ledger.closings).toEqual([]);
  });

  test('§5 twice refunds once', () => {
    const ledger = filled(2, { limits: LIMITS });
    ledger.apply(release, NOW);
    expect(ledger.apply(release, NOW)).toEqual({ type: 'released' });
    expect(readUse(ledger.state, '', NO_DRAIN)).toEqual({ requests: 1, tokens: 30, inFlight: 1 });
  });

  test.each(['before', 'after'])('§5 bars the id for 60 s, the release come %s its reserve', (order) => {
    const ledger = createLedgerHarness();
    if (order === 'after') reserve(ledger, base);
    ledger.apply(release, NOW);
    // Another lease that ends in between must not make the bar forgotten, nor last.
    reserve(ledger, { id: 'other', limits: LIMITS, leaseMs: 30_000 });
    for (const nowMs of [NOW, NOW + 59_999]) {
      expect(reserve(ledger, base, nowMs)).toEqual({ kind: 'client_closed_request' });
      expect(ledger.apply(command('renew', base), nowMs)).toEqual({ type: 'renewed', go: false });
      expect(ledger.apply(command('settle', { ...base, used: [9, 9] }), nowMs)).toEqual({ type: 'settled' });
    }
    expect(ledger.store.has('req_old_0')).toBe(false);
    expect(reserve(ledger, base, NOW + 60_000)).toBe('admitted');
    expect(ledger.state.barred.size).toBe(0);
  });

  test('§5 after a settle it takes nothing back', () => {
    const ledger = filled(1, { limits: LIMITS });
    ledger.apply(command('settle', { ...base, used: [10, 5] }), NOW);
    ledger.apply(release, NOW);
    expect(readUse(ledger.state, '', NO_DRAIN)).toEqual({ requests: 1, tokens: 15, inFlight: 0 });
    expect(ledger.store.get('req_old_0')).toMatchObject({ rev: 1, receipt: { status: 'completed' } });
  });
});

test('§5 each outcome names what to save: the ids and scopes it touched, and none that it did not', () => {
  const state = createLedgerState();
  const options = { keyLimits: { rpm: 1 } };
  const touched = (type: 'reserve' | 'renew' | 'settle', id: string, nowMs = NOW): unknown => {
    const { touchedIds, touchedScopes } = applyCommand(state, command(type, { ...options, id }), nowMs, null);
    return [touchedIds, touchedScopes];
  };
  expect(touched('reserve', 'a')).toEqual([['a'], ['', 'k']]);
  expect(touched('reserve', 'a')).toEqual([[], []]);
  expect(touched('reserve', 'b')).toEqual([[], []]);
  expect(touched('renew', 'a'), 'a renewal that moves the lease by less than a third is not saved').toEqual([[], []]);
  expect(touched('renew', 'a', NOW + 20_000)).toEqual([['a'], ['', 'k']]);
  expect(touched('settle', 'a')).toEqual([['a'], ['', 'k']]);
  expect(applyCommand(state, { type: 'release', id: 'zz' }, NOW, null)).toMatchObject({ touchedIds: [], closed: [] });
});
