// Chaos inside workerd, with the real ledger objects, KV and D1: hundreds of requests on both endpoints while clients leave,
// the engine fails, D1 fails, ledgers are reset and isolates die. In the end the books agree: D1, the ledger, the balance
// and what the gateway admitted. What happens is drawn from a seed; only the timing differs between runs.

import { env } from 'cloudflare:workers';
import { reset, runDurableObjectAlarm, runInDurableObject } from 'cloudflare:test';
import { afterAll, beforeAll, expect, it, vi } from 'vitest';
import { sleep } from '../../src/gateway/deadline.ts';
import { createSeededRandom, type SeededRandom } from '../core/seeded-random.ts';
import { type Admissions, breakD1, type FailingD1, resetLedger, type Resets, spoilLedger } from './chaos-faults.ts';
import { drawPlan, INPUT_TOKENS, NANO_USD, type Plan } from './chaos-plans.ts';
import { printFigures } from './documents/figures.ts';
import { addKey, get, prepare } from './fixtures.ts';
import { type Isolate, startIsolate } from './start-isolate.ts';

beforeAll(prepare);
afterAll(reset);

const REQUESTS = 300;
const SEEDS = 'TURNPIKE_DEEP' in env ? [1, 2, 3, 4, 5, 6, 7] : [1];
const AT_ONCE = 32;
const LEASE_MS = 1200;
const GRANTED_NANO_USD = 20_000_000;
const ALARMS = 10;
const KEY = { scopes: ['inference:write', 'receipts:read'] };
const VARS = { LEASE_MS: String(LEASE_MS), SILENCE_DEADLINE_MS: '3000', KEEPALIVE_MS: '300' };

type Account = { readonly workspace: string; readonly token: string; readonly grantedNanoUsd: number };

/** A workspace that pays beforehand, with a balance of some dozen large holds, and one that pays later. */
async function openAccounts(seed: number): Promise<readonly Account[]> {
  const ids = [`chaos-prepaid-${seed}`, `chaos-postpaid-${seed}`];
  const limits = { rpm: 100_000, tpm: 100_000_000, concurrency: 1000 };
  const billings = ['prepaid', 'postpaid'];
  const tokens = await Promise.all(ids.map((id, at) => addKey(id, KEY, { billing: billings[at], limits })));
  const insert = 'INSERT INTO credit_grants (workspace, amount_usd) VALUES (?, ?)';
  await env.DB.prepare(insert).bind(`ws-${ids[0]}`, '0.02').run();
  return tokens.map((token, at) => ({
    token,
    workspace: `ws-${ids[at]}`,
    grantedNanoUsd: at === 0 ? GRANTED_NANO_USD : 0,
  }));
}

/** Sends one request as planned and waits until nothing of it is left to do. */
async function send(isolate: Isolate, token: string, plan: Plan, name: string): Promise<void> {
  const controller = new AbortController();
  const { leaving, path, body } = plan;
  const timer = leaving?.how === 'signal' ? setTimeout(() => controller.abort(), leaving.afterMs) : null;
  const headers = { 'x-client-request-id': name };
  const { response, over } = await isolate.postWhole(token, body, { path, signal: controller.signal, headers });
  const reader = response.body?.getReader();
  for (;;) {
    const step = await reader?.read().catch(() => undefined);
    if (leaving?.how === 'cancel' || controller.signal.aborted) await reader?.cancel().catch(() => undefined);
    if (step === undefined || step.done || leaving?.how === 'cancel') break;
  }
  if (timer !== null) clearTimeout(timer);
  await over;
}

/**
 * Until `isOver`: D1 changes its mind, ledgers are reset. It ends with a D1 that is down. A ledger that was reset while D1
 * is down knows of no grants for 5 s, so those of a D1 that is well begin anew: prepaid requests are to be admitted too.
 */
