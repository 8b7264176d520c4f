// GET /v1/usage: the sum of the receipts that GET /v1/receipts lists for the same time, those in progress at their counts
// so far (SPEC §9), and of those that were moved out of it (§12). First what the ledger holds, row by row, then the
// record's sums without those rows: a receipt on its way from one to the other counts once.

import { type Caller } from '../core/api-key.ts';
import { type GatewayError } from '../core/errors.ts';
import { type Receipt } from '../core/receipt.ts';
import { toLowestId } from '../core/request-id.ts';
import { err, ok, type Result } from '../core/result.ts';
import {
  createUsageSums,
  toStart,
  toUsageObject,
  toUsageSum,
  type UsageGrouping,
  type UsageSum,
} from '../core/usage-sums.ts';
import { toDay } from '../core/utc-day.ts';
import { parameterError } from '../openai/parameter-error.ts';
import { type Ports, type RecordSums, type UsageRange } from './ports.ts';
import { parseQuery, readOneOf, readWholeTimeSpan } from './read-query.ts';

const PARAMETERS = ['from', 'to', 'bucket_width', 'group_by'];
const DAYS_MAX = { '1h': 31, '1d': 366 } as const;
const DAY_MS = 24 * 3_600_000;
/** Rows of the ledger that one call brings, and calls at most: only an outage of D1 needs more than one or two. */
const HELD_ROWS = 2000;
const HELD_CALLS_MAX = 10;
/** Queries of the record at most, each over a bounded number of rows. */
const RECORD_QUERIES_MAX = 500;

type UsageQuery = UsageGrouping & { readonly fromMs: number; readonly toMs: number };

/** The workspace's usage, summed. */
export async function sumUsage(
  ports: Ports,
  caller: Caller,
  search: URLSearchParams,
): Promise<Result<unknown, GatewayError>> {
  const query = parseUsageQuery(search);
  if (!query.ok) return query;
  const { width, by, fromMs, toMs } = query.value;
  const span = { fromId: toLowestId(fromMs), beforeId: toLowestId(toMs) };
  const range = { ...span, workspace: caller.workspaceId, firstDay: toDay(fromMs), lastDay: toDay(toMs - 1) };
  const held = await readHeld(ports, range, caller.location);
  if (!held.ok) return held;
  const recorded = await readRecord(ports, range, { width, by }, [...held.value.keys()]);
  if (!recorded.ok) return recorded;
  const cut = checkMoved(recorded.value.movedSums, query.value);
  if (!cut.ok) return cut;
  const sums = createUsageSums();
  for (const receipt of held.value.values()) sums.add(toUsageSum(receipt, { width, by }));
  for (const sum of [...recorded.value.sums, ...recorded.value.movedSums]) sums.add(sum);
  return ok({ object: 'list', data: sums.list().map((sum) => toUsageObject(sum, by)) });
}

/** All sums of the record, query after query, the newest receipts first. */
async function readRecord(
  ports: Ports,
  range: UsageRange,
  grouping: UsageGrouping,
  withoutIds: readonly string[],
): Promise<Result<Omit<RecordSums, 'floorId'>, GatewayError>> {
  const sums: UsageSum[] = [];
  let before: readonly UsageSum[] | null = null;
  let endId = range.beforeId;
  for (let queries = 0; queries < RECORD_QUERIES_MAX; queries += 1) {
    const part = await ports.receipts.sum({ ...range, beforeId: endId }, grouping, withoutIds);
    if (!part.ok) return part;
    const { floorId, movedSums } = part.value;
    if (before !== null && countRequests(before) !== countRequests(movedSums)) {
      const fault = 'receipts were moved while they were summed';
      ports.log({ event: 'usage_unreadable', workspace: range.workspace, fault });
      return err({ kind: 'limiter_unavailable' });
    }
    before = movedSums;
    sums.push(...part.value.sums);
    if (floorId === null) return ok({ sums, movedSums });
    endId = floorId;
  }
  return err(tooManyReceipts());
}

function countRequests(sums: readonly UsageSum[]): bigint {
  return sums.reduce((total, { counts }) => total + counts.requests, 0n);
}

/** Of receipts that were moved out only whole days are known: a part of one is refused rather than told wrongly. */
function checkMoved(moved: readonly UsageSum[], { width, fromMs, toMs }: UsageQuery): Result<null, GatewayError> {
  const days = new Set(moved.map(({ start }) => start));
  if (width === '1h' && days.size > 0) return refuseMoved('bucket_width', 'their sums are kept by day: use 1d');
  const isCut = (timeMs: number): boolean => timeMs % DAY_MS !== 0 && days.has(toStart(toDay(timeMs), '1d'));
  if (isCut(fromMs)) return refuseMoved('from', 'their sums are kept by day: begin at midnight UTC');
  if (isCut(toMs)) return refuseMoved('to', 'their sums are kept by day: end at midnight UTC');
  return ok(null);
}

function refuseMoved(param: string, hint: string): Result<never, GatewayError> {
  const message = `Invalid '${param}': receipts of that time were moved to the archive, and ${hint}.`;
  return err(parameterError('invalid_value', param, message));
}

/** Everything of the range that the record may not have as it stands, by id. */
async function readHeld(
  ports: Ports,
  { workspace, fromId, beforeId }: UsageRange,
  location: string | null,
): Promise<Result<ReadonlyMap<string, Receipt>, GatewayError>> {
  const held = new Map<string, Receipt>();
  let endId: string | null = beforeId;
  for (let calls = 0; endId !== null; calls += 1) {
    if (calls === HELD_CALLS_MAX) {
      ports.log({ event: 'usage_unreadable', workspace, fault: 'too many receipts wait for D1' });
      return err({ kind: 'limiter_unavailable' });
    }
    const query = { workspace, fromId, beforeId: endId, key: null, model: null };
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
  return ok({ width: width.value, by: by.value, fromMs, toMs });
}

function tooManyReceipts(): GatewayError {
  return parameterError('invalid_value', 'from', "Invalid 'from': too many receipts to sum. Ask for a shorter time.");
}
