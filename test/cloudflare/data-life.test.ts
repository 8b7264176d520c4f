// The daily run on the real D1, R2 and ledger objects: closed days, receipts moved to R2 with crashes at every step,
// ledgers compared with D1, workspaces erased (SPEC §12).

import { env, exports } from 'cloudflare:workers';
import { createScheduledController, evictDurableObject, reset, runInDurableObject } from 'cloudflare:test';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { closeDays } from '../../src/cloudflare/close-days.ts';
import { compareLedgers } from '../../src/cloudflare/compare-ledgers.ts';
import { createBudget, type DailyWork } from '../../src/cloudflare/daily-work.ts';
import { type Env } from '../../src/cloudflare/env.ts';
import { eraseWorkspaces } from '../../src/cloudflare/erase-workspaces.ts';
import { moveReceipts } from '../../src/cloudflare/move-receipts.ts';
import { toReceiptRow } from '../../src/cloudflare/receipt-row.ts';
import { runDaily } from '../../src/cloudflare/run-daily.ts';
import { type Receipt } from '../../src/core/receipt.ts';

import { type LogEntry } from '../../src/gateway/ports.ts';
import worker from '../../src/index.ts';
import { createSeededRandom } from '../core/seeded-random.ts';
import { addKey, get, prepare, readError } from './fixtures.ts';
import { buildReceipt, flush, hold, record } from './receipt-fixtures.ts';

const DAY_MS = 24 * 3_600_000;
const START_MS = Date.parse('2026-11-02T00:00:00Z');
/** A run on the day after the last of the receipts, and one when all of them are old. */
const NEXT_DAY_MS = Date.parse('2026-11-06T03:17:00Z');
const YEARS_LATER_MS = Date.parse('2028-03-01T03:17:00Z');
const SPAN = 'from=2026-11-01&to=2026-11-10';

const { ARCHIVE: _bucket, ...UNBOUND } = env;

beforeAll(prepare);
afterAll(reset);
beforeEach(async () => {
  for (const table of ['receipts', 'usage_daily', 'usage_moved', 'closed_days', 'erasures']) {
    await env.DB.prepare(`DELETE FROM ${table}`).run();
  }
  const { objects } = await archive().list();
  await Promise.all(objects.map(({ key }) => archive().delete(key)));
});

function archive(): R2Bucket {
  const { ARCHIVE } = env;
  if (ARCHIVE === undefined) throw new Error('the test configuration binds a bucket');
  return ARCHIVE;
}

/** Receipts over four days, some of them in the first and the last millisecond of a day. */
function buildReceipts(workspace: string, count: number, seed = 1): Receipt[] {
  const random = createSeededRandom(seed);
  return Array.from({ length: count }, (_, at) => {
    const dayMs = START_MS + random.int(0, 3) * DAY_MS;
    const timeMs = dayMs + [0, DAY_MS - 1, random.int(0, DAY_MS - 1), random.int(0, DAY_MS - 1)][at % 4]!;
    return buildReceipt(workspace, timeMs, {
      key: random.pick(['a', 'b']),
      model: random.pick(['m', 'org/model@1']),
      status: random.pick(['completed', 'failed', 'lost']),
    });
  });
}

/** What usage_daily must say, added up another way. */
function sumByDay(receipts: readonly Receipt[]): Record<string, unknown>[] {
  const groups = Map.groupBy(receipts, ({ workspace, created_at, requested_model, key }) =>
    JSON.stringify([workspace, created_at.slice(0, 10), requested_model, key]),
  );
  return [...groups]
    .toSorted(([left], [right]) => (left < right ? -1 : 1))
    .map(([group, members]) => {
      const [workspace, day, model, key]: string[] = JSON.parse(group);
      const total = (count: (receipt: Receipt) => number): number => members.reduce((sum, one) => sum + count(one), 0);
      return {
        workspace,
        day,
        model,
        key,
        requests: members.length,
        input_tokens: total(({ usage }) => usage.input_tokens),
        cached_input_tokens: total(({ usage }) => usage.cached_input_tokens),
        cache_write_tokens: total(({ usage }) => usage.cache_write_tokens),
        output_tokens: total(({ usage }) => usage.output_tokens),
        reasoning_tokens: total(({ usage }) => usage.reasoning_tokens),
        cost_nano_usd: total(({ cost_nano_usd: cost }) => cost),
      };
    });
}