async function rage(
  random: SeededRandom,
  d1: FailingD1,
  accounts: readonly Account[],
  resets: Resets,
  isOver: () => boolean,
): Promise<void> {
  const resetSome = async (chance: number): Promise<void> => {
    for (const { workspace } of accounts) {
      if (random.chance(chance)) await resetLedger(workspace, resets, random.chance(0.7)).catch(() => undefined);
    }
  };
  await sleep(200);
  while (!isOver()) {
    d1.mode = random.pick(['fine', 'fine', 'down', 'applied', 'shaky']);
    if (d1.mode === 'fine') await resetSome(1);
    await sleep(random.int(20, 250));
    await resetSome(0.2);
  }
  d1.mode = 'fine';
  await resetSome(1);
  await sleep(200);
  d1.mode = 'down';
}

type Row = {
  readonly id: string;
  readonly rev: number;
  readonly status: string;
  readonly cost_nano_usd: number;
  readonly input_tokens: number;
  readonly output_tokens: number;
  readonly client_request_id: string;
};

async function readRows(workspace: string): Promise<readonly Row[]> {
  const query = `SELECT id, rev, status, cost_nano_usd, input_tokens, output_tokens, client_request_id
    FROM receipts WHERE workspace = ? ORDER BY id`;
  return (await env.DB.prepare(query).bind(workspace).all<Row>()).results;
}

/** Carries the receipts through a D1 that is down, one that loses its answer, and one that is well again. */
async function flushThroughFailure(d1: FailingD1, accounts: readonly Account[], resets: Resets): Promise<void> {
  const ring = (): Promise<void[]> =>
    Promise.all(
      accounts.map(async ({ workspace }) => {
        const stub = env.LEDGER.getByName(workspace);
        const run = async (): Promise<void> =>
          expect(await runDurableObjectAlarm(stub), 'the alarm is set again').toBe(true);
        await vi.waitFor(run, { timeout: 5000 });
      }),
    );
  for (let alarms = 0; alarms < ALARMS; alarms += 1) {
    if (alarms === ALARMS / 2) {
      await Promise.all(accounts.map(({ workspace }) => resetLedger(workspace, resets, true)));
    }
    await ring();
  }
  d1.mode = 'applied';
  await ring();
  d1.mode = 'fine';
  await ring();
}

/** What the object itself holds: open reservations, and receipts as D1 should have them. */
async function readHeld(workspace: string): Promise<{ readonly open: unknown; readonly receipts: readonly unknown[] }> {
  return runInDurableObject(env.LEDGER.getByName(workspace), (_, { storage }) => ({
    open: storage.sql.exec('SELECT COUNT(*) AS n FROM reservations').one()['n'],
    receipts: storage.sql
      .exec("SELECT id, rev, body ->> '$.cost_nano_usd' AS cost_nano_usd FROM receipts ORDER BY id")
      .toArray(),
  }));
}

