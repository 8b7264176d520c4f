// Prepaid credits through the whole Worker, with the real ledger object and D1: grants, holds, the limit a balance buys,
// an object that was emptied, and GET /v1/credits. The rules themselves are tested in test/core/ledger-credits.test.ts.

import { env } from 'cloudflare:workers';
import { evictDurableObject, reset, runDurableObjectAlarm, runInDurableObject } from 'cloudflare:test';
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import { buildReservation, type ReservationOptions } from '../core/build-reservation.ts';
import {
  addKey,
  chat,
  type EngineScript,
  get,
  post,
  prepare,
  readError,
  readReceipt,
  readRecorded,
  toFieldsOf,
} from './fixtures.ts';

beforeAll(prepare);
afterAll(reset);

const SCOPES = ['inference:write', 'models:read', 'receipts:read'];
const UNLIMITED = { rpm: null, tpm: null, concurrency: null };
/** The scripted engine's happy answer: 3 tokens in at 0.15, 2 out at 0.60 USD per million. */
const COST = 1650;
/** 'Hello' is at most 13 tokens; with a limit of 10 tokens: 13 × 150 + 10 × 600 nano-USD. */
const HOLD = 7950;
const SLOW: EngineScript = {
  stream: [
    { json: { choices: [{ index: 0, delta: { content: 'a' }, finish_reason: null }] } },
    { wait: 1500, json: { choices: [{ index: 0, delta: {}, finish_reason: 'stop' }] } },
    { json: { choices: [], usage: { prompt_tokens: 3, completion_tokens: 2, total_tokens: 5 } } },
    { data: '[DONE]' },
  ],
};

async function addPrepaid(id: string, amountUsd: string | null, limits: object = UNLIMITED): Promise<string> {
  const token = await addKey(id, { scopes: SCOPES }, { billing: 'prepaid', limits });
  if (amountUsd !== null) await grant(id, amountUsd);
  return token;
}

async function grant(id: string, amountUsd: string): Promise<void> {
  const insert = 'INSERT INTO credit_grants (workspace, amount_usd) VALUES (?, ?)';
  await env.DB.prepare(insert).bind(`ws-${id}`, amountUsd).run();
}

const usd = (nano: number): string => (nano / 1e9).toFixed(9);

async function readCredits(token: string): Promise<Record<string, unknown>> {
  const response = await get(token, '/v1/credits');
  expect(response.status).toBe(200);
  return response.json();
}

/** Waits for a settlement: credits that nobody holds. */
async function readSettled(token: string): Promise<Record<string, unknown>> {
  return vi.waitUntil(async () => {
    const credits = await readCredits(token);
    return credits['held_usd'] === usd(0) ? credits : null;
  });
}

