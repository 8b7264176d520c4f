// GET /v1/receipts inside workerd, with the real ledger object, D1 and KV: pages, filters, scopes, rows that D1 does not
// have yet, doubles, and every bad parameter (SPEC §9, §3).

import { env } from 'cloudflare:workers';
import { reset, runInDurableObject } from 'cloudflare:test';
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import { type Receipt } from '../../src/core/receipt.ts';
import { createD1Receipts } from '../../src/cloudflare/d1-receipts.ts';
import { openLedgerStore } from '../../src/cloudflare/ledger-store.ts';
import { addKey, chat, get, post, prepare, readError, readReceipt } from './fixtures.ts';
import { buildReceipt, flush, hold, record } from './receipt-fixtures.ts';

beforeAll(prepare);
afterAll(reset);

const NOON = Date.parse('2026-11-20T12:00:00Z');

type Shown = { readonly id: string; readonly status: string; readonly key: string; readonly requested_model: string };
type List = { object: string; data: Shown[]; has_more: boolean; next_cursor: string | null };

async function list(token: string, query = ''): Promise<List> {
  const response = await get(token, `/v1/receipts${query}`);
  expect(response.status, query).toBe(200);
  return response.json<List>();
}

/** All pages, one after the other; `between` runs after each. */
async function listAll(token: string, query: string, between: () => Promise<void> = async () => {}): Promise<Shown[]> {
  const all: Shown[] = [];
  for (let cursor: string | null = ''; cursor !== null;) {
    const page: List = await list(token, `?${query}${cursor === '' ? '' : `&cursor=${cursor}`}`);
    expect(page.has_more).toBe(page.next_cursor !== null);
    all.push(...page.data);
    cursor = page.next_cursor;
    await between();
  }
  return all;
}

const idsOf = (receipts: readonly { readonly id: string }[]): string[] => receipts.map(({ id }) => id);
const newestFirst = (receipts: readonly Receipt[]): string[] => idsOf(receipts).toSorted().toReversed();

describe('§9 the list', () => {
  it('§9 a request is listed from the moment its id was returned, as its own receipt shows it', async () => {
    const token = await addKey('list-one');
    const response = await post(token, chat());
    const receipt = await readReceipt(token, response);
    expect(await list(token)).toEqual({ object: 'list', data: [receipt], has_more: false, next_cursor: null });
  });

  it('§9 a workspace without receipts has an empty list', async () => {
    const token = await addKey('list-none');
    expect(await list(token)).toEqual({ object: 'list', data: [], has_more: false, next_cursor: null });
  });

  it('§9 a stream under way is listed as in_progress, and as completed once it has ended', async () => {
    const token = await addKey('list-stream');
    const choice = (delta: object, finish_reason: string | null): object => ({
      choices: [{ index: 0, delta, finish_reason }],
    });
    const stream = [
      { json: choice({ content: 'a' }, null) },
      { wait: 500, json: choice({}, 'stop') },
      { data: '[DONE]' },
    ].map((step): Record<string, unknown> => step);
    const response = await post(token, chat({ stream: true }, { stream }));
    const id = response.headers.get('x-request-id');
    expect((await list(token)).data).toMatchObject([{ id, status: 'in_progress', usage_source: 'none' }]);
    expect((await list(token, '?status=in_progress')).data).toHaveLength(1);
    await response.text();
    await readReceipt(token, response);
    expect((await list(token, '?status=in_progress')).data).toEqual([]);
    expect((await list(token)).data).toMatchObject([{ id, status: 'completed' }]);
  });

  it('§9 running counts are shown while a request is in progress', async () => {
    const token = await addKey('list-running');
    const receipt = buildReceipt('ws-list-running', Date.now(), { key: 'list-running', status: 'in_progress' });
    await hold(receipt);
    expect((await list(token)).data).toMatchObject([{ status: 'in_progress', usage: receipt.usage }]);
  });

  it('§9 unflushed rows come from the ledger, flushed ones from D1, none twice', async () => {
    const token = await addKey('list-flush');
    const ids: string[] = [];
    const send = async (): Promise<void> => {
      const response = await post(token, chat());
      ids.unshift(response.headers.get('x-request-id') ?? '');
      await readReceipt(token, response);
    };
    for (let sent = 0; sent < 3; sent += 1) await send();
    expect(idsOf((await list(token)).data)).toEqual(ids);
    await flush('ws-list-flush');
    const count = env.DB.prepare("SELECT COUNT(*) AS n FROM receipts WHERE workspace = 'ws-list-flush'");
    expect(await count.first('n')).toBe(3);
    expect(idsOf((await list(token)).data)).toEqual(ids);
    for (let sent = 0; sent < 2; sent += 1) await send();
    expect(idsOf((await list(token)).data)).toEqual(ids);
    expect(idsOf(await listAll(token, 'limit=1'))).toEqual(ids);
  });

  it('§9 of a double the row with the higher rev is shown, and its status is the one filtered by', async () => {
    const token = await addKey('list-double');
    const held = buildReceipt('ws-list-double', NOON, { key: 'list-double' });
    await record([{ ...held, status: 'lost' }], 1);
    await hold(held);
    expect((await list(token)).data).toMatchObject([{ id: held.id, status: 'completed' }]);
    expect((await list(token, '?status=lost')).data).toEqual([]);
    await record([{ ...held, status: 'interrupted' }], 9);
    expect((await list(token)).data).toMatchObject([{ id: held.id, status: 'interrupted' }]);
  });
});

