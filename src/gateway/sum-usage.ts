// GET /v1/usage: the sum of the receipts that GET /v1/receipts lists for the same time, those in progress at their counts
// so far (SPEC §9). First what the ledger holds, row by row, then the record's sums without those rows: a receipt on its
// way from one to the other counts once.

import { type Caller } from '../core/api-key.ts';
import { type GatewayError } from '../core/errors.ts';
import { type Receipt } from '../core/receipt.ts';
import { toLowestId } from '../core/request-id.ts';
import { err, ok, type Result } from '../core/result.ts';
import { createUsageSums, toUsageObject, toUsageSum, type UsageGrouping } from '../core/usage-sums.ts';
import { parameterError } from '../openai/parameter-error.ts';
import { type Ports, type UsageRange } from './ports.ts';
import { parseQuery, readOneOf, readWholeTimeSpan } from './read-query.ts';

const PARAMETERS = ['from', 'to', 'bucket_width', 'group_by'];
const DAYS_MAX = { '1h': 31, '1d': 366 } as const;
const DAY_MS = 24 * 3_600_000;
/** Rows of the ledger that one call brings, and calls at most: only an outage of D1 needs more than one or two. */
const HELD_ROWS = 2000;
const HELD_CALLS_MAX = 10;
/** Queries of the record at most, each over a bounded number of rows. */
const RECORD_QUERIES_MAX = 500;

type UsageQuery = UsageGrouping & { readonly fromId: string; readonly beforeId: string };

/** The workspace's usage, summed. */
export async function sumUsage(
  ports: Ports,
  caller: Caller,
  search: URLSearchParams,
): Promise<Result<unknown, GatewayError>> {
  const query = parseUsageQuery(search);
  if (!query.ok) return query;
  const { width, by, fromId, beforeId } = query.value;
  const range = { workspace: caller.workspaceId, fromId, beforeId };
  const held = await readHeld(ports, range, caller.location);
  if (!held.ok) return held;
  const sums = createUsageSums();
  for (const receipt of held.value.values()) sums.add(toUsageSum(receipt, { width, by }));
  const heldIds = [...held.value.keys()];
  let endId: string | null = beforeId;
  for (let queries = 0; endId !== null; queries += 1) {
    if (queries === RECORD_QUERIES_MAX) return err(tooManyReceipts());
    const part = await ports.receipts.sum({ ...range, beforeId: endId }, { width, by }, heldIds);
    if (!part.ok) return part;
    for (const sum of part.value.sums) sums.add(sum);
    endId = part.value.floorId;
  }
  return ok({ object: 'list', data: sums.list().map((sum) => toUsageObject(sum, by)) });
}

/** Everything of the range that the record may not have as it stands, by id. */
async function readHeld(
  ports: Ports,
  range: UsageRange,
  location: string | null,
): Promise<Result<ReadonlyMap<string, Receipt>, GatewayError>> {
  const held = new Map<string, Receipt>();
  let endId: string | null = range.beforeId;
  for (let calls = 0; endId !== null; calls += 1) {
    if (calls === HELD_CALLS_MAX) {
      ports.log({ event: 'usage_unreadable', workspace: range.workspace, fault: 'too many receipts wait for D1' });
      return err({ kind: 'limiter_unavailable' });
    }
    const query = { ...range, beforeId: endId, key: null, model: null };
    const scan = await ports.ledger.listReceipts(query, HELD_ROWS, location);
    if (!scan.ok) return scan;
    for (const { receipt } of scan.value.rows) if (!held.has(receipt.id)) held.set(receipt.id, receipt);
    endId = scan.value.floorId;
  }
  return ok(held);
}

function parseUsageQuery(search: URLSearchParams): Result<UsageQuery, GatewayError> {
  const query = parseQuery(search, PARAMETERS);
  if (!query.ok) return query;
  const span = readWholeTimeSpan(query.value);
  if (!span.ok) return span;
  const width = readOneOf(query.value, 'bucket_width', ['1d', '1h'], '1d');
  if (!width.ok) return width;
  const by = readOneOf(query.value, 'group_by', ['model', 'key'], 'model');
  if (!by.ok) return by;
  const daysMax = DAYS_MAX[width.value];
  const { fromMs, toMs } = span.value;
  if (toMs - fromMs > daysMax * DAY_MS) {
    const message = `Invalid 'to': at most ${daysMax} days after 'from' with a bucket_width of ${width.value}.`;
    return err(parameterError('invalid_value', 'to', message));
  }
  return ok({ width: width.value, by: by.value, fromId: toLowestId(fromMs), beforeId: toLowestId(toMs) });
}

function tooManyReceipts(): GatewayError {
  return parameterError('invalid_value', 'from', "Invalid 'from': too many receipts to sum. Ask for a shorter time.");
}
