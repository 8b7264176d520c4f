// The receipts of a ledger that D1 may not have as they stand: in progress with their running counts, closed but not yet
// saved, saved but not yet flushed (SPEC §9). Reading only; what is flushed is D1's to tell.

import { type ClosedReceipt, type LedgerState } from '../core/ledger-types.ts';
import { type ReceiptQuery, type ReceiptScan, type RevisedReceipt } from '../core/receipt-page.ts';
import { type LedgerStore } from './ledger-store.ts';

/** Rows of the object's SQLite that one query reads at most. Only an outage of D1 lets more of them wait. */
const SCAN_ROWS = 10_000;

/**
 * The newest receipts looked for, at most `rows` of them.
 *
 * @param closed Closings that the store does not have yet, by id.
 */
export function listHeldReceipts(
  state: LedgerState,
  closed: ReadonlyMap<string, ClosedReceipt>,
  store: LedgerStore,
  query: ReceiptQuery,
  rows: number,
): ReceiptScan {
  const newer = new Map<string, RevisedReceipt>();
  for (const [id, closing] of closed) if (isLookedFor(closing, query)) newer.set(id, closing);
  for (const [id, { reservation, before }] of state.open) {
    const open = { rev: before?.rev ?? 0, receipt: reservation.receipt };
    if (isLookedFor(open, query)) newer.set(id, open);
  }
  const scan = store.scanUnflushed(query, SCAN_ROWS);
  const found = [...newer.values()];
  let taken = 0;
  for (const row of scan.rows) {
    if (newer.has(row.receipt.id) || !isLookedFor(row, query)) continue;
    found.push(row);
    taken += 1;
    if (taken === rows) break;
  }
  found.sort((left, right) => (left.receipt.id < right.receipt.id ? 1 : -1));
  const last = found[rows - 1];
  return last === undefined
    ? { rows: found, floorId: scan.floorId }
    : { rows: found.slice(0, rows), floorId: last.receipt.id };
}

function isLookedFor({ receipt }: RevisedReceipt, { fromId, beforeId, key, model }: ReceiptQuery): boolean {
  if (receipt.id < fromId || receipt.id >= beforeId) return false;
  return (key === null || receipt.key === key) && (model === null || receipt.requested_model === model);
}
