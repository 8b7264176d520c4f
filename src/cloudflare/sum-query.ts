// The queries of D1 that sum receipts and what was moved, and the reading of their answers. The sum of receipts goes down the workspace's ids like every other:
// a bounded number of rows a query, so that the ledgers' writes find their turn in between.

import * as z from 'zod';
import { COUNTED_COLUMNS, COUNTS_SHAPE } from './usage-columns.ts';
import { toStart, type UsageGrouping, type UsageSum } from '../core/usage-sums.ts';

/** Rows that one query sums at most: so many occupy D1 for some tens of milliseconds. */
export const SUM_ROWS = 20_000;

/**
 * The query by what it groups. Bound are workspace, first id, id before which to end, how much of a time is its start,
 * ids to leave out as a JSON array, and the rows at most.
 */
export const SUM_QUERIES: Readonly<Record<UsageGrouping['by'], string>> = {
  model: buildQuery('requested_model'),
  key: buildQuery('key'),
};

/** Sums leave as text: D1 hands out numbers as doubles. */
function buildQuery(nameColumn: string): string {
  return `SELECT start, name, min(id) AS lowest_id, CAST(count(*) AS TEXT) AS requests,
    ${COUNTED_COLUMNS.map((column) => `CAST(sum(${column}) AS TEXT) AS ${column}`).join(', ')}
  FROM (SELECT id, substr(created_at, 1, ?4) AS start, ${nameColumn} AS name, ${COUNTED_COLUMNS.join(', ')}
    FROM receipts WHERE workspace = ?1 AND id >= ?2 AND id < ?3 AND id NOT IN (SELECT value FROM json_each(?5))
    ORDER BY id DESC LIMIT ?6)
  GROUP BY start, name`;
}

/**
 * The query for what was moved out of the receipts, by day and by what it groups. Bound are workspace, first day and last
 * day.
 */
export const MOVED_QUERIES: Readonly<Record<UsageGrouping['by'], string>> = {
  model: buildMovedQuery('model'),
  key: buildMovedQuery('key'),
};

function buildMovedQuery(nameColumn: string): string {
  return `SELECT day AS start, ${nameColumn} AS name, '' AS lowest_id, CAST(sum(requests) AS TEXT) AS requests,
    ${COUNTED_COLUMNS.map((column) => `CAST(sum(${column}) AS TEXT) AS ${column}`).join(', ')}
  FROM usage_moved WHERE workspace = ?1 AND day >= ?2 AND day <= ?3 GROUP BY start, name`;
}

const rowSchema = z
  .object({
    start: z.string(),
    name: z.string(),
    lowest_id: z.string(),
    ...COUNTS_SHAPE,
  })
  .transform(({ start, name, lowest_id: lowestId, ...counts }) => ({ start, name, lowestId, counts }));

/**
 * Reads the rows of the query for what was moved.
 *
 * @throws z.ZodError when a column does not hold what was written: someone changed the table by hand.
 */
export function readMovedSums(rows: readonly unknown[]): readonly UsageSum[] {
  return rows.map((row) => {
    const { start, name, counts } = rowSchema.parse(row);
    return { start: toStart(start, '1d'), name, counts };
  });
}

/**
 * Reads the query's rows. `floorId` is where the next query ends, null when this one summed all there was.
 *
 * @throws z.ZodError when a column does not hold what was written: someone changed the table by hand.
 */
export function readSums(
  rows: readonly unknown[],
  width: UsageGrouping['width'],
  beforeId: string,
): { readonly sums: readonly UsageSum[]; readonly floorId: string | null } {
  let summed = 0n;
  let floorId = beforeId;
  const sums = rows.map((row) => {
    const { start, name, lowestId, counts } = rowSchema.parse(row);
    summed += counts.requests;
    if (lowestId < floorId) floorId = lowestId;
    return { start: toStart(start, width), name, counts };
  });
  return { sums, floorId: summed < SUM_ROWS ? null : floorId };
}
