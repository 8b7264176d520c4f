// One page of receipts out of two sources: what the ledger holds and what the record has (SPEC §9). Pure; which rows are
// looked at is decided by the sources, each of which says how far down it looked.

import { type Receipt, type ReceiptStatus } from './receipt.ts';

/** A receipt with the number of its closings so far: of two the one with more is the later. */
export type RevisedReceipt = { readonly rev: number; readonly receipt: Receipt };

/** A span of ids, newest last: `fromId` belongs to it, `beforeId` does not. */
export type IdRange = { readonly fromId: string; readonly beforeId: string };

/** Which receipts of a workspace are looked for. What is null does not matter. */
export type ReceiptQuery = IdRange & {
  readonly workspace: string;
  readonly key: string | null;
  /** The model as the client named it. */
  readonly model: string | null;
};

/**
 * Receipts found, the newest first. Everything that was looked for and is not below `floorId` is among them; null when
 * the whole range was looked at.
 */
export type ReceiptScan = { readonly rows: readonly RevisedReceipt[]; readonly floorId: string | null };

/** A page and where the next begins; null when this is the last. */
export type ReceiptPage = { readonly receipts: readonly Receipt[]; readonly nextCursor: string | null };

/**
 * Builds a page, newest first. Of a receipt that both sources have, the record's counts only when its rev is higher.
 * The next page begins below the last receipt of this one, or below what was looked at: inserts move neither.
 *
 * @param held What the ledger holds, of any status: a row of another status still takes the place of the record's.
 * @param recorded What the record has.
 * @param limit Receipts on the page, at least 1.
 */
export function buildReceiptPage(
  held: ReceiptScan,
  recorded: ReceiptScan,
  status: ReceiptStatus | null,
  limit: number,
): ReceiptPage {
  const floorId = [held.floorId, recorded.floorId].reduce(laterId, null);
  const receipts = mergeReceipts(held.rows, recorded.rows)
    .filter(({ id }) => floorId === null || id >= floorId)
    .filter((receipt) => status === null || receipt.status === status)
    .toSorted((left, right) => (left.id < right.id ? 1 : -1));
  const page = receipts.slice(0, limit);
  const last = page.at(-1);
  return { receipts: page, nextCursor: receipts.length > limit && last !== undefined ? last.id : floorId };
}

function mergeReceipts(held: readonly RevisedReceipt[], recorded: readonly RevisedReceipt[]): readonly Receipt[] {
  const byId = new Map(recorded.map((row) => [row.receipt.id, row]));
  for (const row of held) {
    const other = byId.get(row.receipt.id);
    if (other === undefined || other.rev <= row.rev) byId.set(row.receipt.id, row);
  }
  return [...byId.values()].map(({ receipt }) => receipt);
}

function laterId(left: string | null, right: string | null): string | null {
  if (left === null || right === null) return left ?? right;
  return left > right ? left : right;
}