async function readTable(table: string): Promise<Record<string, unknown>[]> {
  const order = table === 'closed_days' ? 'day' : 'workspace, day, model, key';
  return (await env.DB.prepare(`SELECT * FROM ${table} ORDER BY ${order}`).all()).results;
}

/** Every receipt there is, in D1 and in R2, as rows by id. */
async function readEverywhere(): Promise<{ inD1: string[]; inR2: Map<string, { readonly rev: number }> }> {
  const { results } = await env.DB.prepare('SELECT id FROM receipts ORDER BY id').all<{ id: string }>();
  const inR2 = new Map<string, { readonly rev: number }>();
  for (const { key } of (await archive().list()).objects) {
    const text = (await (await archive().get(key))?.text()) ?? '';
    for (const line of text.split('\n').filter((part) => part !== '')) {
      const row: { id: string; rev: number } = JSON.parse(line);
      if (row.rev > (inR2.get(row.id)?.rev ?? -1)) inR2.set(row.id, row);
    }
  }
  return { inD1: results.map(({ id }) => id), inR2 };
}

async function run(nowMs: number, over: object = {}, bindings: Env = env): Promise<LogEntry[]> {
  const lines: LogEntry[] = [];
  await runDaily({ ...bindings, ...over }, nowMs, (line) => lines.push(line));
  return lines;
}

function buildWork(over: Partial<DailyWork>): DailyWork {
  return {
    db: env.DB,
    ledgers: env.LEDGER,
    archive: archive(),
    retentionDays: 400,
    nowMs: YEARS_LATER_MS,
    budget: createBudget(1000),
    log: () => undefined,
    ...over,
  };
}

async function readUsage(token: string, query = SPAN): Promise<unknown> {
  const response = await get(token, `/v1/usage?${query}`);
  expect(response.status).toBe(200);
  return response.json();
}

describe('§12 closing days', () => {
  it('§12 each day’s receipts are summed by workspace, model and key; a day that is not over is left alone', async () => {
    const receipts = ['ws-one', 'ws-two', 'ws-three'].flatMap((name, at) => buildReceipts(name, 120, at + 1));
    await record(receipts);
    const lines = await run(Date.parse('2026-11-05T03:17:00Z'));
    const over = receipts.filter(({ created_at: created }) => created < '2026-11-05');
    expect(over.length).toBeLessThan(receipts.length);
    expect(await readTable('usage_daily')).toEqual(sumByDay(over));
    expect(lines.at(-1)).toMatchObject({
      event: 'daily',
      closed: { days: ['2026-11-02', '2026-11-03', '2026-11-04'], finished: true },
    });
    await run(Date.parse('2026-11-05T23:59:00Z'));
    expect(await readTable('usage_daily'), 'the day is not over').toEqual(sumByDay(over));
    await run(Date.parse('2026-11-06T01:59:00Z'));
    expect(await readTable('usage_daily'), 'over for less than two hours').toEqual(sumByDay(over));
    await run(NEXT_DAY_MS);
    expect(await readTable('usage_daily')).toEqual(sumByDay(receipts));
  });

  it('§12 closing again changes nothing, and what came late is in the day once it is closed for good', async () => {
    const receipts = buildReceipts('ws-late', 60);
    const late = buildReceipt('ws-late', START_MS + 5, { key: 'late' });
    await record(receipts);
    await run(NEXT_DAY_MS);
    await record([late]);
    await run(NEXT_DAY_MS);
    expect(await readTable('usage_daily')).toEqual(sumByDay(receipts));
    await run(NEXT_DAY_MS + 10 * DAY_MS);
    expect(await readTable('usage_daily')).toEqual(sumByDay([...receipts, late]));
    const closed = await readTable('closed_days');
    expect(closed.filter(({ day }) => String(day) <= '2026-11-08').every(({ final_at: final }) => final !== null)).toBe(
      true,
    );
  });

  it('§12 a run does a bounded part, and the next goes on where it ended', async () => {
    const receipts = buildReceipts('ws-bounded', 80);
    await record(receipts);
    const first = await closeDays(buildWork({ budget: createBudget(15) }));
    expect(first.finished).toBe(false);
    expect(first.days.length).toBeGreaterThan(0);
    let runs = 1;
    for (let finished = false; !finished; runs += 1) {
      ({ finished } = await closeDays(buildWork({ nowMs: NEXT_DAY_MS, budget: createBudget(15) })));
    }
    expect(runs).toBeGreaterThan(2);
    expect(await readTable('usage_daily')).toEqual(sumByDay(receipts));
  });

  it('§12 more receipts in a minute than one statement sums, and sums beyond 2^53', async () => {
    const many = Array.from({ length: 24_000 }, (_, at) => buildReceipt('ws-many', START_MS + at * 5));
    const rich = [1, 2].map((at) => ({
      ...buildReceipt('ws-rich', START_MS + at),
      cost_nano_usd: Number.MAX_SAFE_INTEGER,
    }));
    await record([...many, ...rich]);
    await run(NEXT_DAY_MS);
    expect((await readTable('usage_daily')).filter(({ workspace }) => workspace === 'ws-many')).toEqual(sumByDay(many));
    const query = "SELECT CAST(cost_nano_usd AS TEXT) AS cost FROM usage_daily WHERE workspace = 'ws-rich'";
    expect(await env.DB.prepare(query).first('cost')).toBe('18014398509481982');
  }, 30_000);

  it('§12 it is the Worker’s scheduled handler', async () => {
    const receipts = buildReceipts('ws-cron', 20);
    await record(receipts);
    const scheduledTime = NEXT_DAY_MS;
    await worker.scheduled(createScheduledController({ scheduledTime }), env);
    expect(await readTable('usage_daily')).toEqual(sumByDay(receipts));
    expect(exports.default).toBeDefined();
  });
});

