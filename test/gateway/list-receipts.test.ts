// Lists over fake sources: the order of asking, how much is asked for at most, and what happens when one does not answer.

import { expect, test } from 'vitest';
import { type Caller } from '../../src/core/api-key.ts';
import { type GatewayError } from '../../src/core/errors.ts';
import { type ReceiptQuery, type ReceiptScan } from '../../src/core/receipt-page.ts';
import { err, ok, type Result } from '../../src/core/result.ts';
import { listReceipts } from '../../src/gateway/list-receipts.ts';
import { type Ports } from '../../src/gateway/ports.ts';
import { sumUsage } from '../../src/gateway/sum-usage.ts';
import { UNUSED_PORTS } from '../http/unused-ports.ts';

const NOTHING: ReceiptScan = { rows: [], floorId: null };
const AWAY: GatewayError = { kind: 'limiter_unavailable' };
const CALLER: Caller = {
  keyId: 'k',
  workspaceId: 'acme',
  scopes: ['receipts:read'],
  models: ['*'],
  workspaceLimits: {},
  keyLimits: null,
  location: 'weur',
  billing: 'postpaid',
};

type Source = (query: ReceiptQuery) => Result<ReceiptScan, GatewayError>;

/** Ports of which only the two sources answer; each call is noted. */
function build(held: Source, recorded: Source): { readonly ports: Ports; readonly calls: string[] } {
  const calls: string[] = [];
  const ports: Ports = {
    ...UNUSED_PORTS,
    ledger: {
      ...UNUSED_PORTS.ledger,
      async listReceipts(query, _rows, location) {
        calls.push(`ledger ${query.workspace} ${query.key} ${location}`);
        return held(query);
      },
    },
    receipts: {
      ...UNUSED_PORTS.receipts,
      async list(query) {
        calls.push(`record ${query.workspace} ${query.key}`);
        return recorded(query);
      },
      async sum(range) {
        calls.push(`record ${range.workspace}`);
        const scan = recorded({ ...range, key: null, model: null });
        return scan.ok ? ok({ sums: [], floorId: scan.value.floorId, movedSums: [] }) : scan;
      },
    },
  };
  return { ports, calls };
}

const list = (ports: Ports, query = '', caller = CALLER): Promise<Result<unknown, GatewayError>> =>
  listReceipts(ports, caller, new URLSearchParams(query));
const sum = (ports: Ports): Promise<Result<unknown, GatewayError>> =>
  sumUsage(ports, CALLER, new URLSearchParams('from=2026-11-20&to=2026-11-21'));
const nothing: Source = () => ok(NOTHING);
/** A source that never comes to an end: each answer ends a little lower. */
const endless = (): Source => {
  let floor = 10_000;
  return () => ok({ rows: [], floorId: `req_${(floor -= 1)}` });
};

test('§9 the ledger is asked first, at the workspace’s location, then the record', async () => {
  const { ports, calls } = build(nothing, nothing);
  expect(await list(ports)).toMatchObject({ value: { data: [], has_more: false, next_cursor: null } });
  await list(ports, '', { ...CALLER, scopes: [] });
  expect(calls).toEqual(['ledger acme null weur', 'record acme null', 'ledger acme k weur', 'record acme k']);
});

test('§9 another key’s receipts are asked of nobody without receipts:read', async () => {
  const { ports, calls } = build(nothing, nothing);
  const answer = await list(ports, 'key=other', { ...CALLER, scopes: [] });
  expect([answer, calls]).toMatchObject([{ value: { data: [], has_more: false } }, []]);
});

test('§9 what is in progress is the ledger’s alone to tell', async () => {
  const { ports, calls } = build(nothing, nothing);
  await list(ports, 'status=in_progress');
  expect(calls).toEqual(['ledger acme null weur']);
});

test('§9 a page asks the record ten times at most, and says where to go on', async () => {
  const { ports, calls } = build(nothing, endless());
  expect(await list(ports)).toMatchObject({ value: { data: [], has_more: true, next_cursor: 'req_9990' } });
  expect(calls.filter((call) => call.startsWith('record'))).toHaveLength(10);
});

test('§9 usage: more receipts than are summed at once are refused, not left out', async () => {
  const refused = await sum(build(nothing, endless()).ports);
  expect(refused).toMatchObject({ error: { code: 'invalid_value', param: 'from' } });
  expect(await sum(build(endless(), nothing).ports)).toMatchObject({ error: AWAY });
});

test('§12 usage: receipts that are moved between two queries make no sum at all, rather than a wrong one', async () => {
  const { ports } = build(nothing, nothing);
  const counts = {
    requests: 1n,
    input_tokens: 1n,
    cached_input_tokens: 0n,
    cache_write_tokens: 0n,
    output_tokens: 1n,
    reasoning_tokens: 0n,
    cost_nano_usd: 1n,
  };
  const moved = { start: '2026-11-20T00:00:00.000Z', name: 'm', counts };
  const answer = async (before: number, after: number): Promise<Result<unknown, GatewayError>> => {
    const parts = [before, after].map((count, at) => ({
      movedSums: Array.from({ length: count }, () => moved),
      floorId: at === 0 ? 'x' : null,
    }));
    const receipts = {
      ...ports.receipts,
      sum: async () => ok({ sums: [], ...(parts.shift() ?? { movedSums: [], floorId: null }) }),
    };
    return sum({ ...ports, receipts });
  };
  expect(await answer(0, 1)).toEqual(err(AWAY));
  expect(await answer(1, 1)).toMatchObject({ value: { data: [{ requests: 1 }] } });
});

test('§9 a source that does not answer: no list and no sum, rather than a part', async () => {
  const away: Source = () => err(AWAY);
  for (const { ports } of [build(away, nothing), build(nothing, away)]) {
    expect(await list(ports)).toEqual(err(AWAY));
    expect(await sum(ports)).toEqual(err(AWAY));
  }
});
