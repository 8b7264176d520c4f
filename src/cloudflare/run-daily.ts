// The daily run (SPEC §12): close days, compare ledgers with D1, erase, move old receipts. Each part has its own budget
// and its own faults: one that fails leaves the others to their work and is tried again the next day.

import { closeDays } from './close-days.ts';
import { compareLedgers } from './compare-ledgers.ts';
import { createBudget, type DailyWork } from './daily-work.ts';
import { type Env, parseRetentionDays } from './env.ts';
import { eraseWorkspaces } from './erase-workspaces.ts';
import { log as writeLog } from './log.ts';
import { moveReceipts } from './move-receipts.ts';

/** D1 statements of each part: together below the thousand that the platform allows an invocation. */
const STATEMENTS = { close: 350, compare: 250, erase: 120, move: 240 } as const;

/** Runs all parts once and logs one line about them. Never rejects. */
export async function runDaily(env: Env, nowMs: number, log: DailyWork['log'] = writeLog): Promise<void> {
  const work = {
    db: env.DB,
    ledgers: env.LEDGER,
    archive: env.ARCHIVE ?? null,
    retentionDays: parseRetentionDays(env, (fault) => log({ event: 'bad_var', fault })),
    nowMs,
    log,
  };
  const run = async <T>(part: keyof typeof STATEMENTS, does: (work: DailyWork) => Promise<T>): Promise<T | null> => {
    try {
      return await does({ ...work, budget: createBudget(STATEMENTS[part]) });
    } catch (error) {
      log({ event: 'daily_failed', part, fault: String(error) });
      return null;
    }
  };
  const closed = await run('close', closeDays);
  const compared = await run('compare', compareLedgers);
  const erased = await run('erase', eraseWorkspaces);
  const moved = closed === null ? null : await run('move', (part) => moveReceipts(part, closed.firstOpenDay));
  log({ event: 'daily', closed, compared, erased, moved });
}