describe('§12 receipts older than RETENTION_DAYS', () => {
  it('§12 they are in R2 as JSON lines, and /v1/usage says the same as before', async () => {
    const token = await addKey('moved', { workspace: 'ws-moved', scopes: ['receipts:read'] });
    const receipts = [...buildReceipts('ws-moved', 150), ...buildReceipts('ws-moved-too', 40, 2)];
    const young = buildReceipt('ws-moved', YEARS_LATER_MS - 30 * DAY_MS);
    await record([...receipts, young]);
    await hold(buildReceipt('ws-moved', START_MS + 7, { key: 'held' }));
    const queries = [SPAN, `${SPAN}&group_by=key`, 'from=2026-11-03&to=2026-11-04'];
    const before = await Promise.all(queries.map((query) => readUsage(token, query)));
    const lines = await run(YEARS_LATER_MS);
    expect(lines.at(-1)).toMatchObject({ event: 'daily', moved: { receipts: 190, objects: 8, finished: true } });
    const { inD1, inR2 } = await readEverywhere();
    expect(inD1).toEqual([young.id]);
    const rows = receipts.map((receipt) => [receipt.id, toReceiptRow({ rev: 1, receipt })] as const);
    expect(Object.fromEntries(inR2)).toEqual(Object.fromEntries(rows));
    const { objects } = await archive().list({ prefix: 'receipts/ws-moved/' });
    expect(objects.map(({ key }) => key.slice(0, 29))).toEqual(
      ['02', '03', '04', '05'].map((day) => `receipts/ws-moved/2026-11-${day}/`),
    );
    expect(await Promise.all(queries.map((query) => readUsage(token, query)))).toEqual(before);
    expect(await readTable('usage_daily')).toEqual(sumByDay([...receipts, young]));
    await run(YEARS_LATER_MS + DAY_MS);
    expect(await Promise.all(queries.map((query) => readUsage(token, query))), 'a day later').toEqual(before);
    const list = await (await get(token, '/v1/receipts')).json<{ data: { id: string }[] }>();
    expect(list.data.map(({ id }) => id)).toContain(young.id);
  });

  it.each([
    [`${SPAN}&bucket_width=1h`, 'bucket_width'],
    ['from=2026-11-02T12:00:00Z&to=2026-11-10', 'from'],
    ['from=2026-11-01&to=2026-11-05T12:00:00Z', 'to'],
  ])('§12 a part of a day that was moved is refused rather than told wrongly: %s', async (query, param) => {
    const token = await addKey(`cut-${param.replace('_', '-')}`, { workspace: 'ws-cut', scopes: ['receipts:read'] });
    await record(buildReceipts('ws-cut', 60));
    await run(YEARS_LATER_MS);
    const response = await get(token, `/v1/usage?${query}`);
    const error = await readError(response);
    expect([response.status, error['code'], error['param']]).toEqual([400, 'invalid_value', param]);
    expect(await readUsage(token, 'from=2026-11-01T12:00:00Z&to=2026-11-10')).toEqual(await readUsage(token));
  });

  it('§12 without a bucket they are kept, and the log says so', async () => {
    const receipts = buildReceipts('ws-kept', 30);
    await record(receipts);
    const lines = await run(YEARS_LATER_MS, {}, UNBOUND);
    const kept = lines.filter(({ event }) => event === 'receipts_kept');
    expect(kept).toMatchObject([
      { workspaces: 1, oldest_day: '2026-11-02', fault: expect.stringContaining('ARCHIVE') },
    ]);
    expect((await readEverywhere()).inD1).toHaveLength(30);
  });

  it.each([
    ['400', '2026-11-02', '2027-12-07T03:17:00Z', 0],
    ['400', '2026-11-02', '2027-12-08T03:17:00Z', 1],
    ['90', '2026-11-02', '2027-02-01T03:17:00Z', 1],
    ['1', '2026-11-02', '2026-12-03T03:17:00Z', 0],
    ['1', '2026-11-02', '2026-12-04T03:17:00Z', 1],
  ])('§12 RETENTION_DAYS = %s, %s at %s: %i moved; never less than 31', async (days, _, now, moved) => {
    await record([buildReceipt('ws-age', START_MS + 5)]);
    const lines = await run(Date.parse(now), { RETENTION_DAYS: days });
    expect(lines.at(-1)).toMatchObject({ moved: { receipts: moved } });
    expect(lines.some(({ event }) => event === 'bad_var')).toBe(days === '1');
  });

  it('§12 a receipt that changed after it was read is not deleted', async () => {
    const receipts = buildReceipts('ws-changed', 12);
    await record(receipts);
    const changed = receipts[3]!;
    let puts = 0;
    const racing = spoil(archive(), async (method, does) => {
      const answer = await does();
      if (method === 'put' && (puts += 1) === 1) {
        for (const receipt of receipts) await record([{ ...receipt, cost_nano_usd: 5 }], 2);
      }
      return answer;
    });
    await closeDays(buildWork({}));
    const { receipts: moved } = await moveReceipts(
      buildWork({ archive: racing, budget: createBudget(4) }),
      '2027-01-01',
    );
    expect(moved).toBeGreaterThan(0);
    expect((await readEverywhere()).inD1).toHaveLength(12);
    expect(await readTable('usage_moved')).toEqual([]);
    await run(YEARS_LATER_MS);
    const { inD1, inR2 } = await readEverywhere();
    expect([inD1, inR2.size]).toEqual([[], 12]);
    expect(inR2.get(changed.id)).toMatchObject({ rev: 2, cost_nano_usd: 5 });
    expect((await readTable('usage_moved')).reduce((sum, row) => sum + Number(row['cost_nano_usd']), 0)).toBe(60);
  });

  it.each([
    ['the first', [0]],
    ['the first and the last', [0, -1]],
    ['all but one', [0, 1, 2, 4, 5]],
  ])('§12 %s of an object’s receipts change while it is written: what was deleted stays in R2', async (_, changed) => {
    const receipts = Array.from({ length: 6 }, (__, at) => buildReceipt('ws-part-changed', START_MS + at));
    await record(receipts);
    await closeDays(buildWork({}));
    let puts = 0;
    const racing = spoil(archive(), async (method, does) => {
      if (method === 'put' && (puts += 1) === 1) {
        await record(
          changed.map((at) => ({ ...receipts.at(at)!, cost_nano_usd: 5 })),
          2,
        );
      }
      return does();
    });
    await moveReceipts(buildWork({ archive: racing }), '2027-01-01');
    const { inD1, inR2 } = await readEverywhere();
    expect([inD1, inR2.size]).toEqual([[], 6]);
    const total = (await readTable('usage_moved')).reduce((sum, row) => sum + Number(row['requests']), 0);
    expect(total).toBe(6);
  });

  it('§12 the run dies before or after any call to R2 or D1: no receipt is lost, none counts twice', async () => {
    const token = await addKey('crashed', { workspace: 'ws-crashed', scopes: ['receipts:read'] });
    const receipts = buildReceipts('ws-crashed', 40);
    await record(receipts);
    await closeDays(buildWork({}));
    const before = await readUsage(token);
    const all = new Set(receipts.map(({ id }) => id));
    let deaths = 0;
    for (let fatal = 1; ; fatal += 1) {
      let calls = 0;
      const dies = async (method: string, does: () => Promise<unknown>): Promise<unknown> => {
        if (method !== 'put' && method !== 'batch') return does();
        calls += 1;
        if (calls === Math.ceil(fatal / 2) && fatal % 2 === 1) throw new Error('died before');
        const answer = await does();
        if (calls === Math.ceil(fatal / 2)) throw new Error('died after');
        return answer;
      };
      const work = buildWork({ db: spoil(env.DB, dies), archive: spoil(archive(), dies) });
      const died = await moveReceipts(work, '2027-01-01').then(
        () => false,
        () => true,
      );
      const { inD1, inR2 } = await readEverywhere();
      expect(new Set([...inD1, ...inR2.keys()])).toEqual(all);
      expect(await readUsage(token), `call ${fatal}`).toEqual(before);
      if (!died) break;
      deaths += 1;
    }
    expect(deaths).toBeGreaterThanOrEqual(4);
    expect((await readEverywhere()).inD1).toEqual([]);
    expect(await readTable('usage_moved')).toEqual(sumByDay(receipts));
  });

  it('§12 /v1/usage while they are being moved, by two runs at once', async () => {
    const token = await addKey('moving', { workspace: 'ws-moving', scopes: ['receipts:read'] });
    const receipts = buildReceipts('ws-moving', 12_000);
    await record(receipts);
    await closeDays(buildWork({}));
    const before = await readUsage(token);
    const state = { moving: true, asked: 0 };
    const runs = Promise.all([1, 2].map(() => moveReceipts(buildWork({}), '2027-01-01')));
    const over = runs.finally(() => (state.moving = false));
    while (state.moving && state.asked < 50) {
      expect(await readUsage(token)).toEqual(before);
      state.asked += 1;
    }
    await over;
    expect(state.asked).toBeGreaterThan(0);
    expect(await readUsage(token)).toEqual(before);
    expect((await readEverywhere()).inD1).toEqual([]);
    expect(await readTable('usage_moved')).toEqual(sumByDay(receipts));
  }, 30_000);

  it('§5 an emptied ledger counts what moved receipts cost', async () => {
    const token = await addKey('spent', { workspace: 'ws-spent', scopes: ['receipts:read'] }, { billing: 'prepaid' });
    const receipts = buildReceipts('ws-spent', 50);
    await record([...receipts, { ...buildReceipt('ws-spent', YEARS_LATER_MS), cost_nano_usd: 7 }]);
    await run(YEARS_LATER_MS);
    const stub = env.LEDGER.getByName('ws-spent');
    await runInDurableObject(stub, (_, { storage }) => storage.deleteAll());
    await evictDurableObject(stub);
    const spent = receipts.reduce((sum, { cost_nano_usd: cost }) => sum + cost, 7);
    expect(await (await get(token, '/v1/credits')).json()).toMatchObject({ spent_usd: (spent / 1e9).toFixed(9) });
  });
});

