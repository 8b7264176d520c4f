// Closes days: the sum of each day's receipts goes into usage_daily (SPEC §12). A day is closed when it has been over for
// two hours, and once more, for good, when no ledger can bring or change a receipt of it any longer. It moves nothing.

import * as z from 'zod';
import { toLowestId } from '../core/request-id.ts';
import { addDays, listDays, toDay, toDayStartMs } from '../core/utc-day.ts';
import { type DailyWork, listNames } from './daily-work.ts';
import { COUNTED_COLUMNS, COUNTS_SHAPE } from './usage-columns.ts';

/** What was closed, and the first day that is not closed for good: nothing from there on may be moved. */
export type ClosedDays = {
  readonly days: readonly string[];
  readonly firstOpenDay: string;
  readonly finished: boolean;
};

const CLOSE_AFTER_MS = 2 * 3_600_000;
/** Ledgers keep what they flushed for seven days: the time in which a receipt can be replayed or replaced. */
const FINAL_AFTER_DAYS = 8;
/** Rows that one statement should sum; how long a slice of the day that is, is learned from the slice before. */
const SLICE_ROWS = 20_000;
const SLICE_MS_MIN = 1000;
const SLICE_GROWTH = 4;
/** Rows written by one statement: far below the 2 MB that a bound value may have. */
const WRITE_ROWS = 2000;
const NO_DAY = '9999-12-31';

/** The first day at or after an id on which any workspace has a receipt. */
const NEXT_DAY = `${listNames('receipts')} SELECT min((SELECT substr(created_at, 1, 10) FROM receipts
  WHERE workspace = names.workspace AND id >= ?1 ORDER BY id LIMIT 1)) AS day FROM names`;
const SUM_SLICE = `${listNames('receipts')} SELECT workspace, requested_model AS model, key,
    CAST(count(*) AS TEXT) AS requests,
    ${COUNTED_COLUMNS.map((column) => `CAST(sum(${column}) AS TEXT) AS ${column}`).join(', ')}
  FROM (SELECT r.* FROM names CROSS JOIN receipts AS r
    WHERE r.workspace = names.workspace AND r.id >= ?1 AND r.id < ?2) GROUP BY workspace, model, key`;
const CLEAR_DAY = `${listNames('usage_daily')} DELETE FROM usage_daily
  WHERE workspace IN (SELECT workspace FROM names) AND day = ?1`;
const COUNTS = ['requests', ...COUNTED_COLUMNS] as const;
const WRITE_DAY = `INSERT INTO usage_daily (workspace, day, model, key, ${COUNTS.join(', ')})
  SELECT value ->> 'workspace', ?1, value ->> 'model', value ->> 'key',
    ${COUNTS.map((column) => `CAST(value ->> '${column}' AS INTEGER)`).join(', ')} FROM json_each(?2)`;
const MARK_CLOSED = `INSERT INTO closed_days (day, closed_at, final_at) VALUES (?1, ?2, ?3)
  ON CONFLICT (day) DO UPDATE SET final_at = excluded.final_at`;

const sliceSchema = z.array(
  z.object({
    workspace: z.string(),
    model: z.string(),
    key: z.string(),
    ...COUNTS_SHAPE,
  }),
);
type DaySum = z.infer<typeof sliceSchema>[number];
const closedSchema = z.array(z.object({ day: z.string(), final_at: z.string().nullable() }));

