// Leases on the production bundle: a long stream renews its own and shows its counts meanwhile; when the runtime is
// killed, the lease runs out and the receipt is closed as lost, with the counts last known.

import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

import { afterAll, beforeAll, expect, test } from 'vitest';

import type { LocalGateway } from '../../src/cli/run-locally.ts';
import { DEMO_TOKEN } from '../../src/cli/demo-key.ts';
import { call, type RawAnswer } from './raw-client.ts';
import { poll } from './scripted-gateway.ts';
import { serve } from './serve.ts';

const LEASE_MS = 1500;
const headers = { authorization: `Bearer ${DEMO_TOKEN}` };
const stateDir = mkdtempSync(join(tmpdir(), 'turnpike-lease-'));

let gateway: LocalGateway;

beforeAll(async () => {
  gateway = await start();
});
afterAll(async () => {
  await gateway.stop();
  rmSync(stateDir, { recursive: true, force: true });
});

function start(): Promise<LocalGateway> {
  const model = {
    context_length: 8192,
    pricing: { input: '1.00', output: '2.00' },
    backends: [{ binding: 'DEMO', upstream_model: 'turnpike-demo', engine: 'vllm' }],
  };
  return serve({
    stateDir,
    demo: true,
    demoVars: { TOKENS_PER_SECOND: '12' },
    vars: { LEASE_MS: String(LEASE_MS) },
    catalog: { text: JSON.stringify({ version: 1, models: { demo: model } }), origin: 'given' },
  });
}

type Receipt = {
  readonly status: string;
  readonly usage: { readonly output_tokens: number };
  readonly cost_usd: string;
};

async function readReceipt(id: string): Promise<Receipt> {
  const answer = await call(`${gateway.url}/v1/receipts/${id}`, { headers });
  const receipt: Receipt = JSON.parse(await answer.whole());
  return receipt;
}

/** A stream of several leases. */
async function openLongStream(): Promise<RawAnswer> {
  const body = {
    model: 'demo',
    stream: true,
    messages: [{ role: 'user', content: 'Tell me a long story.' }],
  };
  const answer = await call(`${gateway.url}/v1/chat/completions`, { headers, body });
  expect(answer.status).toBe(200);
  await answer.waitFor(/"content":"\w/);
  return answer;
}

test('§5 a stream longer than its lease renews it, and its receipt shows the running counts', async () => {
  const answer = await openLongStream();
  const running = await poll(
    () => readReceipt(answer.requestId),
    ({ usage }) => usage.output_tokens > 0,
    LEASE_MS * 2,
  );
  expect(running.status).toBe('in_progress');
  expect(await answer.whole()).toMatch(/data: \[DONE\]\n\n$/);
  const closed = await poll(
    () => readReceipt(answer.requestId),
    ({ status }) => status !== 'in_progress',
    2000,
  );
  expect(closed.status).toBe('completed');
  expect(closed.usage.output_tokens).toBeGreaterThan(running.usage.output_tokens);
});

test('§5 the runtime is killed: the lease runs out, the receipt is lost at its last counts, and reaches D1', async () => {
  const answer = await openLongStream();
  const before = await poll(
    () => readReceipt(answer.requestId),
    ({ usage }) => usage.output_tokens > 0,
    LEASE_MS * 2,
  );
  // The counts are saved with the lease, which a renewal moves by a third.
  await new Promise((resolve) => setTimeout(resolve, LEASE_MS));
  process.kill(gateway.workerdPid() ?? 0, 'SIGKILL');
  await answer.whole().catch(() => undefined);
  await gateway.stop();
  gateway = await start();
  const lost = await poll(
    () => readReceipt(answer.requestId),
    ({ status }) => status !== 'in_progress',
    LEASE_MS * 4,
  );
  expect(lost.status).toBe('lost');
  expect(lost.usage.output_tokens).toBeGreaterThanOrEqual(before.usage.output_tokens);
  expect(Number(lost.cost_usd)).toBeGreaterThan(0);
  const db = await gateway.getD1Database();
  const row = await poll(
    () => db.prepare('SELECT status, output_tokens FROM receipts WHERE id = ?').bind(answer.requestId).first(),
    (found) => found !== null,
    15_000,
  );
  expect(row).toEqual({ status: 'lost', output_tokens: lost.usage.output_tokens });
});