/** An object whose methods pass through `around`, which may fail before or after the real call. */
function spoil<T extends object>(
  target: T,
  around: (method: string, does: () => Promise<unknown>) => Promise<unknown>,
): T {
  return new Proxy(target, {
    get(object, name) {
      const value: unknown = Reflect.get(object, name);
      if (typeof value !== 'function') return value;
      if (name === 'prepare') return value.bind(object);
      return (...values: unknown[]) => around(String(name), () => Promise.resolve(value.apply(object, values)));
    },
  });
}

describe('§12 ledgers compared with D1', () => {
  const DAY = '2026-11-05';
  const differences = (lines: readonly LogEntry[]): LogEntry[] =>
    lines.filter(({ event }) => event === 'ledger_differs');

  it('§12 equal ones are silent; a receipt that D1 lost, one it has in an older form, and one that waits are reported', async () => {
    const names = ['ws-equal', 'ws-lost', 'ws-stale', 'ws-waiting'];
    const day = names.map((name) => [1, 2, 3].map((at) => buildReceipt(name, Date.parse(`${DAY}T10:00:00Z`) + at)));
    await Promise.all(day.flat().map(hold));
    for (const name of names.slice(0, 3)) await flush(name);
    await flush('ws-waiting');
    await hold(buildReceipt('ws-waiting', Date.parse(`${DAY}T11:00:00Z`)));
    await env.DB.prepare('DELETE FROM receipts WHERE id = ?').bind(day[1]![0]!.id).run();
    await env.DB.prepare('UPDATE receipts SET rev = 0, cost_nano_usd = 1 WHERE id = ?').bind(day[2]![0]!.id).run();
    const lines = await run(NEXT_DAY_MS);
    expect(differences(lines).toSorted((a, b) => (String(a['workspace']) < String(b['workspace']) ? -1 : 1))).toEqual([
      expect.objectContaining({
        workspace: 'ws-lost',
        day: DAY,
        ledger: expect.objectContaining({ receipts: 3, revs: 3 }),
        record: expect.objectContaining({ receipts: 2, revs: 2 }),
        waiting: 0,
      }),
      expect.objectContaining({ workspace: 'ws-stale', record: expect.objectContaining({ receipts: 3, revs: 2 }) }),
      expect.objectContaining({ workspace: 'ws-waiting', waiting: 1 }),
    ]);
    expect(lines.at(-1)).toMatchObject({ compared: { differing: 3, finished: true } });
    expect(differences(await run(NEXT_DAY_MS)), 'each day once').toEqual([]);
  });

  it('§12 in bounded parts: a run that has no statements left goes on with the same workspaces the next day', async () => {
    const names = Array.from({ length: 23 }, (_, at) => `ws-part-${String(at).padStart(2, '0')}`);
    await record(names.map((name) => buildReceipt(name, Date.parse(`${DAY}T10:00:00Z`))));
    const nowMs = NEXT_DAY_MS;
    await closeDays(buildWork({ nowMs }));
    const reported = new Set<unknown>();
    const outcomes: { readonly ledgers: number; readonly finished: boolean }[] = [];
    while (outcomes.at(-1)?.finished !== true) {
      const log = ({ event, workspace }: LogEntry): unknown => event === 'ledger_differs' && reported.add(workspace);
      outcomes.push(
        await compareLedgers(buildWork({ nowMs, log, budget: createBudget(outcomes.length === 0 ? 10 : 25) })),
      );
    }
    expect(outcomes.length).toBeGreaterThan(2);
    expect(reported.size, 'those ledgers have nothing').toBe(names.length);
  });

  it('§12 a ledger that cannot be asked is named, and the others are compared', async () => {
    await hold(buildReceipt('ws-asked', Date.parse(`${DAY}T10:00:00Z`)));
    await flush('ws-asked');
    await record([buildReceipt('ws-mute', Date.parse(`${DAY}T10:00:00Z`))]);
    const mute = { sumFlushed: () => Promise.reject(new Error('no such method')) };
    const LEDGER = new Proxy(env.LEDGER, {
      get: (target, name) =>
        name === 'getByName'
          ? (id: string) => (id === 'ws-mute' ? mute : target.getByName(id))
          : Reflect.get(target, name),
    });
    const lines = await run(NEXT_DAY_MS, { LEDGER });
    expect(lines.filter(({ event }) => event === 'ledger_not_compared')).toMatchObject([{ workspace: 'ws-mute' }]);
    expect(differences(lines)).toEqual([]);
  });
});