describe('§5 credits', () => {
  it('§5 a request is held at its upper bound while it runs and charged at its cost when it ends', async () => {
    const token = await addPrepaid('held', '1');
    const response = await post(token, chat({ max_tokens: 10, stream: true }, SLOW));
    expect(await readCredits(token)).toMatchObject({
      balance_usd: usd(1e9 - HOLD),
      held_usd: usd(HOLD),
      spent_usd: usd(0),
    });
    await response.text();
    const settled = await readSettled(token);
    expect(settled).toMatchObject({ balance_usd: usd(1e9 - COST), spent_usd: usd(COST) });
    expect(await readReceipt(token, response)).toMatchObject({ cost_usd: usd(COST) });
  });

  it('§5 without credits: 429 insufficient_quota, not to be tried again, no receipt; a grant works within seconds', async () => {
    const token = await addPrepaid('empty', null);
    const refused = await post(token, chat());
    expect(refused.status).toBe(429);
    expect(refused.headers.get('x-should-retry')).toBe('false');
    expect(refused.headers.get('retry-after')).toBeNull();
    expect(await readError(refused)).toMatchObject({ type: 'insufficient_quota', code: 'insufficient_quota' });
    expect((await get(token, `/v1/receipts/${refused.headers.get('x-request-id')}`)).status).toBe(404);
    await grant('empty', '0.01');
    await vi.waitUntil(async () => (await post(token, chat())).status === 200, { timeout: 8000, interval: 500 });
  }, 15_000);

  it('§5 twenty requests at once on a balance for five: five pass, and nothing goes below zero', async () => {
    const token = await addPrepaid('burst', usd(5 * HOLD));
    const bodies = Array.from({ length: 20 }, () => chat({ max_tokens: 10, stream: true }, SLOW));
    const responses = await Promise.all(bodies.map((body) => post(token, body)));
    const credits = await readCredits(token);
    expect(Number(credits['balance_usd'])).toBeGreaterThanOrEqual(0);
    const admitted = responses.filter(({ status }) => status === 200);
    expect(admitted).toHaveLength(5);
    for (const response of responses) {
      if (response.status !== 200) expect((await readError(response))['code']).toBe('insufficient_quota');
    }
    await Promise.all(admitted.map((response) => response.text()));
    expect(await readSettled(token)).toMatchObject({ balance_usd: usd(5 * (HOLD - COST)), spent_usd: usd(5 * COST) });
  });

  it.each([
    ['chat', '/v1/chat/completions', 13, false],
    ['chat, streamed', '/v1/chat/completions', 13, true],
    ['text', '/v1/completions', 6, false],
    ['text, streamed', '/v1/completions', 6, true],
    ['responses', '/v1/responses', 13, false],
    ['responses, streamed', '/v1/responses', 13, true],
  ] as const)('§5 a balance that buys 7 tokens sends that limit up: %s', async (name, path, input, stream) => {
    const id = `cut-${name.replace(/\W+/g, '-')}`;
    for (const limit of [undefined, 500]) {
      const token = await addPrepaid(`${id}-${limit ?? 'none'}`, usd(input * 150 + 7 * 600 + 599));
      const response = await post(token, chat({ ...toFieldsOf(path, limit), stream }), {}, path);
      expect(response.status).toBe(200);
      await response.text();
      const sent: Record<string, unknown> = JSON.parse((await readRecorded(response))?.text ?? '{}');
      expect([sent['max_tokens'], sent['max_completion_tokens']]).toEqual([7, undefined]);
    }
  });

  it('§5 a correction counts, a malformed amount is skipped and named in the log', async () => {
    const lines: string[] = [];
    const spy = vi.spyOn(console, 'log').mockImplementation((line: string) => void lines.push(line));
    const token = await addPrepaid('corrected', '5');
    for (const amount of ['-2.5', 'five', '1e3', '0.0000000001']) await grant('corrected', amount);
    expect(await readCredits(token)).toMatchObject({ billing: 'prepaid', balance_usd: '2.500000000' });
    spy.mockRestore();
    const skipped = lines.map((line): Record<string, unknown> => JSON.parse(line));
    const named = skipped.filter(({ event, workspace }) => event === 'grant_skipped' && workspace === 'ws-corrected');
    expect(named.map((line) => line['amount_usd'])).toEqual(['five', '1e3', '0.0000000001']);
  });

  it.each([
    ['changed', 'UPDATE credit_grants SET amount_usd = 9'],
    ['deleted', 'DELETE FROM credit_grants'],
    [
      'replaced by its number',
      "INSERT OR REPLACE INTO credit_grants (seq, workspace, amount_usd) VALUES ((SELECT MAX(seq) FROM credit_grants), 'ws-x', '9')",
    ],
    [
      'replaced by its id',
      "INSERT OR REPLACE INTO credit_grants (id, workspace, amount_usd) VALUES ((SELECT MAX(id) FROM credit_grants), 'ws-x', '9')",
    ],
    ['put before others', "INSERT INTO credit_grants (seq, workspace, amount_usd) VALUES (-5, 'ws-x', '9')"],
  ])('§5 grants are append-only: none is %s', async (_name, sql) => {
    await grant('kept', '1');
    await expect(env.DB.prepare(sql).run()).rejects.toThrow('append-only');
  });
});

