// The isolate repeats the ledger's refusals: whose, of what, for how long, and how many calls are left for the ledger.

import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { type GatewayError } from '../../src/core/errors.ts';
import { applyCommand, createLedgerState } from '../../src/core/ledger-state.ts';
import { err, ok, type Result } from '../../src/core/result.ts';
import { type Admission, type Refusal } from '../../src/gateway/ports.ts';
import { createRefusalMemory } from '../../src/gateway/refusal-memory.ts';
import { buildReservation, type ReservationOptions } from '../core/build-reservation.ts';

const ADMITTED: Admission = { rates: { requests: null, tokens: null }, outputLimit: null };
const LIMITED = {
  kind: 'rate_limited',
  bucket: 'requests',
  scope: 'key',
  limit: 1,
  used: 1,
  requested: 1,
  retryAfterMs: 30_000,
} as const satisfies GatewayError;

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

type Asked = { readonly answer: Result<Admission, Refusal>; readonly byLedger: boolean };

/** A memory before a ledger that answers every call with what `answer` says. */
function open(answer: () => GatewayError | null): (options?: ReservationOptions) => Promise<Asked> {
  const memory = createRefusalMemory(Date.now);
  return async (options = {}) => {
    let byLedger = false;
    const got = await memory.reserve(buildReservation(options), async () => {
      byLedger = true;
      const error = answer();
      return error === null ? ok(ADMITTED) : err({ error, rates: null });
    });
    return { answer: got, byLedger };
  };
}

async function countRepeatedMs(error: GatewayError): Promise<number> {
  const ask = open(() => error);
  await ask();
  for (let ms = 0; ; ms += 10) {
    if ((await ask()).byLedger) return ms;
    vi.advanceTimersByTime(10);
  }
}

describe('§5 after a refusal the isolate answers the same key itself', () => {
  test.each([
    ['for 2 s', LIMITED, 2000],
    ['never beyond the wait that was told', { ...LIMITED, retryAfterMs: 730 }, 730],
    ['a request above the bucket: 2 s', { kind: 'request_above_bucket', scope: 'key', limit: 1, requested: 2 }, 2000],
    ['in flight: briefly, slots come free', { kind: 'concurrency_limited', scope: 'key', limit: 1, used: 1 }, 200],
    ['out of credits: 2 s, so that a grant works within seconds', { kind: 'insufficient_quota' }, 2000],
    ['limiter_unavailable: never', { kind: 'limiter_unavailable' }, 0],
    ['a revoked key: never', { kind: 'invalid_api_key', reason: '' }, 0],
    ['a client that left: never', { kind: 'client_closed_request' }, 0],
  ] as const)('§5 %s', async (_, error, expectedMs) => {
    expect(await countRepeatedMs(error)).toBe(expectedMs);
  });

  test('§5 hints are counted down', async () => {
    const ask = open(() => LIMITED);
    await ask();
    vi.advanceTimersByTime(1500);
    const { answer, byLedger } = await ask();
    expect(byLedger).toBe(false);
    expect(answer).toMatchObject({ error: { error: { kind: 'rate_limited', retryAfterMs: 28_500 } } });
  });

  test.each([
    ['the same again', {}, false],
    ['a longer prompt', { prompt: 11 }, false],
    ['a higher output limit', { output: 21 }, false],
    ['a shorter prompt', { prompt: 9 }, true],
    ['a lower output limit', { output: 19 }, true],
    ['no output limit, which may mean less', { output: null }, true],
    ['another model', { model: 'other' }, true],
    ['another key', { key: 'other' }, true],
  ] as const)(
    '§5 who asks for less, or of something else, is not refused by memory: %s',
    async (_, options, byLedger) => {
      const ask = open(() => LIMITED);
      await ask();
      expect((await ask(options)).byLedger).toBe(byLedger);
    },
  );

  test.each([
    ['the same again', { inputTokensMax: 40, outputTokensMax: 20 }, false],
    ['more bytes', { inputTokensMax: 41, outputTokensMax: 20 }, false],
    ['fewer bytes of as many tokens', { inputTokensMax: 39, outputTokensMax: 20 }, true],
    ['a lower bound of its output', { inputTokensMax: 40, outputTokensMax: 19 }, true],
    ['no credits: the workspace pays later now', null, true],
  ] as const)('§5 out of credits, who may cost less reaches the ledger: %s', async (_, credit, byLedger) => {
    const ask = open(() => ({ kind: 'insufficient_quota' }));
    await ask({ credit: { inputTokensMax: 40, outputTokensMax: 20 } });
    expect((await ask({ credit })).byLedger).toBe(byLedger);
  });

  test('§5 a grant ends the repeats: 2 s after the refusal the ledger is asked, and admits', async () => {
    let isGranted = false;
    const ask = open(() => (isGranted ? null : { kind: 'insufficient_quota' }));
    const credit = { inputTokensMax: 40, outputTokensMax: 20 };
    await ask({ credit });
    isGranted = true;
    vi.advanceTimersByTime(1999);
    expect(await ask({ credit })).toMatchObject({ answer: { ok: false }, byLedger: false });
    vi.advanceTimersByTime(1);
    expect(await ask({ credit })).toMatchObject({ answer: { ok: true }, byLedger: true });
    expect(await ask({ credit })).toMatchObject({ answer: { ok: true }, byLedger: true });
  });

  test('§5 without output limits prompts are compared', async () => {
    const ask = open(() => LIMITED);
    await ask({ output: null });
    expect((await ask({ output: null, prompt: 10 })).byLedger).toBe(false);
    expect((await ask({ output: null, prompt: 9 })).byLedger).toBe(true);
    expect((await ask({ output: 1, prompt: 9 })).byLedger).toBe(true);
  });

  test.each([
    ['a token bucket', { ...LIMITED, bucket: 'tokens' }, true],
    ['slots', { kind: 'concurrency_limited', scope: 'key', limit: 1, used: 1 }, true],
    ['credits', { kind: 'insufficient_quota' }, true],
    ['a request bucket, to which nothing is given back', LIMITED, false],
    ['a bucket too small', { kind: 'request_above_bucket', scope: 'key', limit: 1, requested: 2 }, false],
  ] as const)(
    '§5 after a request of the workspace was closed here, the ledger is asked anew: %s',
    async (_, error, byLedger) => {
      const memory = createRefusalMemory(Date.now);
      let calls = 0;
      const ask = (): Promise<unknown> =>
        memory.reserve(buildReservation(), async () => {
          calls += 1;
          return err({ error, rates: null });
        });
      await ask();
      vi.advanceTimersByTime(50);
      const elsewhere = buildReservation();
      memory.noteClosed({ ...elsewhere, receipt: { ...elsewhere.receipt, workspace: 'another' } });
      await ask();
      expect(calls).toBe(1);
      memory.noteClosed(buildReservation({ key: 'another' }));
      vi.advanceTimersByTime(1);
      await ask();
      await ask();
      expect(calls).toBe(byLedger ? 2 : 1);
    },
  );

  test('§5 an admission ends it', async () => {
    let error: GatewayError | null = LIMITED;
    const ask = open(() => error);
    await ask();
    vi.advanceTimersByTime(2000);
    error = null;
    const answers = await Promise.all([ask(), ask(), ask(), vi.advanceTimersByTimeAsync(300)]);
    expect(answers.slice(0, 3)).toMatchObject([
      { answer: { ok: true } },
      { answer: { ok: true } },
      { answer: { ok: true } },
    ]);
  });

  test('§5 the memory is bounded: with very many keys the oldest are forgotten', async () => {
    const ask = open(() => LIMITED);
    for (let at = 0; at <= 5000; at += 1) await ask({ key: `k-${at}` });
    expect((await ask({ key: 'k-5000' })).byLedger).toBe(false);
    expect((await ask({ key: 'k-1' })).byLedger).toBe(false);
    expect((await ask({ key: 'k-0' })).byLedger).toBe(true);
  });

  test('§5 one asks anew when the time is over, the others wait for what it learns, though not for long', async () => {
    const memory = createRefusalMemory(Date.now);
    let calls = 0;
    const reserve = async (answerMs: number): Promise<Result<Admission, Refusal>> =>
      memory.reserve(buildReservation(), async () => {
        calls += 1;
        await new Promise((resolve) => setTimeout(resolve, answerMs));
        return err({ error: LIMITED, rates: null });
      });
    const many = async (answerMs: number): Promise<void> => {
      const asked = Promise.all(Array.from({ length: 100 }, () => reserve(answerMs)));
      await vi.advanceTimersByTimeAsync(4000);
      await asked;
    };
    const first = reserve(0);
    await vi.advanceTimersByTimeAsync(1);
    await first;
    vi.advanceTimersByTime(2000);
    await many(40);
    expect(calls).toBe(2);
    const again = reserve(0);
    await vi.advanceTimersByTimeAsync(1);
    await again;
    vi.advanceTimersByTime(2000);
    calls = 0;
    await many(3000);
    expect(calls).toBeGreaterThan(1);
  });
});

