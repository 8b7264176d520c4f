// What a workspace spent before its ledger object began to count: read from the receipts in D1 when the object finds
// itself without a count, because it is new or was emptied (SPEC §5), and from the sums of those that were moved out.
// Receipts that D1 may not have yet are counted from the object itself, each receipt once.

import { beginRebuild, type Credits, endRebuild } from '../core/ledger-credits.ts';
import { withDeadline } from '../gateway/deadline.ts';
import { type LogEntry } from '../gateway/ports.ts';

/** The history of one workspace. */
export type SpentHistory = {
  /** Sees to it that the count is whole. Waits at most 500 ms; never rejects. */
  readonly complete: (workspace: string) => Promise<void>;
  /** Waits while D1 is being read: a receipt that is carried there now could be counted twice. */
  readonly pause: () => Promise<void>;
};

/** What a history works with. */
export type SpentHistoryInput = {
  readonly db: D1Database;
  readonly credits: Credits;
  /** Receipts that D1 may not have in this form: id → cost in nano-USD. */
  readonly listOwnCosts: () => ReadonlyMap<string, number>;
  readonly now: () => number;
  readonly log: (entry: LogEntry) => void;
};

const WAIT_MS = 500;
/** A long history is a long sum; callers are told to come again meanwhile. */
const READ_DEADLINE_MS = 25_000;
/** After a failure nobody waits for so long. */
const RETRY_MS = 1000;

/** One statement, so that a receipt which is just being moved counts on one side. */
const SUM = `SELECT (SELECT COALESCE(SUM(cost_nano_usd), 0) FROM receipts
    WHERE workspace = ?1 AND id NOT IN (SELECT value FROM json_each(?2)))
  + (SELECT COALESCE(SUM(cost_nano_usd), 0) FROM usage_moved WHERE workspace = ?1)`;

/** Creates the history of one workspace. */
export function createSpentHistory({ db, credits, listOwnCosts, now, log }: SpentHistoryInput): SpentHistory {
  let reading: Promise<void> | null = null;
  let failedAtMs = -Infinity;

  async function read(workspace: string): Promise<void> {
    const own = listOwnCosts();
    beginRebuild(
      credits,
      [...own.values()].reduce((sum, cost) => sum + cost, 0),
    );
    try {
      const query = db.prepare(SUM).bind(workspace, JSON.stringify([...own.keys()]));
      const answer = await withDeadline(query.raw<[number]>(), READ_DEADLINE_MS, () => undefined);
      if (answer === 'deadline') throw new Error('D1 did not answer in time');
      endRebuild(credits, answer[0]?.[0] ?? 0);
    } catch (error) {
      failedAtMs = now();
      log({ event: 'spent_unreadable', workspace, fault: String(error) });
    } finally {
      reading = null;
    }
  }

  return {
    async complete(workspace) {
      if (credits.isWhole || (reading === null && now() - failedAtMs < RETRY_MS)) return;
      reading ??= read(workspace);
      await withDeadline(reading, WAIT_MS, () => undefined);
    },
    async pause() {
      await reading;
    },
  };
}
