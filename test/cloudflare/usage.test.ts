// GET /v1/usage inside workerd, with the real ledger object, D1 and KV: the sums are those of the receipts, wherever a
// receipt is and however often, in whole numbers and UTC (SPEC §9).

import { env } from 'cloudflare:workers';
import { reset } from 'cloudflare:test';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { toUsd } from '../../src/core/money.ts';
import { type Receipt } from '../../src/core/receipt.ts';
import { createSeededRandom } from '../core/seeded-random.ts';
import { addKey, chat, get, post, prepare, readError, readReceipt } from './fixtures.ts';
import { buildReceipt, flush, hold, record } from './receipt-fixtures.ts';

beforeAll(prepare);
afterAll(reset);

const DAY = Date.parse('2026-11-20T00:00:00Z');
const HOUR_MS = 3_600_000;
const TOKENS = [
  'input_tokens',
  'cached_input_tokens',
  'cache_write_tokens',
  'output_tokens',
  'reasoning_tokens',
] as const;

type Sum = Record<string, string | number>;

async function sum(token: string, query: string): Promise<Sum[]> {
  const response = await get(token, `/v1/usage?${query}`);
  expect(response.status, query).toBe(200);
  const list = await response.json<{ object: string; data: Sum[] }>();
  expect(list.object).toBe('list');
  return list.data;
}

/** What the sums must be, added up another way. */
function expectSums(receipts: readonly Receipt[], width: '1h' | '1d', by: 'model' | 'key'): Sum[] {
  const groups = Map.groupBy(receipts, (receipt) => {
    const widthMs = width === '1h' ? HOUR_MS : 24 * HOUR_MS;
    const startMs = Math.floor(Date.parse(receipt.created_at) / widthMs) * widthMs;
    return JSON.stringify([new Date(startMs).toISOString(), by === 'key' ? receipt.key : receipt.requested_model]);
  });
  return [...groups]
    .toSorted(([left], [right]) => (left < right ? -1 : 1))
    .map(([group, members]) => {
      const [start, name]: string[] = JSON.parse(group);
      const tokens = TOKENS.map((field) => [field, members.reduce((total, { usage }) => total + usage[field], 0)]);
      const cost = members.reduce((total, receipt) => total + receipt.cost_nano_usd, 0);
      return {
        start: start ?? '',
        [by]: name ?? '',
        requests: members.length,
        ...Object.fromEntries(tokens),
        cost_usd: toUsd(cost),
      };
    });
}

