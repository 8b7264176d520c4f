// A receipt that a ledger object no longer holds, from D1: an object that was emptied must know that a request was closed
// before, so that a repeated settlement changes nothing and a late one charges the difference (SPEC §5).

import { type ClosedReceipt } from '../core/ledger-types.ts';
import { withDeadline } from '../gateway/deadline.ts';
import { type LogEntry } from '../gateway/ports.ts';
import { fromReceiptRow } from './receipt-row.ts';

/** Finds a closed receipt in the record. Waits at most 500 ms; never rejects: what cannot be found is null. */
export type RecallReceipt = (workspace: string, id: string) => Promise<ClosedReceipt | null>;

const WAIT_MS = 500;

/** Creates the search over a D1 database. */
export function createRecallReceipt(db: D1Database, log: (entry: LogEntry) => void): RecallReceipt {
  const select = 'SELECT * FROM receipts WHERE workspace = ?1 AND id = ?2';
  return async (workspace, id) => {
    try {
      const row = await withDeadline(db.prepare(select).bind(workspace, id).first(), WAIT_MS, () => undefined);
      if (row === 'deadline') throw new Error('D1 did not answer in time');
      return row === null ? null : fromReceiptRow(row);
    } catch (error) {
      log({ event: 'receipt_not_recalled', workspace, receipt: id, fault: String(error) });
      return null;
    }
  };
}
