// The runtime is killed (SIGKILL) under 50 open streams and started again on the same stores: what was settled stays, the
// rest is closed as lost at its last counts, and D1, slots, holds and the balance agree (SPEC §5, §9).

import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

import { afterAll, beforeAll, expect, test } from 'vitest';
import * as z from 'zod';

import { printFigures } from './figures.ts';
import { call, type RawAnswer } from './raw-client.ts';
import { answerShort, chunk, countUsage, type Exchange } from './scripted-upstream.ts';
import {
  buildChat,
  buildKey,
  MODELS,
  pause,
  poll,
  type ScriptedGateway,
  startScriptedGateway,
  toCostUsd,
  toToken,
} from './scripted-gateway.ts';

const LEASE_MS = 1500;
const STREAMS = 50;
const SETTLED = 10;
const WORD_MS = 60;
const GRANTED_NANO_USD = 1_000_000_000;
const stateDir = mkdtempSync(join(tmpdir(), 'turnpike-kill-'));
/** The workspaces, each with a key of its name: one pays later, one beforehand. */
const WORKSPACES = ['later', 'before'] as const;

let scripted: ScriptedGateway;

beforeAll(async () => {
  scripted = await start();
});
afterAll(async () => {
  await scripted.stop();
  rmSync(stateDir, { recursive: true, force: true });
});

function start(): Promise<ScriptedGateway> {
  const keys = Object.fromEntries(
    WORKSPACES.flatMap((id) => [
      [`workspace:${id}`, { billing: id === 'before' ? 'prepaid' : 'postpaid', limits: { rpm: 10_000, tpm: null } }],
      [`key:${id}`, buildKey(id, { workspace: id, scopes: ['inference:write', 'receipts:read'] })],
    ]),
  );
  return startScriptedGateway({ stateDir, keys, vars: { LEASE_MS: String(LEASE_MS), KEEPALIVE_MS: '300' } });
}

/** Words for as long as anybody listens, each with the count so far. */
async function speakOn(exchange: Exchange): Promise<void> {
  exchange.head(200);
  for (let words = 1; exchange.write(chunk({ content: 'word ', usage: countUsage(words) })); words += 1) {
    await pause(WORD_MS);
  }
}

const receiptSchema = z.object({
  id: z.string(),
  status: z.string(),
  usage: z.object({ input_tokens: z.number(), cached_input_tokens: z.number(), output_tokens: z.number() }),
  cost_usd: z.string(),
});
type Receipt = z.infer<typeof receiptSchema>;
const pageSchema = z.object({ data: z.array(receiptSchema), has_more: z.literal(false) });
const creditsSchema = z.object({
  balance_usd: z.string(),
  held_usd: z.string(),
  limits: z.object({ concurrency: z.object({ in_use: z.number() }) }),
});

async function read<T>(workspace: string, path: string, schema: z.ZodType<T>): Promise<T> {
  const headers = { authorization: `Bearer ${toToken(workspace)}` };
  return schema.parse(JSON.parse(await (await call(scripted.gateway.url + path, { headers })).whole()));
}

/** All receipts of both workspaces, by id. */
async function readReceipts(): Promise<ReadonlyMap<string, Receipt>> {
  const pages = await Promise.all(WORKSPACES.map((id) => read(id, '/v1/receipts?limit=100', pageSchema)));
  return new Map(pages.flatMap(({ data }) => data).map((receipt) => [receipt.id, receipt]));
}