describe('§9 pages', () => {
  it('§9 stable under inserts: newer requests, flushes and new pages move nothing', async () => {
    const workspace = 'ws-pages';
    const token = await addKey('pages', { workspace, scopes: ['receipts:read'] });
    const receipts = Array.from({ length: 45 }, (_, at) => buildReceipt(workspace, NOON + Math.floor(at / 3)));
    await record(receipts.slice(0, 30));
    for (const receipt of receipts.slice(30)) await hold(receipt);
    let laterMs = NOON + 1000;
    const seen = await listAll(token, 'limit=7', async () => {
      await record([buildReceipt(workspace, (laterMs += 1))]);
      await hold(buildReceipt(workspace, (laterMs += 1)));
      if (laterMs === NOON + 1004) await flush(workspace);
    });
    expect(idsOf(seen)).toEqual(newestFirst(receipts));
  });

  it('§9 limit: 20 by default, 1 to 100', async () => {
    const workspace = 'ws-limits';
    const token = await addKey('limits', { workspace, scopes: ['receipts:read'] });
    const receipts = Array.from({ length: 105 }, (_, at) => buildReceipt(workspace, NOON + at));
    await record(receipts);
    expect(idsOf((await list(token)).data)).toEqual(newestFirst(receipts).slice(0, 20));
    expect((await list(token, '?limit=1')).data).toHaveLength(1);
    const large = await list(token, '?limit=100');
    expect(large.data).toHaveLength(100);
    const rest = await list(token, `?limit=100&cursor=${large.next_cursor}`);
    expect([rest.data.length, rest.has_more]).toEqual([5, false]);
  });

  it('§9 a filter that hardly anything fits walks a bounded number of rows a query, and finds it all the same', async () => {
    const workspace = 'ws-sparse';
    const token = await addKey('sparse', { workspace });
    const others = Array.from({ length: 22_000 }, (_, at) => buildReceipt(workspace, NOON + 1 + at, { key: 'busy' }));
    const own = [
      buildReceipt(workspace, NOON, { key: 'sparse' }),
      buildReceipt(workspace, NOON - 1, { key: 'sparse' }),
    ];
    await record([...others, ...own]);
    const query = { workspace, key: 'sparse', model: null, fromId: 'req_', beforeId: 'req_~' };
    const scan = await createD1Receipts(env.DB, () => {}).list(query, null, 5);
    if (!scan.ok) throw new Error(scan.error.kind);
    // How far it went is told by the millisecond alone: the id may be another key's.
    const floorId = newestFirst(others)[10_000]?.slice(0, 14);
    expect(scan.value).toEqual({ rows: [], floorId });
    expect(await list(token)).toMatchObject({ data: own.map(({ id }) => ({ id })), has_more: false });
    expect(idsOf(await listAll(token, 'limit=1'))).toEqual(newestFirst(own));
  }, 30_000);
});

