// Receipts in D1, the record. Reading only; the ledger objects write them. The table has no index but its primary key
// (workspace, id): a filter walks the workspace's ids from the newest down, a bounded number of rows a query.

import { type GatewayError } from '../core/errors.ts';
import { err, ok, type Result } from '../core/result.ts';
import { START_LENGTH } from '../core/usage-sums.ts';
import { withDeadline } from '../gateway/deadline.ts';
import { type LogEntry, type ReceiptStore } from '../gateway/ports.ts';
import { fromReceiptRow } from './receipt-row.ts';
import { MOVED_QUERIES, readMovedSums, readSums, SUM_QUERIES, SUM_ROWS } from './sum-query.ts';

const READ_DEADLINE_MS = 5000;
/** Rows that one filtered query of a list walks past at most. */
const SCAN_ROWS = 10_000;

const FIND = 'SELECT * FROM receipts WHERE workspace = ?1 AND id = ?2';
/** The millisecond in which a walk has seen its share of rows; ids of one millisecond stay together. */
const FIND_FLOOR = `SELECT substr(id, 1, 14) AS floor_id FROM receipts WHERE workspace = ?1 AND id >= ?2 AND id < ?3
  ORDER BY id DESC LIMIT 1 OFFSET ?4`;
const LIST = `SELECT * FROM receipts WHERE workspace = ?1 AND id >= ?2 AND id < ?3
  AND (?4 IS NULL OR key = ?4) AND (?5 IS NULL OR requested_model = ?5) AND (?6 IS NULL OR status = ?6)
  ORDER BY id DESC LIMIT ?7`;

/** The receipt store over a D1 database. */
export function createD1Receipts(db: D1Database, log: (entry: LogEntry) => void): ReceiptStore {
  /** A query's answer within the deadline; every failure is one error, and its reason is logged. */
  async function read<T>(query: () => Promise<T>): Promise<Result<T, GatewayError>> {
    try {
      const answer = await withDeadline(query(), READ_DEADLINE_MS, () => undefined);
      if (answer === 'deadline') throw new Error('D1 did not answer in time');
      return ok(answer);
    } catch (error) {
      log({ event: 'receipts_unreadable', message: String(error) });
      return err({ kind: 'limiter_unavailable' });
    }
  }

  return {
    find: (workspace, id) =>
      read(async () => {
        const row = await db.prepare(FIND).bind(workspace, id).first();
        return row === null ? null : fromReceiptRow(row).receipt;
      }),
    list: ({ workspace, fromId, beforeId, key, model }, status, rows) =>
      read(async () => {
        const isFiltered = key !== null || model !== null || status !== null;
        const floor = isFiltered
          ? await db.prepare(FIND_FLOOR).bind(workspace, fromId, beforeId, SCAN_ROWS).first('floor_id')
          : null;
        const floorId = typeof floor === 'string' ? floor : null;
        const query = db.prepare(LIST).bind(workspace, floorId ?? fromId, beforeId, key, model, status, rows);
        const receipts = (await query.all()).results.map(fromReceiptRow);
        return { rows: receipts, floorId: receipts[rows - 1]?.receipt.id ?? floorId };
      }),
    sum: ({ workspace, fromId, beforeId, firstDay, lastDay }, { width, by }, withoutIds) =>
      read(async () => {
        const values = [workspace, fromId, beforeId, START_LENGTH[width], JSON.stringify(withoutIds), SUM_ROWS];
        // One transaction: a receipt that is just being moved is on one side.
        const [held, moved] = await db.batch([
          db.prepare(SUM_QUERIES[by]).bind(...values),
          db.prepare(MOVED_QUERIES[by]).bind(workspace, firstDay, lastDay),
        ]);
        const movedSums = readMovedSums(moved?.results ?? []);
        return { ...readSums(held?.results ?? [], width, beforeId), movedSums };
      }),
  };
}
