// Compares what the ledgers say D1 has of a closed day with what D1 has (SPEC §12), and reports each difference as one
// line in the log. It mends nothing: `receipts replay` does.

import * as z from 'zod';
import { type IdRange } from '../core/receipt-page.ts';
import { toLowestId } from '../core/request-id.ts';
import { addDays, toDay, toDayStartMs } from '../core/utc-day.ts';
import { withDeadline } from '../gateway/deadline.ts';
import { type DailyWork, listNames } from './daily-work.ts';
import { type FlushedSums } from './ledger-call.ts';

/** What a run compared. */
export type ComparedLedgers = { readonly ledgers: number; readonly differing: number; readonly finished: boolean };

/** Ledgers keep flushed receipts for seven days; of an older day they know less than D1. */
const DAYS_BACK_MAX = 5;
/** A workspace without receipts for so long is not woken. */
const IDLE_DAYS = 7;
/** Ledgers asked at a time, and in one run: each is a call of its own. */
const CHUNK = 20;
const LEDGERS_MAX = 400;
const DEADLINE_MS = 10_000;
const ALL = '~';

const DUE = 'SELECT day, compared_to FROM closed_days WHERE day >= ?1 AND compared_to <> ?2 ORDER BY day';
const WORKSPACES = `${listNames('receipts')} SELECT workspace FROM names WHERE workspace > ?1
  AND EXISTS (SELECT 1 FROM receipts WHERE workspace = names.workspace AND id >= ?2) LIMIT ${CHUNK}`;
const SUM_DAY = `SELECT workspace, sum(requests) AS receipts, sum(cost_nano_usd) AS costNanoUsd FROM usage_daily
  WHERE workspace IN (SELECT value FROM json_each(?1)) AND day = ?2 GROUP BY workspace`;
const SUM_RECORD = `SELECT count(*) AS receipts, COALESCE(sum(cost_nano_usd), 0) AS costNanoUsd,
  COALESCE(sum(rev), 0) AS revs FROM receipts WHERE workspace = ?1 AND id >= ?2 AND id < ?3`;
const MARK_COMPARED = 'UPDATE closed_days SET compared_to = ?2 WHERE day = ?1';

const dueSchema = z.array(z.object({ day: z.string(), compared_to: z.string() }));
const workspacesSchema = z.array(z.object({ workspace: z.string() }));
const sumsSchema = z.array(z.object({ workspace: z.string(), receipts: z.number(), costNanoUsd: z.number() }));
const recordSchema = z.object({ receipts: z.number(), costNanoUsd: z.number(), revs: z.number() });

type Comparison = { readonly workspace: string; readonly day: string; readonly span: IdRange };

/** Compares the days closed lately, as far as the budget goes; the next run begins where this one ended. */
export async function compareLedgers(work: DailyWork): Promise<ComparedLedgers> {
  let ledgers = 0;
  let differing = 0;
  const firstDay = addDays(toDay(work.nowMs), -DAYS_BACK_MAX);
  const due = dueSchema.parse((await work.db.prepare(DUE).bind(firstDay, ALL).all()).results);
  for (const { day, compared_to: comparedTo } of due) {
    const span = { fromId: toLowestId(toDayStartMs(day)), beforeId: toLowestId(toDayStartMs(addDays(day, 1))) };
    const activeFromId = toLowestId(toDayStartMs(addDays(day, -IDLE_DAYS)));
    for (let done = comparedTo; done !== ALL;) {
      // The workspaces, their sums, the mark.
      if (ledgers >= LEDGERS_MAX || !work.budget.take(3)) return { ledgers, differing, finished: false };
      const query = work.db.prepare(WORKSPACES).bind(done, activeFromId);
      const names = workspacesSchema.parse((await query.all()).results).map(({ workspace }) => workspace);
      const sums = await readSums(work.db, names, day);
      const answers = await Promise.all(names.map((workspace) => isSame(work, { workspace, day, span }, sums)));
      ledgers += names.length;
      differing += answers.filter((same) => same === false).length;
      if (answers.includes(null)) return { ledgers, differing, finished: false };
      done = names.length < CHUNK ? ALL : (names.at(-1) ?? ALL);
      await work.db.prepare(MARK_COMPARED).bind(day, done).run();
    }
  }
  return { ledgers, differing, finished: true };
}

type Sums = Pick<FlushedSums, 'receipts' | 'costNanoUsd'>;

/** What D1 had of the day when it was closed, by workspace. */
async function readSums(db: D1Database, names: readonly string[], day: string): Promise<ReadonlyMap<string, Sums>> {
  const { results } = await db.prepare(SUM_DAY).bind(JSON.stringify(names), day).all();
  return new Map(sumsSchema.parse(results).map(({ workspace, ...sums }) => [workspace, sums]));
}

/** Whether both have the same: first by the day's sums; where these differ, by what D1 has now. Null: no budget. */
async function isSame(
  work: DailyWork,
  comparison: Comparison,
  sums: ReadonlyMap<string, Sums>,
): Promise<boolean | null> {
  const { workspace, day, span } = comparison;
  try {
    const closed = sums.get(workspace) ?? { receipts: 0, costNanoUsd: 0 };
    if (isEqual(await askLedger(work, comparison), closed)) return true;
    if (!work.budget.take(1)) return null;
    const row = await work.db.prepare(SUM_RECORD).bind(workspace, span.fromId, span.beforeId).first();
    const record = recordSchema.parse(row);
    const { waiting, ...ledger } = await askLedger(work, comparison);
    if (isEqual({ waiting, ...ledger }, record) && ledger.revs === record.revs) return true;
    work.log({ event: 'ledger_differs', workspace, day, ledger, record, waiting });
  } catch (error) {
    work.log({ event: 'ledger_not_compared', workspace, day, fault: String(error) });
  }
  return false;
}

async function askLedger({ ledgers }: DailyWork, { workspace, span }: Comparison): Promise<FlushedSums> {
  const asking: Promise<FlushedSums> = ledgers.getByName(workspace).sumFlushed(span);
  const answer = await withDeadline(asking, DEADLINE_MS, () => undefined);
  if (answer === 'deadline') throw new Error('the ledger did not answer in time');
  return answer;
}

function isEqual(ledger: FlushedSums, record: Sums): boolean {
  const { receipts, costNanoUsd, waiting } = ledger;
  return waiting === 0 && receipts === record.receipts && costNanoUsd === record.costNanoUsd;
}
