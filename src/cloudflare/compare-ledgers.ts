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
/** Ledgers asked at a time. */
const CHUNK = 20;
const DEADLINE_MS = 10_000;
const ALL = '~';

const DUE = 'SELECT day, compared_to FROM closed_days WHERE day >= ?1 AND compared_to <> ?2 ORDER BY day';
const WORKSPACES = `${listNames('receipts')} SELECT workspace FROM names WHERE workspace > ?1
  AND EXISTS (SELECT 1 FROM receipts WHERE workspace = names.workspace AND id >= ?2) LIMIT ${CHUNK}`;
const SUM_RECORD = `SELECT count(*) AS receipts, COALESCE(sum(cost_nano_usd), 0) AS costNanoUsd,
  COALESCE(sum(rev), 0) AS revs FROM receipts WHERE workspace = ?1 AND id >= ?2 AND id < ?3`;
const MARK_COMPARED = 'UPDATE closed_days SET compared_to = ?2 WHERE day = ?1';

const dueSchema = z.array(z.object({ day: z.string(), compared_to: z.string() }));
const workspacesSchema = z.array(z.object({ workspace: z.string() }));
const recordSchema = z.object({ receipts: z.number(), costNanoUsd: z.number(), revs: z.number() });

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
      // Of each workspace twice at most, the workspaces, and the mark.
      if (!work.budget.take(2 * CHUNK + 2)) return { ledgers, differing, finished: false };
      const query = work.db.prepare(WORKSPACES).bind(done, activeFromId);
      const names = workspacesSchema.parse((await query.all()).results).map(({ workspace }) => workspace);
      const answers = await Promise.all(names.map((workspace) => isSame(work, workspace, day, span)));
      ledgers += names.length;
      differing += answers.filter((same) => !same).length;
      done = names.length < CHUNK ? ALL : (names.at(-1) ?? ALL);
      await work.db.prepare(MARK_COMPARED).bind(day, done).run();
    }
  }
  return { ledgers, differing, finished: true };
}

/** Whether both have the same; looked at twice, since receipts may be on their way from one to the other. */
async function isSame(work: DailyWork, workspace: string, day: string, span: IdRange): Promise<boolean> {
  const { db, ledgers, log } = work;
  try {
    for (let looks = 1; ; looks += 1) {
      const row = await db.prepare(SUM_RECORD).bind(workspace, span.fromId, span.beforeId).first();
      const record = recordSchema.parse(row);
      const asking = ledgers.getByName(workspace).sumFlushed(span);
      const ledger: FlushedSums | 'deadline' = await withDeadline(asking, DEADLINE_MS, () => undefined);
      if (ledger === 'deadline') throw new Error('the ledger did not answer in time');
      const { waiting, ...flushed } = ledger;
      const same =
        waiting === 0 &&
        flushed.receipts === record.receipts &&
        flushed.costNanoUsd === record.costNanoUsd &&
        flushed.revs === record.revs;
      if (same) return true;
      if (looks === 1) continue;
      log({ event: 'ledger_differs', workspace, day, ledger: flushed, record, waiting });
      return false;
    }
  } catch (error) {
    log({ event: 'ledger_not_compared', workspace, day, fault: String(error) });
    return false;
  }
}