test.each([1, 30, 600])(
  '§5 50 clients in a loop on an empty bucket of %i a minute leave the ledger alone',
  async (rpm) => {
    const memory = createRefusalMemory(Date.now);
    const state = createLedgerState();
    let [ledgerCalls, admitted, calls, id] = [0, 0, 0, 0];
    const startMs = Date.now();
    const reserve = async (): Promise<void> => {
      calls += 1;
      const reservation = buildReservation({ id: `req_${(id += 1)}`, limits: { rpm } });
      const answer = await memory.reserve(reservation, async () => {
        ledgerCalls += 1;
        await new Promise((resolve) => setTimeout(resolve, 3));
        const { decision } = applyCommand(state, { type: 'reserve', reservation }, Date.now(), null);
        if (decision.type === 'admitted') return ok({ rates: decision.rates, outputLimit: null });
        return decision.type === 'refused' ? err({ error: decision.error, rates: decision.rates }) : ok(ADMITTED);
      });
      if (answer.ok) admitted += 1;
    };
    const loop = async (): Promise<void> => {
      while (Date.now() < startMs + 20_000) {
        await reserve();
        await new Promise((resolve) => setTimeout(resolve, 20));
      }
    };
    for (let at = 0; at < rpm; at += 1) {
      const filling = reserve();
      await vi.advanceTimersByTimeAsync(3);
      await filling;
    }
    [ledgerCalls, admitted, calls] = [0, 0, 0];
    const loops = Promise.all(Array.from({ length: 50 }, loop));
    await vi.advanceTimersByTimeAsync(21_000);
    await loops;
    const earned = (rpm * 20) / 60;
    // Once each before anything is known; then two for each request that the bucket earns, and one every 2 s.
    expect(ledgerCalls).toBeLessThan(50 + 2 * earned + 20);
    expect(calls).toBeGreaterThan(10_000);
    // What the bucket earns meanwhile is still used.
    expect(admitted).toBeGreaterThanOrEqual(Math.floor(earned * 0.8));
  },
);
