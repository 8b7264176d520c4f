// Receipts for tests of the reads: built at any time, put into D1 as a flush does, or given to a real ledger object.

import { runDurableObjectAlarm } from 'cloudflare:test';
import { env } from 'cloudflare:workers';
import { expect, vi } from 'vitest';
import { type Receipt, type ReceiptStatus } from '../../src/core/receipt.ts';
import { buildRequestId } from '../../src/core/request-id.ts';
import { toReceiptRow, UPSERT_RECEIPTS } from '../../src/cloudflare/receipt-row.ts';
import { buildReservation } from '../core/build-reservation.ts';
import { createSeededRandom } from '../core/seeded-random.ts';

const random = createSeededRandom(7);

export type ReceiptOptions = { readonly key?: string; readonly model?: string; readonly status?: ReceiptStatus };

/** A receipt of some tokens, created at a time. */
export function buildReceipt(workspace: string, timeMs: number, options: ReceiptOptions = {}): Receipt {
  const bytes = Uint8Array.from({ length: 16 }, () => random.int(0, 255));
  const used = [random.int(0, 99), random.int(0, 99)] as const;
  const { receipt } = buildReservation({ id: buildRequestId(timeMs, bytes), status: 'completed', used, ...options });
  const created_at = new Date(timeMs).toISOString();
  return { ...receipt, workspace, created_at, ended_at: receipt.status === 'in_progress' ? null : created_at };
}

/** Puts receipts into D1. */
export async function record(receipts: readonly Receipt[], rev = 1): Promise<void> {
  for (let at = 0; at < receipts.length; at += 1000) {
    const rows = receipts.slice(at, at + 1000).map((receipt) => toReceiptRow({ rev, receipt }));
    await env.DB.prepare(UPSERT_RECEIPTS).bind(JSON.stringify(rows)).run();
  }
}

/** Gives a receipt to its workspace's ledger: closed, or in progress. */
export async function hold(receipt: Receipt): Promise<void> {
  const reservation = { ...buildReservation(), receipt };
  const type = receipt.status === 'in_progress' ? 'renew' : 'settle';
  await env.LEDGER.getByName(receipt.workspace).call({ v: 1, command: { type, reservation } });
}

/** Runs the alarm that carries a ledger's receipts to D1; it is set once a group has been saved. */
export async function flush(workspace: string): Promise<void> {
  await vi.waitFor(async () => expect(await runDurableObjectAlarm(env.LEDGER.getByName(workspace))).toBe(true));
}