describe('§9 the ledger’s part', () => {
  it('§9 with more waiting for D1 than one scan may read, scans follow one another and nothing is left out', async () => {
    const receipts = Array.from({ length: 9 }, (_, at) => buildReceipt('ws-backlog', NOON + at));
    for (const receipt of receipts) await hold(receipt);
    const [scans, ids] = await runInDurableObject(env.LEDGER.getByName('ws-backlog'), (_, { storage }) => {
      const store = openLedgerStore(storage);
      const found: string[] = [];
      let count = 0;
      for (let beforeId: string | null = 'req_~'; beforeId !== null; count += 1) {
        const { rows, floorId } = store.scanUnflushed({ fromId: 'req_', beforeId }, 2);
        found.push(...[...rows].map(({ receipt }) => receipt.id));
        beforeId = floorId;
      }
      return [count, found];
    });
    expect(ids).toEqual(newestFirst(receipts));
    expect(scans).toBeGreaterThan(2);
  });

  it('§9 a query takes no more rows than asked for, and says how far down it went', async () => {
    const receipts = Array.from({ length: 9 }, (_, at) => buildReceipt('ws-look', NOON + at));
    for (const receipt of receipts) await hold(receipt);
    const query = { workspace: 'ws-look', key: null, model: null, fromId: 'req_', beforeId: 'req_~' };
    const { scan } = await env.LEDGER.getByName('ws-look').listReceipts({ v: 2, query, rows: 4 });
    expect(idsOf(scan.rows.map(({ receipt }) => receipt))).toEqual(newestFirst(receipts).slice(0, 4));
    expect(scan.floorId).toBe(newestFirst(receipts)[3]);
  });
});

describe('§9 filters', () => {
  it('§9 model, key, status, from and to, alone and together', async () => {
    const workspace = 'ws-filters';
    const token = await addKey('filters', { workspace, scopes: ['receipts:read'] });
    const receipts = Array.from({ length: 60 }, (_, at) =>
      buildReceipt(workspace, NOON + at * 60_000, {
        key: ['a', 'b'][at % 2] ?? '',
        model: ['m', 'org/Model@1', 'M'][at % 3] ?? '',
        status: (['completed', 'failed', 'lost', 'incomplete', 'interrupted'] as const)[at % 5] ?? 'completed',
      }),
    );
    await record(receipts.filter((_, at) => at % 4 !== 0));
    for (const [at, receipt] of receipts.entries()) if (at % 4 === 0) await hold(receipt);
    const expectOnly = async (query: string, keep: (receipt: Receipt, at: number) => boolean): Promise<void> => {
      expect(idsOf(await listAll(token, `limit=30&${query}`)), query).toEqual(newestFirst(receipts.filter(keep)));
    };
    await expectOnly('model=m', (_, at) => at % 3 === 0);
    await expectOnly('model=org%2FModel%401', (_, at) => at % 3 === 1);
    await expectOnly('key=b', (_, at) => at % 2 === 1);
    await expectOnly('key=nobody', () => false);
    await expectOnly('status=lost', ({ status }) => status === 'lost');
    await expectOnly('status=in_progress', () => false);
    await expectOnly('from=2026-11-20T12:30:00Z', (_, at) => at >= 30);
    await expectOnly('to=2026-11-20T12:30:00Z', (_, at) => at < 30);
    await expectOnly(`from=${NOON / 1000 + 600}&to=${NOON / 1000 + 660}`, (_, at) => at === 10);
    await expectOnly('model=M&key=a&status=failed&from=2026-11-20', (receipt, at) => {
      return at % 3 === 2 && at % 2 === 0 && receipt.status === 'failed';
    });
  });

  it.each([
    ['limit=0', 'integer_below_min_value', 'limit'],
    ['limit=101', 'integer_above_max_value', 'limit'],
    ['limit=ten', 'invalid_type', 'limit'],
    ['limit=5&limit=6', 'invalid_value', 'limit'],
    ['cursor=', 'invalid_value', 'cursor'],
    ['cursor=abc', 'invalid_value', 'cursor'],
    ["cursor=req_0'%20OR%201=1", 'invalid_value', 'cursor'],
    ['status=done', 'invalid_value', 'status'],
    ['status=', 'invalid_value', 'status'],
    ['key=A_B', 'invalid_value', 'key'],
    ['model=', 'invalid_value', 'model'],
    [`model=${'m'.repeat(257)}`, 'invalid_value', 'model'],
    ['from=yesterday', 'invalid_value', 'from'],
    ['to=2026-02-30', 'invalid_value', 'to'],
    ['from=2026-12-02&to=2026-12-01', 'invalid_value', 'to'],
    ['modle=m', 'unknown_parameter', 'modle'],
  ])('§3 a bad parameter is named: %s', async (query, code, param) => {
    const token = await addKey('bad-parameters');
    const response = await get(token, `/v1/receipts?${query}`);
    const error = await readError(response);
    expect([response.status, error['type'], error['code'], error['param']]).toEqual([
      400,
      'invalid_request_error',
      code,
      param,
    ]);
    expect(Object.keys(error).toSorted()).toEqual(['code', 'message', 'param', 'type']);
  });
});

