// The ledger book against a D1 that is slow at the wrong moment, or silent: what was spent is counted once, and grants
// that have grown old refuse nobody for want of credits (SPEC §5).

import { env } from 'cloudflare:workers';
import { reset, runInDurableObject } from 'cloudflare:test';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { type LedgerBook, openLedgerBook } from '../../src/cloudflare/ledger-book.ts';
import { openLedgerStore } from '../../src/cloudflare/ledger-store.ts';
import { createWorkspaceFacts } from '../../src/cloudflare/workspace-facts.ts';
import { sleep } from '../../src/gateway/deadline.ts';
import { buildReservation, type ReservationOptions } from '../core/build-reservation.ts';
import { prepare } from './fixtures.ts';

beforeAll(prepare);
afterAll(reset);

const UNLIMITED = { rpm: null, tpm: null, concurrency: null };

/** D1 that does nothing before `gate` lets it, statement by statement. */
function slow(db: D1Database, gate: (sql: string) => Promise<void>): D1Database {
  const wrap = (statement: D1PreparedStatement, sql: string): D1PreparedStatement =>
    new Proxy(statement, {
      get(target, name) {
        if (name === 'bind') return (...values: unknown[]) => wrap(target.bind(...values), sql);
        if (name === 'raw') return async () => gate(sql).then(() => target.raw());
        if (name === 'run') return async () => gate(sql).then(() => target.run());
        const value: unknown = Reflect.get(target, name);
        return typeof value === 'function' ? value.bind(target) : value;
      },
    });
  return new Proxy(db, {
    get(target, name) {
      if (name === 'prepare') return (sql: string) => wrap(target.prepare(sql), sql);
      const value: unknown = Reflect.get(target, name);
      return typeof value === 'function' ? value.bind(target) : value;
    },
  });
}

type Clock = { offsetMs: number };

/** Opens a book over an object's real storage. */
async function withBook(
  workspace: string,
  db: D1Database,
  run: (book: LedgerBook, clock: Clock) => Promise<void>,
  setAlarm: (atMs: number) => Promise<void> = () => Promise.resolve(),
): Promise<void> {
  await runInDurableObject(env.LEDGER.getByName(workspace), async (_, { storage }) => {
    const clock = { offsetMs: 0 };
    const now = (): number => Date.now() + clock.offsetMs;
    const log = (): void => undefined;
    const book = openLedgerBook({
      store: openLedgerStore(storage),
      setAlarm,
      db,
      // Batches must not be asked of a proxy: D1 takes its own statements only.
      facts: createWorkspaceFacts(env.DB, now, log),
      now,
      random: () => 0.5,
      log,
    });
    await run(book, clock);
  });
}

const settle = (options: ReservationOptions) =>
  ({ type: 'settle', reservation: buildReservation({ status: 'completed', used: [1, 2], ...options }) }) as const;
const reserve = (options: ReservationOptions) => ({ type: 'reserve', reservation: buildReservation(options) }) as const;
const query = (workspace: string) => ({ workspace, key: 'k', workspaceLimits: UNLIMITED, keyLimits: null });

it('§5 a receipt closed and due for D1 while the sum is being read counts once', async () => {
  const workspace = 'ws-counting';
  const db = slow(env.DB, (sql) => sleep(sql.includes('SUM') ? 300 : 0));
  await withBook(workspace, db, async (book) => {
    await book.apply(settle({ workspace, id: 'req_early' }));
    const reading = book.readAccount(query(workspace));
    await book.apply(settle({ workspace, id: 'req_meanwhile' }));
    await book.onAlarm();
    const { results } = await env.DB.prepare('SELECT id FROM receipts WHERE workspace = ?').bind(workspace).all();
    expect(results).toHaveLength(2);
    expect(await reading).toMatchObject({ spentNanoUsd: 6000 });
    expect(await book.readAccount(query(workspace))).toMatchObject({ spentNanoUsd: 6000 });
  });
});

it('§5 a receipt on its way to D1 when the sum begins counts once', async () => {
  const workspace = 'ws-flushing';
  const db = slow(env.DB, (sql) => sleep(sql.includes('INSERT') ? 200 : 0));
  await withBook(workspace, db, async (book) => {
    await book.apply(settle({ workspace, id: 'req_early' }));
    const flushing = book.onAlarm();
    await sleep(50);
    expect(await book.readAccount(query(workspace))).toMatchObject({ spentNanoUsd: 3000 });
    await flushing;
    expect(await book.readAccount(query(workspace))).toMatchObject({ spentNanoUsd: 3000 });
  });
});

it('§5 grants that have grown old while D1 is silent admit what they cover and refuse with limiter_unavailable', async () => {
  const workspace = 'ws-aging';
  const insert = 'INSERT INTO credit_grants (workspace, amount_usd) VALUES (?, ?)';
  await env.DB.prepare(insert).bind(workspace, '0.00006').run();
  const credit = { inputTokensMax: 10, outputTokensMax: 20 };
  const ask = async (book: LedgerBook, id: string): Promise<string> => {
    const decision = await book.apply(reserve({ workspace, id, credit }));
    return decision.type === 'refused' ? decision.error.kind : decision.type;
  };
  await withBook(workspace, env.DB, async (book, clock) => {
    expect(await ask(book, 'req_1')).toBe('admitted');
    await env.DB.prepare('ALTER TABLE credit_grants RENAME TO hidden').run();
    clock.offsetMs = 5001;
    expect([await ask(book, 'req_2'), await ask(book, 'req_3')]).toEqual(['admitted', 'limiter_unavailable']);
    await env.DB.prepare('ALTER TABLE hidden RENAME TO credit_grants').run();
    clock.offsetMs = 10_003;
    expect(await ask(book, 'req_4')).toBe('insufficient_quota');
  });
});

it('§5 a reserve that its own settlement overtook opens nothing, after a restart too; an older unknown one does', async () => {
  const workspace = 'ws-overtaken';
  const countOpen = async (book: LedgerBook): Promise<number | undefined> =>
    (await book.readAccount(query(workspace)))?.concurrency.inUse;
  await withBook(workspace, env.DB, async (book) => {
    await book.apply(settle({ workspace, id: 'req_5' }));
    await book.apply(reserve({ workspace, id: 'req_5' }));
    expect(await countOpen(book)).toBe(0);
  });
  await withBook(workspace, env.DB, async (book) => {
    await book.apply(reserve({ workspace, id: 'req_5' }));
    expect(await countOpen(book)).toBe(0);
    await book.apply(reserve({ workspace, id: 'req_4' }));
    await book.apply(reserve({ workspace, id: 'req_6' }));
    expect(await countOpen(book)).toBe(2);
  });
});

it('§9 an alarm that could not be set is set with the next change: no receipt waits for ever', async () => {
  const workspace = 'ws-unset';
  const set: number[] = [];
  const setAlarm = async (atMs: number): Promise<void> => {
    set.push(atMs);
    if (set.length === 1) throw new Error('the storage failed');
  };
  const run = async (book: LedgerBook): Promise<void> => {
    await expect(book.apply(settle({ workspace, id: 'req_1' }))).rejects.toThrow('the storage failed');
    await book.apply(settle({ workspace, id: 'req_2' }));
    expect(set).toHaveLength(2);
    await book.apply(settle({ workspace, id: 'req_3' }));
    expect(set, 'one that is set is not set again').toHaveLength(2);
  };
  await withBook(workspace, env.DB, run, setAlarm);
});
