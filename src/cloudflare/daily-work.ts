// What the parts of the daily run share: the bindings, the time, the log, and a budget of D1 statements. One run does a
// bounded part of the work and the next goes on where it ended.

import { type LogEntry } from '../gateway/ports.ts';
import { type LedgerRpc } from './ledger-call.ts';

/** What a daily run works with. */
export type DailyWork = {
  readonly db: D1Database;
  readonly ledgers: DurableObjectNamespace<LedgerRpc>;
  /** Where old receipts go; null when no bucket is bound. */
  readonly archive: R2Bucket | null;
  readonly retentionDays: number;
  readonly nowMs: number;
  readonly budget: Budget;
  readonly log: (entry: LogEntry) => void;
};

/** Statements that a part may still send; the platform allows an invocation a thousand. */
export type Budget = {
  /** Takes so many; false, and nothing taken, when there are not so many left. */
  readonly take: (statements: number) => boolean;
};

/** Creates a budget. */
export function createBudget(statements: number): Budget {
  let left = statements;
  return {
    take(count) {
      if (left < count) return false;
      left -= count;
      return true;
    },
  };
}

/**
 * All workspaces that have rows in a table, as a common table expression `names(workspace)`: one look into the primary
 * key for each, however many rows it has. Its last row is null.
 */
export function listNames(table: 'receipts' | 'usage_daily'): string {
  return `WITH RECURSIVE names(workspace) AS (SELECT min(workspace) FROM ${table} UNION ALL
    SELECT (SELECT min(workspace) FROM ${table} WHERE workspace > names.workspace) FROM names
    WHERE names.workspace IS NOT NULL)`;
}
