// GET /v1/receipts: newest first, page by page, filtered (SPEC §9). The ledger is asked first, for what the record may
// not have yet, then the record; so a receipt that moves from one to the other in between is in at least one of them.

import { type Caller } from '../core/api-key.ts';
import { type GatewayError } from '../core/errors.ts';
import { RECEIPT_STATUSES, type ReceiptStatus, toReceiptObject } from '../core/receipt.ts';
import {
  buildReceiptPage,
  type IdRange,
  type ReceiptQuery,
  type ReceiptPage,
  type ReceiptScan,
  type RevisedReceipt,
} from '../core/receipt-page.ts';
import { BEYOND_IDS, toLowestId } from '../core/request-id.ts';
import { ok, type Result } from '../core/result.ts';
import { type Ports } from './ports.ts';
import { parseQuery, readInteger, readOneOf, readText, readTimeSpan } from './read-query.ts';

const PARAMETERS = ['limit', 'cursor', 'model', 'key', 'status', 'from', 'to'];
const CURSOR = /^req_[0-9a-hjkmnp-tv-z]{10,26}$/;
const KEY_ID = /^[a-z0-9-]{1,64}$/;
const MODEL_NAME = /^[^]{1,256}$/;
/** Rows of the ledger a page looks at: more than the largest page, so that none stays empty for want of them. */
const HELD_ROWS = 500;
/** Queries of the record for one page at most; each looks at a bounded number of rows. */
const RECORD_QUERIES_MAX = 10;

type ListQuery = IdRange & {
  readonly limit: number;
  readonly key: string | null;
  readonly model: string | null;
  readonly status: ReceiptStatus | null;
};

/** A page of the caller's receipts: its own key's, or with receipts:read the workspace's. */
export async function listReceipts(
  ports: Ports,
  caller: Caller,
  search: URLSearchParams,
): Promise<Result<unknown, GatewayError>> {
  const parsed = parseListQuery(search);
  if (!parsed.ok) return parsed;
  const { limit, status, key, model, fromId, beforeId } = parsed.value;
  const ownKey = caller.scopes.includes('receipts:read') ? null : caller.keyId;
  if (ownKey !== null && key !== null && key !== ownKey) return ok(toList({ receipts: [], nextCursor: null }));
  const query = { workspace: caller.workspaceId, key: ownKey ?? key, model, fromId, beforeId };
  const held = await ports.ledger.listReceipts(query, HELD_ROWS, caller.location);
  if (!held.ok) return held;
  const recorded = await readRecord(ports, query, status, limit + 1);
  if (!recorded.ok) return recorded;
  return ok(toList(buildReceiptPage(held.value, recorded.value, status, limit)));
}

/** At most `count` receipts of the record, query after query until they are found or enough was looked at. */
async function readRecord(
  ports: Ports,
  query: ReceiptQuery,
  status: ReceiptStatus | null,
  count: number,
): Promise<Result<ReceiptScan, GatewayError>> {
  // The record has closed receipts only.
  if (status === 'in_progress') return ok({ rows: [], floorId: null });
  const rows: RevisedReceipt[] = [];
  let endId = query.beforeId;
  for (let queries = 0; queries < RECORD_QUERIES_MAX; queries += 1) {
    const scan = await ports.receipts.list({ ...query, beforeId: endId }, status, count - rows.length);
    if (!scan.ok) return scan;
    rows.push(...scan.value.rows);
    const { floorId } = scan.value;
    if (floorId === null || rows.length >= count) return ok({ rows, floorId });
    endId = floorId;
  }
  return ok({ rows, floorId: endId });
}

function parseListQuery(search: URLSearchParams): Result<ListQuery, GatewayError> {
  const query = parseQuery(search, PARAMETERS);
  if (!query.ok) return query;
  const limit = readInteger(query.value, 'limit', { min: 1, max: 100, fallback: 20 });
  if (!limit.ok) return limit;
  const cursor = readText(query.value, 'cursor', CURSOR, 'a next_cursor of an earlier page');
  if (!cursor.ok) return cursor;
  const key = readText(query.value, 'key', KEY_ID, 'the id of a key');
  if (!key.ok) return key;
  const model = readText(query.value, 'model', MODEL_NAME, 'a model of 1 to 256 characters');
  if (!model.ok) return model;
  const status = readOneOf(query.value, 'status', RECEIPT_STATUSES, null);
  if (!status.ok) return status;
  const span = readTimeSpan(query.value);
  if (!span.ok) return span;
  const { fromMs, toMs } = span.value;
  const endId = toMs === null ? BEYOND_IDS : toLowestId(toMs);
  return ok({
    limit: limit.value,
    key: key.value,
    model: model.value,
    status: status.value,
    fromId: toLowestId(fromMs ?? 0),
    beforeId: cursor.value !== null && cursor.value < endId ? cursor.value : endId,
  });
}

function toList({ receipts, nextCursor }: ReceiptPage): Record<string, unknown> {
  return {
    object: 'list',
    data: receipts.map(toReceiptObject),
    has_more: nextCursor !== null,
    next_cursor: nextCursor,
  };
}