describe('§5 an object without its count', () => {
  it('§5 emptied, it rebuilds what was spent from D1 before it admits', async () => {
    const token = await addPrepaid('emptied', usd(HOLD + COST - 1));
    await (await post(token, chat({ max_tokens: 10 }))).text();
    await readSettled(token);
    const stub = env.LEDGER.getByName('ws-emptied');
    await vi.waitUntil(() => runDurableObjectAlarm(stub));
    await runInDurableObject(stub, (_, { storage }) => storage.deleteAll());
    await evictDurableObject(stub);
    const cut = await post(token, chat({ max_tokens: 10 }));
    await cut.text();
    expect(JSON.parse((await readRecorded(cut))?.text ?? '{}')).toMatchObject({ max_tokens: 9 });
    expect(await readSettled(token)).toMatchObject({ spent_usd: usd(2 * COST) });
  });

  it('§5 emptied, it looks up in D1 what it is told of: settled before is nothing new, lost before is the difference', async () => {
    const workspace = 'ws-recalled';
    const token = await addPrepaid('recalled', '1');
    const stub = env.LEDGER.getByName(workspace);
    const used = [1, 2] as const;
    const settle = async (options: ReservationOptions): Promise<void> => {
      const reservation = buildReservation({ workspace, status: 'completed', used, ...options });
      await stub.call({ v: 2, command: { type: 'settle', reservation } });
    };
    const renewed = buildReservation({ workspace, id: 'req_lost', used, leaseMs: 1 });
    await stub.call({ v: 2, command: { type: 'renew', reservation: renewed } });
    await settle({ id: 'req_settled' });
    await vi.waitUntil(() => runDurableObjectAlarm(stub));
    await runInDurableObject(stub, (_, { storage }) => storage.deleteAll());
    await evictDurableObject(stub);
    expect(await readCredits(token)).toMatchObject({ spent_usd: usd(6000) });
    await settle({ id: 'req_settled' });
    await settle({ id: 'req_lost', used: [1, 4] });
    expect(await readCredits(token)).toMatchObject({ spent_usd: usd(8000) });
    await vi.waitUntil(() => runDurableObjectAlarm(stub));
    const query = 'SELECT id, rev, cost_nano_usd FROM receipts WHERE workspace = ? ORDER BY id';
    const { results } = await env.DB.prepare(query).bind(workspace).all();
    expect(results).toEqual([
      { id: 'req_lost', rev: 2, cost_nano_usd: 5000 },
      { id: 'req_settled', rev: 1, cost_nano_usd: 3000 },
    ]);
  });

  it('§5 receipts that are in D1 and still its own count once; those of D1 alone count too', async () => {
    const token = await addPrepaid('counted', '1');
    await (await post(token, chat())).text();
    const before = await readSettled(token);
    const stub = env.LEDGER.getByName('ws-counted');
    await vi.waitUntil(() => runDurableObjectAlarm(stub));
    await env.DB.prepare("UPDATE receipts SET cost_nano_usd = 9 WHERE workspace = 'ws-counted'").run();
    await runInDurableObject(stub, (_, { storage }) => {
      storage.sql.exec('UPDATE ledger SET flushed_seq = 0, spent_nano_usd = NULL');
    });
    await evictDurableObject(stub);
    expect(await readCredits(token), 'the own row, not that of D1').toEqual(before);
    await runInDurableObject(stub, (_, { storage }) => {
      storage.sql.exec('UPDATE ledger SET flushed_seq = 1, spent_nano_usd = NULL');
    });
    await evictDurableObject(stub);
    expect(await readCredits(token), 'the row of D1').toMatchObject({ spent_usd: usd(9) });
  });

  it('§5 a hold on a small balance survives a reset at once', async () => {
    const token = await addPrepaid('small', usd(HOLD));
    const response = await post(token, chat({ max_tokens: 10, stream: true }, SLOW));
    expect(response.status).toBe(200);
    await evictDurableObject(env.LEDGER.getByName('ws-small'));
    expect(await readCredits(token)).toMatchObject({ held_usd: usd(HOLD), balance_usd: usd(0) });
    expect((await post(token, chat({ max_tokens: 10 }))).status).toBe(429);
    await response.text();
    expect(await readSettled(token)).toMatchObject({ spent_usd: usd(COST) });
  });
});

