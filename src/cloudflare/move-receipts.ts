// Moves receipts older than RETENTION_DAYS from D1 to R2 as JSON lines (SPEC §12). First the object is written; then one
// transaction sums into usage_moved exactly those rows that it deletes. A crash in between leaves the rows in D1, and the
// next run writes the same object again: nothing is lost and nothing counts twice.

import * as z from 'zod';
import { toLowestId } from '../core/request-id.ts';
import { addDays, toDay, toDayStartMs } from '../core/utc-day.ts';
import { type DailyWork, listNames } from './daily-work.ts';
import { COUNTED_COLUMNS } from './usage-columns.ts';

/** What a run moved. */
export type MovedReceipts = { readonly receipts: number; readonly objects: number; readonly finished: boolean };

/** Rows of one object: some 3 MB. */
const OBJECT_ROWS = 5000;
/** Statements per object: the rows, and a transaction of two. */
const OBJECT_STATEMENTS = 3;

/** The workspaces with receipts of a time before, and where theirs begin. */
const OLD = `${listNames('receipts')} SELECT workspace, first_id, day FROM (SELECT names.workspace, r.id AS first_id,
    substr(r.created_at, 1, 10) AS day FROM names CROSS JOIN receipts AS r
    WHERE r.workspace = names.workspace AND r.id = (SELECT min(id) FROM receipts WHERE workspace = names.workspace))
  WHERE first_id < ?1 ORDER BY first_id LIMIT 100`;
const READ = `SELECT * FROM (SELECT * FROM receipts WHERE workspace = ?1 AND id >= ?2 ORDER BY id LIMIT ${OBJECT_ROWS})
  WHERE substr(created_at, 1, 10) = ?3 ORDER BY id`;
/** Rows that changed since they were read are not those that were written, and stay. */
const AS_READ = `workspace = ?1 AND id >= ?3 AND id <= ?4
  AND (id, rev) IN (SELECT value ->> 0, value ->> 1 FROM json_each(?2))`;
const SUM_MOVED = `INSERT INTO usage_moved (workspace, day, model, key, requests, ${COUNTED_COLUMNS.join(', ')})
  SELECT workspace, substr(created_at, 1, 10) AS day, requested_model, key, count(*),
    ${COUNTED_COLUMNS.map((column) => `sum(${column})`).join(', ')}
  FROM receipts WHERE ${AS_READ} GROUP BY workspace, day, requested_model, key
  ON CONFLICT (workspace, day, model, key) DO UPDATE SET
    ${['requests', ...COUNTED_COLUMNS].map((column) => `${column} = ${column} + excluded.${column}`).join(', ')}`;
const DELETE_MOVED = `DELETE FROM receipts WHERE ${AS_READ}`;

const oldSchema = z.array(z.object({ workspace: z.string(), first_id: z.string(), day: z.string() }));
/** What is needed of a row; the rest goes into the archive as it is. */
const rowSchema = z.looseObject({ id: z.string(), rev: z.number() });

/** Moves what is old enough and closed for good, oldest first, as far as the budget goes. */
export async function moveReceipts(work: DailyWork, firstOpenDay: string): Promise<MovedReceipts> {
  const cutoff = addDays(toDay(work.nowMs), -work.retentionDays);
  const endDay = cutoff < firstOpenDay ? cutoff : firstOpenDay;
  const endId = toLowestId(toDayStartMs(endDay));
  let receipts = 0;
  let objects = 0;
  while (work.budget.take(1)) {
    const old = oldSchema.parse((await work.db.prepare(OLD).bind(endId).all()).results);
    if (old.length === 0) return { receipts, objects, finished: true };
    if (work.archive === null) {
      const fault = 'older than RETENTION_DAYS, but no R2 bucket is bound as ARCHIVE: kept';
      work.log({ event: 'receipts_kept', workspaces: old.length, oldest_day: old[0]?.day, fault });
      return { receipts, objects, finished: true };
    }
    for (const { workspace, first_id: firstId, day } of old) {
      if (!work.budget.take(OBJECT_STATEMENTS)) return { receipts, objects, finished: false };
      receipts += await moveObject(work.db, work.archive, workspace, firstId, day);
      objects += 1;
    }
  }
  return { receipts, objects, finished: false };
}

/**
 * One object: receipts of one workspace and one day, at most so many. Its name comes from what is in it: written again it
 * is the same object, and with any other content it never takes the place of one whose rows are deleted.
 */
async function moveObject(
  db: D1Database,
  archive: R2Bucket,
  workspace: string,
  firstId: string,
  day: string,
): Promise<number> {
  const { results } = await db.prepare(READ).bind(workspace, firstId, day).all();
  const rows = results.map((row) => rowSchema.parse(row));
  const last = rows.at(-1);
  if (last === undefined) return 0;
  const lines = rows.map((row) => `${JSON.stringify(row)}\n`).join('');
  await archive.put(`receipts/${workspace}/${day}/${firstId}-${await toContentHash(lines)}.jsonl`, lines, {
    httpMetadata: { contentType: 'application/x-ndjson' },
  });
  const values = [workspace, JSON.stringify(rows.map(({ id, rev }) => [id, rev])), firstId, last.id];
  await db.batch([db.prepare(SUM_MOVED).bind(...values), db.prepare(DELETE_MOVED).bind(...values)]);
  return rows.length;
}

async function toContentHash(text: string): Promise<string> {
  const digest = new Uint8Array(await crypto.subtle.digest('SHA-256', new TextEncoder().encode(text)));
  return [...digest.subarray(0, 8)].map((byte) => byte.toString(16).padStart(2, '0')).join('');
}
