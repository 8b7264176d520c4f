// The closed set of receipt statuses: each is reached by a request inside workerd, found by its filter, and counted in
// the usage (SPEC §9).

import { env } from 'cloudflare:workers';
import { reset, runDurableObjectAlarm } from 'cloudflare:test';
import { afterAll, beforeAll, expect, it, vi } from 'vitest';
import { RECEIPT_STATUSES, type ReceiptStatus } from '../../src/core/receipt.ts';
import { buildReservation } from '../core/build-reservation.ts';
import { addKey, chat, get, post, prepare, readError } from './fixtures.ts';
import { buildReceipt, flush } from './receipt-fixtures.ts';

beforeAll(prepare);
afterAll(reset);

const WORKSPACE = 'ws-statuses';
const usage = { prompt_tokens: 3, completion_tokens: 2, total_tokens: 5 };
const say = (finish_reason: string | null): Record<string, unknown> => ({
  json: { choices: [{ index: 0, delta: { content: 'Hi' }, finish_reason }], usage },
});
const slow = (): Record<string, unknown> => ({ ...say(null), wait: 100 });

/** How a request comes to each status; what is returned is its id. */
const WAYS: Readonly<Record<ReceiptStatus, (token: string) => Promise<string>>> = {
  async completed(token) {
    return readId(await post(token, chat()));
  },
  async incomplete(token) {
    const response = await post(token, chat({ stream: true }, { stream: [say('length'), { data: '[DONE]' }] }));
    await response.text();
    return readId(response);
  },
  async interrupted(token) {
    const stream = Array.from({ length: 50 }, slow);
    const response = await post(token, chat({ stream: true }, { stream }));
    const reader = response.body?.getReader();
    await reader?.read();
    await reader?.cancel();
    return readId(response);
  },
  async failed(token) {
    const response = await post(token, chat({}, { status: 500 }));
    expect((await readError(response))['code']).toBe('upstream_error');
    return readId(response);
  },
  async lost() {
    const receipt = buildReceipt(WORKSPACE, Date.now(), { key: 'statuses', status: 'in_progress' });
    const reservation = { ...buildReservation({ leaseMs: 30 }), receipt };
    const ledger = env.LEDGER.getByName(WORKSPACE);
    await ledger.call({ v: 1, command: { type: 'reserve', reservation } });
    await new Promise((resolve) => setTimeout(resolve, 50));
    await vi.waitFor(async () => {
      await runDurableObjectAlarm(ledger);
      expect((await ledger.findReceipt(receipt.id))?.status).toBe('lost');
    });
    return receipt.id;
  },
  async in_progress(token) {
    const stream = Array.from({ length: 100 }, slow);
    return readId(await post(token, chat({ stream: true }, { stream })));
  },
};

function readId(response: Response): string {
  return response.headers.get('x-request-id') ?? '';
}

async function list(token: string, query: string): Promise<Record<string, unknown>[]> {
  const { data } = await (await get(token, query)).json<{ data: Record<string, unknown>[] }>();
  return data;
}

it('§9 a request reaches every status there is, and no other', async () => {
  const token = await addKey('statuses', { workspace: WORKSPACE, scopes: ['inference:write', 'receipts:read'] });
  const reached = new Map<ReceiptStatus, string>();
  for (const status of RECEIPT_STATUSES.toSorted((left) => (left === 'in_progress' ? 1 : -1))) {
    reached.set(status, await WAYS[status](token));
  }
  for (const [status, id] of reached) {
    await vi.waitFor(async () => {
      const found = await list(token, `/v1/receipts?status=${status}`);
      expect(found.map((receipt) => receipt['id'])).toEqual([id]);
      expect(found[0]?.['ended_at'] === null).toBe(status === 'in_progress');
    });
  }
  // Out of the ledger into D1: the same again.
  await flush(WORKSPACE);
  const all = await list(token, '/v1/receipts');
  expect(all).toHaveLength(reached.size);
  expect(new Map(all.map(({ id, status }) => [status, id]))).toEqual(reached);
  const query = env.DB.prepare('SELECT status FROM receipts WHERE workspace = ?').bind(WORKSPACE);
  const rows = await query.all<{ status: string }>();
  const closed = RECEIPT_STATUSES.filter((status) => status !== 'in_progress');
  expect(new Set(rows.results.map(({ status }) => status))).toEqual(new Set(closed));
  const tomorrow = Math.floor(Date.now() / 1000) + 86_400;
  const sums = await list(token, `/v1/usage?from=${tomorrow - 2 * 86_400}&to=${tomorrow}`);
  expect(sums.reduce((total, sum) => total + Number(sum['requests']), 0)).toBe(RECEIPT_STATUSES.length);
}, 20_000);