/** Requests that are settled before the kill, then streams that are open at it. */
async function sendAll(): Promise<{ readonly settled: string[]; readonly open: readonly RawAnswer[] }> {
  const tokenOf = (at: number): string => toToken(WORKSPACES[at % WORKSPACES.length] ?? '');
  scripted.upstream.play((exchange) =>
    exchange.headers.accept === 'text/event-stream' ? speakOn(exchange) : answerShort(exchange),
  );
  const open = Array.from({ length: STREAMS }, async (_, at) => {
    const answer = await scripted.chat(buildChat(MODELS.counted, true, { max_tokens: 1000 }), tokenOf(at));
    await answer.waitFor(/"content":"word/);
    return answer;
  });
  const settled = Array.from({ length: SETTLED }, async (_, at) => {
    const answer = await scripted.chat(buildChat(MODELS.counted, false), tokenOf(at));
    await answer.whole();
    return answer.requestId;
  });
  return { settled: await Promise.all(settled), open: await Promise.all(open) };
}

async function killAndRestart(open: readonly RawAnswer[]): Promise<void> {
  const { gateway } = scripted;
  process.kill(gateway.workerdPid() ?? 0, 'SIGKILL');
  await Promise.all(open.map((answer) => answer.whole().catch(() => undefined)));
  await scripted.stop();
  scripted = await start();
}

test(`§5 kill -9 under ${STREAMS} open streams: the rest is lost at its last counts, slots free, balances right`, async () => {
  const db = await scripted.gateway.getD1Database();
  await db.prepare("INSERT INTO credit_grants (workspace, amount_usd) VALUES ('before', '1')").run();
  const { settled, open } = await sendAll();
  const before = await poll(
    readReceipts,
    (found) => open.every(({ requestId }) => (found.get(requestId)?.usage.output_tokens ?? 0) > 0),
    LEASE_MS * 4,
  );
  expect(settled.map((id) => before.get(id)?.status)).toEqual(settled.map(() => 'completed'));
  // Counts are saved with the lease, which a renewal moves by a third.
  await pause(LEASE_MS);
  await killAndRestart(open);
  const ids = [...settled, ...open.map(({ requestId }) => requestId)].toSorted();
  const after = await poll(
    readReceipts,
    (found) => [...found.values()].every(({ status }) => status !== 'in_progress'),
    LEASE_MS * 4,
  );
  expect([...after.keys()].toSorted()).toEqual(ids);
  for (const id of settled) expect(after.get(id)).toMatchObject({ status: 'completed', usage: { output_tokens: 2 } });
  const tokens = open.map((answer) => {
    const lost = after.get(answer.requestId);
    const delivered = answer.text().split('"content":"word').length - 1;
    expect(lost).toMatchObject({ status: 'lost', cost_usd: lost === undefined ? '' : toCostUsd(lost) });
    expect(lost?.usage.output_tokens).toBeGreaterThanOrEqual(before.get(answer.requestId)?.usage.output_tokens ?? 0);
    // What was counted may have been on its way to the client.
    expect(lost?.usage.output_tokens).toBeLessThanOrEqual(delivered + 2);
    return { lost: lost?.usage.output_tokens ?? 0, delivered };
  });
  for (const workspace of WORKSPACES) await expectEqualities(workspace, ids);
  const sum = (of: 'lost' | 'delivered'): number => tokens.reduce((total, counts) => total + counts[of], 0);
  printFigures(
    `kill -9 under ${STREAMS} streams: ${sum('delivered')} tokens delivered, ${sum('lost')} billed as lost; ${settled.length} settled before stay`,
  );
});

/** D1 has each receipt once, and what they cost is what the balance lost; nothing is held. */
async function expectEqualities(workspace: string, ids: readonly string[]): Promise<void> {
  const db = await scripted.gateway.getD1Database();
  const query = db.prepare('SELECT id, cost_nano_usd AS cost FROM receipts WHERE workspace = ?').bind(workspace);
  const rows = await poll(
    async () => (await query.all<{ id: string; cost: number }>()).results,
    (found) => found.length === ids.length / WORKSPACES.length,
    15_000,
  );
  for (const { id } of rows) expect(ids).toContain(id);
  const spent = rows.reduce((total, { cost }) => total + cost, 0);
  expect(spent).toBeGreaterThan(0);
  const granted = workspace === 'before' ? GRANTED_NANO_USD : 0;
  expect(await read(workspace, '/v1/credits', creditsSchema)).toEqual({
    balance_usd: ((granted - spent) / 1e9).toFixed(9),
    held_usd: '0.000000000',
    limits: { concurrency: { in_use: 0 } },
  });
}