/** Closes, oldest first, what is due. Every day is one transaction, and closing it again comes to the same. */
export async function closeDays(work: DailyWork): Promise<ClosedDays> {
  const days: string[] = [];
  const lastDay = addDays(toDay(work.nowMs - CLOSE_AFTER_MS), -1);
  const finalDay = addDays(toDay(work.nowMs), -FINAL_AFTER_DAYS);
  let next = await findNextDay(work.db, '');
  const closed = await readClosed(work.db, next);
  let open: string | null = null;
  for (const day of listDays(next, lastDay)) {
    const isFinal = day <= finalDay;
    if (closed.get(day) === true) continue;
    if (closed.has(day) && !isFinal) {
      open ??= day;
      continue;
    }
    // Days without receipts are passed over, a gap of any length with one look.
    if (day < next) continue;
    const isAffordable = work.budget.take(1);
    if (isAffordable) next = await findNextDay(work.db, toLowestId(toDayStartMs(day)));
    if (next > day) continue;
    const sums = isAffordable ? await sumDay(work, day) : null;
    if (sums === null || !work.budget.take(2 + Math.ceil(sums.length / WRITE_ROWS))) {
      return { days, firstOpenDay: open ?? day, finished: false };
    }
    await writeDay(work, day, sums, isFinal);
    days.push(day);
    if (!isFinal) open ??= day;
  }
  return { days, firstOpenDay: open ?? addDays(lastDay, 1), finished: true };
}

/** The first day from an id on that has receipts; a day beyond all others when there is none. */
async function findNextDay(db: D1Database, fromId: string): Promise<string> {
  const day = await db.prepare(NEXT_DAY).bind(fromId).first('day');
  return typeof day === 'string' ? day : NO_DAY;
}

/** Which days from one on are closed, and whether for good. */
async function readClosed(db: D1Database, fromDay: string): Promise<ReadonlyMap<string, boolean>> {
  const query = db.prepare('SELECT day, final_at FROM closed_days WHERE day >= ?1').bind(fromDay);
  const rows = closedSchema.parse((await query.all()).results);
  return new Map(rows.map((row) => [row.day, row.final_at !== null]));
}

/** A day's sums over all workspaces, slice by slice, so that the ledgers' writes find their turn; null: no budget. */
async function sumDay({ db, budget }: DailyWork, day: string): Promise<readonly DaySum[] | null> {
  const groups = new Map<string, DaySum>();
  const endMs = toDayStartMs(addDays(day, 1));
  let sliceMs = 60_000;
  for (let startMs = toDayStartMs(day); startMs < endMs;) {
    if (!budget.take(1)) return null;
    const untilMs = Math.min(endMs, startMs + sliceMs);
    const answer = await db.prepare(SUM_SLICE).bind(toLowestId(startMs), toLowestId(untilMs)).all();
    let rows = 0;
    for (const sum of sliceSchema.parse(answer.results)) {
      const group = JSON.stringify([sum.workspace, sum.model, sum.key]);
      groups.set(group, addSums(groups.get(group), sum));
      rows += Number(sum.requests);
    }
    startMs = untilMs;
    sliceMs = Math.max(SLICE_MS_MIN, Math.round(sliceMs * Math.min(SLICE_GROWTH, SLICE_ROWS / Math.max(1, rows))));
  }
  return [...groups.values()];
}

function addSums(left: DaySum | undefined, right: DaySum): DaySum {
  if (left === undefined) return right;
  const sum = { ...right };
  for (const column of COUNTS) sum[column] += left[column];
  return sum;
}

async function writeDay(
  { db, nowMs }: DailyWork,
  day: string,
  sums: readonly DaySum[],
  isFinal: boolean,
): Promise<void> {
  const statements = [db.prepare(CLEAR_DAY).bind(day)];
  for (let at = 0; at < sums.length; at += WRITE_ROWS) {
    const rows = sums.slice(at, at + WRITE_ROWS);
    // Text, because a JSON number would lose what is beyond 2^53.
    const json = JSON.stringify(rows, (_, value: unknown) => (typeof value === 'bigint' ? String(value) : value));
    statements.push(db.prepare(WRITE_DAY).bind(day, json));
  }
  const atTime = new Date(nowMs).toISOString();
  statements.push(db.prepare(MARK_CLOSED).bind(day, atTime, isFinal ? atTime : null));
  await db.batch(statements);
}