describe('§1 who sees what', () => {
  it('§1 without receipts:read only the own key’s; with it the workspace’s; another workspace’s never', async () => {
    const token = await addKey('seer-own', { workspace: 'ws-seen' });
    const other = await addKey('seer-other', { workspace: 'ws-seen', scopes: [] });
    const reader = await addKey('seer-reader', { workspace: 'ws-seen', scopes: ['receipts:read'] });
    const stranger = await addKey('seer-stranger', { scopes: ['receipts:read'] });
    const own = buildReceipt('ws-seen', NOON, { key: 'seer-own' });
    const foreign = buildReceipt('ws-seen', NOON + 1, { key: 'seer-other' });
    const recorded = buildReceipt('ws-seen', NOON + 2, { key: 'seer-own' });
    const strange = buildReceipt('ws-seer-stranger', NOON + 3, { key: 'seer-own' });
    for (const receipt of [own, foreign, strange]) await hold(receipt);
    await record([recorded, buildReceipt('ws-seen-too', NOON + 4, { key: 'seer-own' })]);
    const see = async (who: string, query = ''): Promise<string[]> => idsOf((await list(who, query)).data);
    expect(await see(token)).toEqual([recorded.id, own.id]);
    expect(await see(token, '?key=seer-own')).toEqual([recorded.id, own.id]);
    expect(await see(token, '?key=seer-other')).toEqual([]);
    expect(await see(other)).toEqual([foreign.id]);
    expect(await see(reader)).toEqual([recorded.id, foreign.id, own.id]);
    expect(await see(reader, '?key=seer-other')).toEqual([foreign.id]);
    expect(await see(stranger)).toEqual([strange.id]);
    expect(await see(stranger, `?cursor=${recorded.id}`)).toEqual([]);
    expect((await get(stranger, `/v1/receipts/${own.id}`)).status).toBe(404);
    expect((await get(stranger, `/v1/receipts/${recorded.id}`)).status).toBe(404);
  });

  it('§1 nor is another key’s stream under way seen, nor one that ended a moment ago', async () => {
    const workspace = 'ws-unseen';
    const token = await addKey('unseen-own', { workspace });
    const reader = await addKey('unseen-reader', { workspace, scopes: ['receipts:read'] });
    const open = buildReceipt(workspace, NOON, { key: 'unseen-other', status: 'in_progress' });
    const ended = buildReceipt(workspace, NOON + 1, { key: 'unseen-other', model: 'other' });
    await hold(open);
    // Not awaited: a settlement is answered once it is saved, and seen before that.
    const holding = hold(ended);
    await vi.waitFor(async () => expect(idsOf((await list(reader)).data)).toEqual([ended.id, open.id]));
    expect((await list(token)).data).toEqual([]);
    await holding;
    expect((await list(token)).data).toEqual([]);
    expect(idsOf((await list(reader, '?model=other')).data)).toEqual([ended.id]);
    expect(idsOf((await list(reader, '?to=2026-11-20T12:00:00.001Z')).data)).toEqual([open.id]);
    expect((await list(reader, '?from=2026-11-21')).data).toEqual([]);
  });

  it('§3 no key, or a bad one: 401 before any parameter is read', async () => {
    const response = await get(null, '/v1/receipts?limit=0');
    expect([response.status, (await readError(response))['code']]).toEqual([401, 'invalid_api_key']);
  });
});