describe('§5 while D1 cannot be read', () => {
  const rename = async (from: string, to: string): Promise<void> => {
    await env.DB.prepare(`ALTER TABLE ${from} RENAME TO ${to}`).run();
  };

  it.each([
    ['the grants', 'credit_grants'],
    ['the receipts', 'receipts'],
  ])(
    '§5 503 limiter_unavailable, never insufficient_quota, when it is %s; served once they can be',
    async (_, table) => {
      const id = `unread-${table.replace('_', '-')}`;
      const token = await addPrepaid(id, '1');
      await rename(table, 'hidden');
      const refused = await post(token, chat());
      const unread = await get(token, '/v1/credits');
      await rename('hidden', table);
      for (const response of [refused, unread]) {
        expect([response.status, (await readError(response))['code']]).toEqual([503, 'limiter_unavailable']);
        expect(response.headers.get('retry-after')).toBe('1');
      }
      await vi.waitUntil(async () => (await post(token, chat())).status === 200, { timeout: 8000, interval: 500 });
    },
    15_000,
  );

  it('§5 a postpaid workspace is served all the same', async () => {
    const token = await addKey('carefree');
    await rename('credit_grants', 'hidden');
    const response = await post(token, chat());
    await rename('hidden', 'credit_grants');
    expect(response.status).toBe(200);
  });
});

describe('§9 GET /v1/credits', () => {
  it('§9 a postpaid workspace: spent is summed, what it owes is negative, unlimited is null', async () => {
    const token = await addKey('later', { scopes: SCOPES }, { limits: UNLIMITED });
    await (await post(token, chat())).text();
    await vi.waitUntil(async () => (await readCredits(token))['spent_usd'] === usd(COST));
    expect(await readCredits(token)).toEqual({
      object: 'credits',
      billing: 'postpaid',
      balance_usd: `-${usd(COST)}`,
      held_usd: usd(0),
      spent_usd: usd(COST),
      limits: {
        requests: { limit: null, remaining: null, reset_ms: null },
        tokens: { limit: null, remaining: null, reset_ms: null },
        concurrency: { limit: null, in_use: 0 },
      },
    });
  });

  it('§9 limits: of each kind the one with the least left, the key’s or the workspace’s', async () => {
    const key = { scopes: SCOPES, limits: { rpm: 2, concurrency: 9 } };
    const token = await addKey('limited', key, { limits: { rpm: 60, tpm: 9000, concurrency: 3 } });
    const stream = await post(token, chat({ max_tokens: 10, stream: true }, SLOW));
    expect((await readCredits(token))['limits']).toMatchObject({
      requests: { limit: 2, remaining: 1 },
      tokens: { limit: 9000 },
      concurrency: { limit: 3, in_use: 1 },
    });
    await stream.text();
  });

  it('§1 it needs receipts:read, and sixty reads a minute are allowed', async () => {
    const plain = await addKey('unscoped');
    const refused = await get(plain, '/v1/credits');
    expect([refused.status, (await readError(refused))['code']]).toEqual([403, 'insufficient_scope']);
    const token = await addKey('reading', { scopes: SCOPES });
    const statuses: number[] = [];
    for (let reads = 0; reads < 61; reads += 1) statuses.push((await get(token, '/v1/credits')).status);
    expect([statuses.filter((status) => status === 200).length, statuses.at(-1)]).toEqual([60, 429]);
  });
});