describe('§9 sums are the sums of the receipts', () => {
  it.each([1, 2, 3, 4])(
    '§9 random receipts in ledger and D1, doubles among them (seed %i)',
    async (seed) => {
      const random = createSeededRandom(seed);
      const workspace = `ws-sums-${seed}`;
      const token = await addKey(`sums-${seed}`, { workspace, scopes: ['receipts:read'] });
      const receipts: Receipt[] = [];
      const recorded: Receipt[] = [];
      const held: Promise<void>[] = [];
      for (let at = 0; at < 250; at += 1) {
        const receipt = buildReceipt(workspace, DAY + random.int(0, 5 * 24 * HOUR_MS - 1), {
          key: random.pick(['a', 'b', 'c']),
          model: random.pick(['m', 'M', 'org/model@1']),
          status: random.pick(['completed', 'failed', 'lost', 'incomplete', 'interrupted', 'in_progress']),
        });
        receipts.push(receipt);
        const isOpen = receipt.status === 'in_progress';
        const isHeld = isOpen || random.chance(0.3);
        if (isHeld) held.push(hold(receipt));
        if (!isHeld || (!isOpen && random.chance(0.3))) recorded.push(receipt);
        // Closed as lost before, and flushed as such: what the ledger holds now has taken its place.
        else if (random.chance(0.3)) await record([{ ...receipt, status: 'lost', cost_nano_usd: 7 }], 0);
      }
      await Promise.all(held);
      await record(recorded);
      const span = 'from=2026-11-20&to=2026-11-25';
      for (const width of ['1d', '1h'] as const) {
        for (const by of ['model', 'key'] as const) {
          const sums = await sum(token, `${span}&bucket_width=${width}&group_by=${by}`);
          expect(sums).toEqual(expectSums(receipts, width, by));
        }
      }
      expect(await sum(token, span)).toEqual(expectSums(receipts, '1d', 'model'));
      await flush(workspace);
      expect(await sum(token, span)).toEqual(expectSums(receipts, '1d', 'model'));
      const open = receipts.filter(({ status }) => status === 'in_progress');
      expect(open.length).toBeGreaterThan(0);
      await Promise.all(open.map((receipt) => hold({ ...receipt, status: 'completed' })));
      expect(await sum(token, span)).toEqual(expectSums(receipts, '1d', 'model'));
    },
    30_000,
  );

  it('§9 only what was created in the time asked for: from is inclusive, to is not', async () => {
    const workspace = 'ws-span';
    const token = await addKey('span', { workspace, scopes: ['receipts:read'] });
    const receipts = Array.from({ length: 24 }, (_, at) => buildReceipt(workspace, DAY + at * HOUR_MS));
    await record(receipts.filter((_, at) => at % 2 === 0));
    for (const [at, receipt] of receipts.entries()) if (at % 2 === 1) await hold(receipt);
    for (const hour of [-1, 24]) await hold(buildReceipt(workspace, DAY + hour * HOUR_MS, { status: 'in_progress' }));
    const inside = receipts.slice(6, 18);
    const span = 'from=2026-11-20T06:00:00Z&to=2026-11-20T18:00:00Z';
    expect(await sum(token, span)).toEqual(expectSums(inside, '1d', 'model'));
    expect(await sum(token, `${span}&bucket_width=1h`)).toEqual(expectSums(inside, '1h', 'model'));
    expect(await sum(token, `from=${DAY / 1000 + 3600}&to=${DAY / 1000 + 7200}&bucket_width=1h`)).toHaveLength(1);
    expect(await sum(token, 'from=2026-11-22&to=2026-11-23')).toEqual([]);
  });

  it('§9 more receipts than one query sums', async () => {
    const workspace = 'ws-many-sums';
    const token = await addKey('many-sums', { workspace, scopes: ['receipts:read'] });
    const receipts = Array.from({ length: 45_000 }, (_, at) => {
      return buildReceipt(workspace, DAY + at * 1000, { key: `k-${at % 3}` });
    });
    await record(receipts);
    const held = receipts.filter((_, at) => at % 1500 === 0);
    await Promise.all(held.map(hold));
    expect(await sum(token, 'from=2026-11-20&to=2026-11-21&group_by=key')).toEqual(expectSums(receipts, '1d', 'key'));
  }, 60_000);

  it('§9 a sum beyond 2^53 nano-USD is exact, out of D1 too', async () => {
    const workspace = 'ws-rich';
    const token = await addKey('rich', { workspace, scopes: ['receipts:read'] });
    const cost_nano_usd = Number.MAX_SAFE_INTEGER;
    await record([1, 2].map((at) => ({ ...buildReceipt(workspace, DAY + at), cost_nano_usd })));
    await hold({ ...buildReceipt(workspace, DAY), cost_nano_usd: 1 });
    const [day] = await sum(token, 'from=2026-11-20&to=2026-11-21');
    expect(day).toMatchObject({ requests: 3, cost_usd: '18014398.509481983' });
  });

  it('§9 real requests, from the moment they were admitted', async () => {
    const workspace = 'ws-live';
    const token = await addKey('live', { workspace, scopes: ['inference:write', 'receipts:read'] });
    for (let sent = 1; sent <= 3; sent += 1) await readReceipt(token, await post(token, chat()));
    const span = `from=${Math.floor(Date.now() / 1000) - 3600}&to=${Math.floor(Date.now() / 1000) + 3600}`;
    const sums = await sum(token, `${span}&group_by=key`);
    const totals = sums.reduce((total, day) => total + Number(day['requests']), 0);
    expect([totals, sums[0]?.['key']]).toEqual([3, 'live']);
    expect(sums.reduce((total, day) => total + Number(day['output_tokens']), 0)).toBe(6);
  });
});