describe('§12 erasing a workspace', () => {
  const PERSON = { end_user: 'anna@example.com', client_request_id: 'anna-1', completion_id: 'chatcmpl-anna' };
  const ask = async (workspace: string): Promise<void> => {
    await env.DB.prepare("INSERT INTO erasures (workspace, requested_at) VALUES (?, '2026-11-05 12:00:00')")
      .bind(workspace)
      .run();
  };
  const person = (receipt: Receipt): Receipt => ({ ...receipt, ...PERSON, key: 'anna' });

  it('§12 nobody can be told from D1, R2 or the ledger, and every sum is as before', async () => {
    const token = await addKey('anna', { workspace: 'ws-gone', scopes: ['receipts:read'] });
    const other = await addKey('ben', { workspace: 'ws-stays', scopes: ['receipts:read'] });
    const old = buildReceipts('ws-gone', 40).map(person);
    const young = Array.from({ length: 3 }, (_, at) => person(buildReceipt('ws-gone', YEARS_LATER_MS - DAY_MS + at)));
    const kept = person(buildReceipt('ws-stays', START_MS));
    await record([...old, kept]);
    await Promise.all(young.map(hold));
    await flush('ws-gone');
    const last = person(buildReceipt('ws-gone', YEARS_LATER_MS - DAY_MS + 9));
    await hold(last);
    await run(YEARS_LATER_MS - 300 * DAY_MS);
    await run(YEARS_LATER_MS);
    const spans = [SPAN, 'from=2028-02-28&to=2028-03-02'];
    const before = await Promise.all(spans.map((query) => readUsage(token, query)));
    const credits = await (await get(token, '/v1/credits')).json<{ spent_usd: string }>();
    await ask('ws-gone');
    const lines = await run(YEARS_LATER_MS);
    expect(lines.at(-1)).toMatchObject({ erased: { workspaces: ['ws-gone'], finished: true } });
    await flush('ws-gone');
    const everything: unknown[] = [];
    for (const table of ['receipts', 'usage_daily', 'usage_moved', 'erasures']) {
      everything.push((await env.DB.prepare(`SELECT * FROM ${table} WHERE workspace = 'ws-gone'`).all()).results);
    }
    everything.push(Object.fromEntries((await readEverywhere()).inR2));
    await runInDurableObject(env.LEDGER.getByName('ws-gone'), (_, { storage: { sql } }) => {
      everything.push(
        ['receipts', 'reservations', 'scopes'].map((name) => sql.exec(`SELECT * FROM ${name}`).toArray()),
      );
    });
    const text = JSON.stringify(everything).replaceAll(kept.id, '').split(JSON.stringify(kept.workspace))[0] ?? '';
    expect(JSON.stringify(everything)).toContain(last.id);
    expect(text).not.toContain('anna');
    const { inD1, inR2 } = await readEverywhere();
    expect([inD1.length, inR2.size]).toEqual([4, 41]);
    expect(inR2.get(kept.id)).toMatchObject({ ...PERSON, key: 'anna', workspace: 'ws-stays' });
    expect(await Promise.all(spans.map((query) => readUsage(token, query)))).toEqual(before);
    expect(await readUsage(token, `${SPAN}&group_by=key`)).toMatchObject({ data: [{ key: 'erased' }, {}, {}, {}] });
    expect(await (await get(token, '/v1/credits')).json()).toMatchObject(credits);
    expect(await readUsage(other, `${SPAN}&group_by=key`)).toMatchObject({ data: [{ key: 'anna', requests: 1 }] });
  });

  it('§12 in bounded parts, each of which may be repeated', async () => {
    const receipts = [...buildReceipts('ws-parts', 90), ...buildReceipts('ws-parts', 90, 2)].map(person);
    await record(receipts.slice(0, 90));
    await run(YEARS_LATER_MS);
    await record(receipts.slice(90));
    await ask('ws-parts');
    const outcomes: boolean[] = [];
    for (let finished = false; !finished; outcomes.push(finished)) {
      ({ finished } = await eraseWorkspaces(buildWork({ budget: createBudget(45) })));
    }
    expect(outcomes.length).toBeGreaterThan(1);
    const { inR2 } = await readEverywhere();
    expect(
      JSON.stringify([...inR2.values(), ...(await env.DB.prepare('SELECT * FROM receipts').all()).results]),
    ).not.toContain('anna');
  });

  it('§12 not within an hour of asking, and not as long as its bucket is missing', async () => {
    const receipts = buildReceipts('ws-waits', 20).map(person);
    await record(receipts);
    await run(YEARS_LATER_MS);
    await ask('ws-waits');
    const early = await run(Date.parse('2026-11-05T12:59:00Z'));
    expect(early.at(-1)).toMatchObject({ erased: { workspaces: [] } });
    const unbound = await run(YEARS_LATER_MS, {}, UNBOUND);
    expect(unbound.filter(({ event }) => event === 'workspace_not_erased')).toMatchObject([
      { workspace: 'ws-waits', fault: expect.stringContaining('ARCHIVE') },
    ]);
    expect((await run(YEARS_LATER_MS)).at(-1)).toMatchObject({ erased: { workspaces: ['ws-waits'] } });
  });
});