/** The equalities of one account. */
async function audit(account: Account, rows: readonly Row[], { admitted, dead }: Admissions, plans: readonly Plan[]) {
  const { workspace, token, grantedNanoUsd } = account;
  const spent = rows.reduce((sum, row) => sum + row.cost_nano_usd, 0);
  const usd = (nano: number): string => `${nano < 0 ? '-' : ''}${(Math.abs(nano) / 1e9).toFixed(9)}`;
  expect(await (await get(token, '/v1/credits')).json()).toMatchObject({
    balance_usd: usd(grantedNanoUsd - spent),
    held_usd: usd(0),
    spent_usd: usd(spent),
    limits: { concurrency: { in_use: 0 } },
  });
  const copies = rows.map(({ id, rev, cost_nano_usd }) => ({ id, rev, cost_nano_usd }));
  expect(await readHeld(workspace)).toEqual({ open: 0, receipts: copies });
  for (const row of rows) {
    expect(admitted, JSON.stringify(row)).toContain(row.id);
    const plan = plans[Number(row.client_request_id)];
    if (plan === undefined) throw new Error(`nobody sent ${row.client_request_id}`);
    expect(dead.has(row.id) ? ['lost'] : plan.statuses, JSON.stringify(row)).toContain(row.status);
    const [input, output] = NANO_USD[plan.model];
    const cost = row.status === 'failed' ? 0 : row.input_tokens * input + row.output_tokens * output;
    expect(row.cost_nano_usd, JSON.stringify(row)).toBe(cost);
    expect(row.input_tokens).toBeLessThanOrEqual(INPUT_TOKENS);
    expect(row.output_tokens, JSON.stringify(row)).toBeLessThanOrEqual(plan.outputTokensMax);
    if (row.status === 'completed') expect(row.output_tokens, JSON.stringify(row)).toBe(plan.outputTokensMax);
    if (row.status === 'lost') expect(dead.get(row.id), JSON.stringify(row)).toContain(row.output_tokens);
  }
  const lost = await (await get(token, '/v1/receipts?status=lost&limit=100')).json<{ data: { id: string }[] }>();
  const listed = lost.data.map(({ id }) => id).toSorted();
  expect(listed).toEqual(rows.filter(({ status }) => status === 'lost').map(({ id }) => id));
}

it.each(SEEDS)(
  `§9 chaos, seed %i: ${REQUESTS} requests, and the books agree`,
  async (seed) => {
    const random = createSeededRandom(seed);
    const plans = Array.from({ length: REQUESTS }, () => drawPlan(random));
    const accounts = await openAccounts(seed);
    const resets: Resets = new Map();
    const calls = spoilLedger(random, resets, (receipt) => plans[Number(receipt.client_request_id)]);
    const isolate = startIsolate({ vars: VARS, wrapLedger: calls.wrap });
    const d1 = breakD1(random);
    vi.spyOn(console, 'log').mockImplementation(() => undefined);
    try {
      let sent = 0;
      const work = async (): Promise<void> => {
        for (let at = (sent += 1) - 1; at < REQUESTS; at = (sent += 1) - 1) {
          const [plan, account] = [plans[at], accounts[at % accounts.length]];
          if (plan !== undefined && account !== undefined) await send(isolate, account.token, plan, String(at));
        }
      };
      const raging = rage(random, d1, accounts, resets, () => sent > REQUESTS * 0.8);
      await Promise.all([raging, ...Array.from({ length: AT_ONCE }, work)]);
      await sleep(LEASE_MS);
      await flushThroughFailure(d1, accounts, resets);
    } finally {
      d1.restore();
      vi.restoreAllMocks();
    }
    const rows = await Promise.all(accounts.map(({ workspace }) => readRows(workspace)));
    expect(new Set(rows.flat().map(({ id }) => id))).toEqual(calls.admitted);
    for (const [at, account] of accounts.entries()) await audit(account, rows[at] ?? [], calls, plans);
    const statuses = Object.groupBy(rows.flat(), ({ status }) => status);
    const counts = Object.entries(statuses).map(([status, found]) => `${found?.length} ${status}`);
    const replaced = rows.flat().filter(({ rev }) => rev > 1).length;
    const resetCount = [...resets.values()].reduce((sum, count) => sum + count, 0);
    printFigures(
      `chaos, seed ${seed}: ${REQUESTS} requests, ${calls.admitted.size} admitted (${rows.map((found) => found.length).join(' prepaid, ')} postpaid): ${counts.join(', ')}; ${replaced} replaced, ${resetCount} resets`,
    );
    // Otherwise nothing was put to the test.
    expect(rows.flat().some(({ status, cost_nano_usd }) => status === 'lost' && cost_nano_usd > 0)).toBe(true);
    expect(replaced).toBeGreaterThan(0);
    expect(calls.admitted.size).toBeGreaterThan(REQUESTS / 2);
    expect(Object.keys(statuses).toSorted()).toEqual(['completed', 'failed', 'incomplete', 'interrupted', 'lost']);
  },
  60_000,
);
