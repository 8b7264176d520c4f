// Receipts in D1, the record. Reading one; the ledger objects write them.

import { ok, type Result } from '../core/result.ts';
import { type GatewayError } from '../core/errors.ts';
import { err } from '../core/result.ts';
import { type Receipt } from '../core/receipt.ts';
import { withDeadline } from '../gateway/deadline.ts';
import { type LogEntry, type ReceiptStore } from '../gateway/ports.ts';
import { fromReceiptRow } from './receipt-row.ts';

const READ_DEADLINE_MS = 5000;

/** The receipt store over a D1 database. */
export function createD1Receipts(db: D1Database, log: (entry: LogEntry) => void): ReceiptStore {
  const select = 'SELECT * FROM receipts WHERE workspace = ?1 AND id = ?2';
  return {
    async find(workspace, id): Promise<Result<Receipt | null, GatewayError>> {
      try {
        const query = db.prepare(select).bind(workspace, id).first();
        const row = await withDeadline(query, READ_DEADLINE_MS, () => undefined);
        if (row === 'deadline') throw new Error('D1 did not answer in time');
        return ok(row === null ? null : fromReceiptRow(row));
      } catch (error) {
        log({ event: 'receipts_unreadable', message: String(error) });
        return err({ kind: 'limiter_unavailable' });
      }
    },
  };
}