describe('§1 who may ask', () => {
  it('§1 scope receipts:read; another workspace’s receipts are in no sum', async () => {
    const plain = await addKey('sums-plain', { workspace: 'ws-asked' });
    const response = await get(plain, '/v1/usage?from=2026-11-20&to=2026-11-21');
    expect([response.status, (await readError(response))['code']]).toEqual([403, 'insufficient_scope']);
    const reader = await addKey('sums-asker', { workspace: 'ws-asked', scopes: ['receipts:read'] });
    const own = buildReceipt('ws-asked', DAY + 2);
    await record([own, buildReceipt('ws-asked-too', DAY), buildReceipt('ws-aske', DAY + 5)]);
    await hold(buildReceipt('ws-asked-too', DAY + 1));
    expect(await sum(reader, 'from=2026-11-20&to=2026-11-21')).toEqual(expectSums([own], '1d', 'model'));
  });

  it('§9 while D1 is out of reach there is no sum, rather than a wrong one', async () => {
    const workspace = 'ws-away';
    const token = await addKey('away', { workspace, scopes: ['receipts:read'] });
    await hold(buildReceipt(workspace, DAY));
    await env.DB.exec('ALTER TABLE receipts RENAME TO receipts_away');
    const responses = [await get(token, '/v1/usage?from=2026-11-20&to=2026-11-21'), await get(token, '/v1/receipts')];
    await env.DB.exec('ALTER TABLE receipts_away RENAME TO receipts');
    for (const response of responses) {
      expect([response.status, (await readError(response))['code']]).toEqual([503, 'limiter_unavailable']);
    }
  });
});

describe('§3 parameters', () => {
  const BOTH = 'from=2026-11-20&to=2026-11-21';

  it.each([
    ['', 'missing_required_parameter', 'from'],
    ['from=2026-11-20', 'missing_required_parameter', 'to'],
    ['to=2026-11-20', 'missing_required_parameter', 'from'],
    ['from=soon&to=2026-11-20', 'invalid_value', 'from'],
    ['from=2026-11-20&to=2026-11-31', 'invalid_value', 'to'],
    ['from=2026-11-20&to=2026-11-20', 'invalid_value', 'to'],
    ['from=2026-11-21&to=2026-11-20', 'invalid_value', 'to'],
    [`${BOTH}&bucket_width=1m`, 'invalid_value', 'bucket_width'],
    [`${BOTH}&bucket_width=`, 'invalid_value', 'bucket_width'],
    [`${BOTH}&group_by=backend`, 'invalid_value', 'group_by'],
    [`${BOTH}&group_by=model&group_by=key`, 'invalid_value', 'group_by'],
    [`${BOTH}&groupby=key`, 'unknown_parameter', 'groupby'],
    ['from=2026-01-01&to=2026-02-01T00:00:01Z&bucket_width=1h', 'invalid_value', 'to'],
    ['from=2025-11-20&to=2026-11-21T00:00:01Z', 'invalid_value', 'to'],
  ])('§3 a bad one is named: %s', async (query, code, param) => {
    const token = await addKey('sums-bad', { scopes: ['receipts:read'] });
    const response = await get(token, `/v1/usage?${query}`);
    const error = await readError(response);
    expect([response.status, error['type'], error['code'], error['param']]).toEqual([
      400,
      'invalid_request_error',
      code,
      param,
    ]);
  });

  it('§1 exactly 31 days by hour and 366 by day pass', async () => {
    const token = await addKey('sums-long', { scopes: ['receipts:read'] });
    expect(await sum(token, 'from=2026-01-01&to=2026-02-01&bucket_width=1h')).toEqual([]);
    expect(await sum(token, 'from=2025-11-20&to=2026-11-21')).toEqual([]);
  });
});
