// Pages of receipts out of ledger and record: order, doubles by rev, floors, and pages that do not move under inserts.

import { describe, expect, test } from 'vitest';
import { type Receipt, type ReceiptStatus } from '../../src/core/receipt.ts';
import { buildReceiptPage, type ReceiptScan, type RevisedReceipt } from '../../src/core/receipt-page.ts';
import { buildReservation } from './build-reservation.ts';
import { createSeededRandom } from './seeded-random.ts';

function build(id: string, rev = 1, status: ReceiptStatus = 'completed'): RevisedReceipt {
  return { rev, receipt: { ...buildReservation({ id, status }).receipt, id } };
}

function scan(rows: readonly RevisedReceipt[], floorId: string | null = null): ReceiptScan {
  return { rows, floorId };
}

const NONE = scan([]);
const idsOf = (receipts: readonly Receipt[]): string[] => receipts.map(({ id }) => id);

describe('§9 one page out of two sources', () => {
  test('§9 newest first, whichever source has it', () => {
    const page = buildReceiptPage(
      scan([build('req_4'), build('req_2')]),
      scan([build('req_3'), build('req_1')]),
      null,
      9,
    );
    expect(idsOf(page.receipts)).toEqual(['req_4', 'req_3', 'req_2', 'req_1']);
    expect(page.nextCursor).toBeNull();
  });

  test.each([
    ['higher', 2, 1, 'lost'],
    ['equal', 1, 1, 'lost'],
    ['lower', 0, 1, 'completed'],
  ] as const)('§9 a double is dropped; the ledger’s rev is %s', (_, heldRev, recordedRev, expected) => {
    const held = scan([build('req_1', heldRev, 'lost')]);
    const page = buildReceiptPage(held, scan([build('req_1', recordedRev, 'completed')]), null, 9);
    expect(page.receipts.map(({ status }) => status)).toEqual([expected]);
  });

  test('§9 a status is that of the later row: the record’s older one does not pass the filter in its place', () => {
    const held = scan([build('req_1', 1, 'in_progress')]);
    const recorded = scan([build('req_1', 1, 'lost')]);
    expect(buildReceiptPage(held, recorded, 'lost', 9).receipts).toEqual([]);
    expect(idsOf(buildReceiptPage(held, recorded, 'in_progress', 9).receipts)).toEqual(['req_1']);
  });

  test('§9 has_more only when there is more: a page that is exactly full is the last', () => {
    const rows = scan([build('req_2'), build('req_1')]);
    expect(buildReceiptPage(NONE, rows, null, 2).nextCursor).toBeNull();
    expect(buildReceiptPage(NONE, rows, null, 1)).toMatchObject({ nextCursor: 'req_2' });
  });

  test('§9 what lies below the higher floor waits for the next page, which begins there', () => {
    const held = scan([build('req_9'), build('req_3')]);
    const page = buildReceiptPage(held, scan([build('req_7')], 'req_5'), null, 9);
    expect(idsOf(page.receipts)).toEqual(['req_9', 'req_7']);
    expect(page.nextCursor).toBe('req_5');
    expect(buildReceiptPage(scan([], 'req_6'), scan([], 'req_5'), null, 9).nextCursor).toBe('req_6');
  });
});

/** A source as the adapters are: at most `rows`, a walk of at most `walk` rows, ids below the floor untold. */
function look(source: readonly RevisedReceipt[], beforeId: string, rows: number, walk: number): ReceiptScan {
  const below = source
    .filter(({ receipt }) => receipt.id < beforeId)
    .toSorted((left, right) => (left.receipt.id < right.receipt.id ? 1 : -1));
  const walked = below.slice(0, walk).slice(0, rows);
  const isCut = walked.length < below.length;
  return { rows: walked, floorId: isCut ? (walked.at(-1)?.receipt.id ?? null) : null };
}

test.each([...Array(40).keys()])(
  '§9 pages are stable under inserts: every receipt there was is listed once (seed %i)',
  (seed) => {
    const random = createSeededRandom(seed);
    const toId = (at: number): string => `req_${String(at).padStart(4, '0')}`;
    const ledger = new Map<string, RevisedReceipt>();
    const record = new Map<string, RevisedReceipt>();
    const insert = (at: number): void => {
      const row = build(toId(at));
      if (random.chance(0.6)) record.set(row.receipt.id, row);
      if (!record.has(row.receipt.id) || random.chance(0.3)) ledger.set(row.receipt.id, row);
    };
    const first = random.int(0, 60);
    for (let at = 0; at < first; at += 1) insert(at);
    const limit = random.int(1, 9);
    const seen: string[] = [];
    let cursor = 'req_~';
    for (let newest = first, pages = 0; ; pages += 1) {
      const held = look([...ledger.values()], cursor, random.int(1, 20), 30);
      // Between the two looks a receipt moves from the ledger to the record.
      for (const [id, row] of ledger) if (random.chance(0.2)) record.set(id, row);
      const page = buildReceiptPage(
        held,
        look([...record.values()], cursor, limit + 1, random.int(1, 30)),
        null,
        limit,
      );
      for (const id of ledger.keys()) if (record.has(id) && random.chance(0.2)) ledger.delete(id);
      expect(page.receipts.length).toBeLessThanOrEqual(limit);
      seen.push(...idsOf(page.receipts));
      if (page.nextCursor === null) break;
      expect(page.nextCursor < cursor).toBe(true);
      cursor = page.nextCursor;
      for (let count = random.int(0, 3); count > 0; count -= 1) insert((newest += 1));
      expect(pages).toBeLessThan(200);
    }
    expect(seen).toEqual(seen.toSorted().toReversed());
    expect(new Set(seen).size).toBe(seen.length);
    for (let at = 0; at < first; at += 1) expect(seen).toContain(toId(at));
  },
);
