// A ledger's state in its object's own SQLite. Rows written are the dearest part of running it, so changes arrive in
// groups, and which receipts D1 has is one number: everything up to `flushed_seq`.

import * as z from 'zod';
import { endRebuild } from '../core/ledger-credits.ts';
import { createLedgerState } from '../core/ledger-state.ts';
import { type ClosedReceipt, type LedgerState, type OpenReservation } from '../core/ledger-types.ts';
import { type Receipt } from '../core/receipt.ts';
import { type IdRange } from '../core/receipt-page.ts';
import { type FlushedSums } from './ledger-call.ts';
import { migrateLedger } from './ledger-schema.ts';
import { ERASED_COLUMNS, ERASED_KEY } from './receipt-row.ts';

/** What a group of calls changed. */
export type LedgerChanges = {
  readonly ids: ReadonlySet<string>;
  readonly scopes: ReadonlySet<string>;
  readonly closed: readonly ClosedReceipt[];
};

/** A closed receipt in the order of closing. */
export type QueuedReceipt = ClosedReceipt & { readonly seq: number };

/** The object's storage, as the ledger uses it. All of it is synchronous: the platform makes it durable. */
export type LedgerStore = {
  readonly load: () => LedgerState;
  /** Saves a group in one transaction. */
  readonly save: (state: LedgerState, changes: LedgerChanges, nowMs: number) => void;
  readonly findClosed: (id: string) => ClosedReceipt | null;
  /** The greatest id there is among closed receipts; empty when there is none. */
  readonly readNewestClosedId: () => string;
  /** Receipts D1 does not have yet, oldest first. */
  readonly listUnflushed: (limit: number) => readonly QueuedReceipt[];
  /**
   * Receipts D1 does not have yet, by id, newest first, read as they are asked for. At most `scanRows` rows are looked
   * at; `floorId` says how far down that went, null to the end of the range.
   */
  readonly scanUnflushed: (
    range: IdRange,
    scanRows: number,
  ) => { readonly rows: Iterable<ClosedReceipt>; readonly floorId: string | null };
  readonly countUnflushed: () => number;
  /** Receipts D1 does not have yet: id and cost in nano-USD. */
  readonly listUnflushedCosts: () => readonly (readonly [id: string, costNanoUsd: number])[];
  /** Receipts of a span: those D1 has summed, those it does not have yet counted. */
  readonly sumFlushed: (range: IdRange) => FlushedSums;
  /** Blanks what identifies people in every receipt, and forgets the keys' own buckets. */
  readonly eraseIdentities: () => void;
  readonly markFlushed: (seq: number) => void;
  /** Takes back that D1 has the receipts closed since then. */
  readonly unmarkFlushed: (sinceMs: number) => void;
  /** Drops flushed receipts closed before `beforeMs`, oldest first, at most `limit`. */
  readonly prune: (beforeMs: number, limit: number) => void;
};

/** Rows from before there were credits hold nothing. */
type StoredReservation = Omit<OpenReservation, 'heldNanoUsd' | 'outputLimit'> &
  Partial<Pick<OpenReservation, 'heldNanoUsd' | 'outputLimit'>>;

/** What this code wrote itself and reads back: a version row guards the shape. */
const openSchema = z.custom<StoredReservation>((value) => typeof value === 'object' && value !== null);
const receiptSchema = z.custom<Receipt>((value) => typeof value === 'object' && value !== null);

const FIND_NTH_UNFLUSHED = 'SELECT seq FROM receipts WHERE seq > ? LIMIT 1 OFFSET ?';
/** The plus signs keep SQLite to the rows behind flushed_seq; the index of ids has seven days of others. */
const SCAN_BY_SEQ = 'SELECT rev, body FROM receipts WHERE seq > ? AND +id >= ? AND +id < ? ORDER BY +id DESC';
/** When more wait than a scan may read, flushed rows are walked past too: only the range bounds it then. */
const SCAN_BY_ID = 'SELECT rev, body FROM receipts WHERE +seq > ? AND id >= ? AND id < ? ORDER BY id DESC';
/** The millisecond in which a scan by id has seen its share; ids of one millisecond stay together. */
const FIND_FLOOR = `SELECT substr(id, 1, 14) AS floor_id FROM receipts WHERE id >= ? AND id < ?
  ORDER BY id DESC LIMIT 1 OFFSET ?`;

const SUM_FLUSHED = `SELECT COALESCE(SUM(seq <= ?1), 0) AS receipts, COALESCE(SUM(seq > ?1), 0) AS waiting,
    COALESCE(SUM(CASE WHEN seq <= ?1 THEN rev END), 0) AS revs,
    COALESCE(SUM(CASE WHEN seq <= ?1 THEN body ->> '$.cost_nano_usd' END), 0) AS cost
  FROM receipts WHERE id >= ?2 AND id < ?3`;
const ERASE_RECEIPTS = `UPDATE receipts SET body = json_set(body, '$.key', '${ERASED_KEY}',
  ${ERASED_COLUMNS.map((column) => `'$.${column}', NULL`).join(', ')})`;

/** Opens the store, creating or stepping its tables forward. */
export function openLedgerStore(storage: DurableObjectStorage): LedgerStore {
  const { sql } = storage;
  migrateLedger(storage);
  let savedSpent: number | null = null;

  function readFlushedSeq(): number {
    return readNumber(sql.exec('SELECT flushed_seq FROM ledger').one()['flushed_seq']);
  }

  function saveReservation(id: string, open: OpenReservation | undefined): void {
    if (open === undefined) sql.exec('DELETE FROM reservations WHERE id = ?', id);
    else sql.exec('INSERT OR REPLACE INTO reservations (id, body) VALUES (?, ?)', id, JSON.stringify(open));
  }

  return {
    load() {
      const state = createLedgerState();
      for (const row of sql.exec('SELECT * FROM scopes')) {
        state.scopes.set(readText(row['name']), {
          requests: { usedUnits: readNumber(row['requests_units']), atMs: readNumber(row['requests_at_ms']), lows: [] },
          tokens: { usedUnits: readNumber(row['tokens_units']), atMs: readNumber(row['tokens_at_ms']), lows: [] },
          inFlight: 0,
        });
      }
      for (const row of sql.exec('SELECT body FROM reservations')) {
        restoreReservation(state, openSchema.parse(JSON.parse(readText(row['body']))));
      }
      savedSpent = readSpent(sql);
      if (savedSpent !== null) endRebuild(state.credits, savedSpent);
      return state;
    },
    save(state, changes, nowMs) {
      storage.transactionSync(() => {
        for (const id of changes.ids) saveReservation(id, state.open.get(id));
        for (const name of changes.scopes) {
          const scope = state.scopes.get(name);
          if (scope === undefined) continue;
          const { requests, tokens } = scope;
          sql.exec(
            'INSERT OR REPLACE INTO scopes VALUES (?, ?, ?, ?, ?)',
            name,
            requests.usedUnits,
            requests.atMs,
            tokens.usedUnits,
            tokens.atMs,
          );
        }
        for (const { rev, receipt } of changes.closed) {
          const insert = 'INSERT OR REPLACE INTO receipts (id, rev, closed_at_ms, body) VALUES (?, ?, ?, ?)';
          sql.exec(insert, receipt.id, rev, nowMs, JSON.stringify(receipt));
        }
        const { isWhole, spentNanoUsd } = state.credits;
        if (isWhole && (changes.closed.length > 0 || spentNanoUsd !== savedSpent)) saveSpent(sql, spentNanoUsd);
      });
      savedSpent = state.credits.isWhole ? state.credits.spentNanoUsd : null;
    },
    findClosed(id) {
      const [row] = sql.exec('SELECT rev, body FROM receipts WHERE id = ?', id).toArray();
      return row === undefined ? null : toClosed(row);
    },
    readNewestClosedId() {
      return readText(sql.exec("SELECT COALESCE(MAX(id), '') AS id FROM receipts").one()['id']);
    },
    listUnflushed(limit) {
      const query = 'SELECT seq, rev, body FROM receipts WHERE seq > ? ORDER BY seq LIMIT ?';
      const rows = sql.exec(query, readFlushedSeq(), limit).toArray();
      return rows.map((row) => ({ seq: readNumber(row['seq']), ...toClosed(row) }));
    },
    scanUnflushed({ fromId, beforeId }, scanRows) {
      const flushedSeq = readFlushedSeq();
      const isFew = sql.exec(FIND_NTH_UNFLUSHED, flushedSeq, scanRows).toArray().length === 0;
      const [floor] = isFew ? [] : sql.exec(FIND_FLOOR, fromId, beforeId, scanRows).toArray();
      const floorId = floor === undefined ? null : readText(floor['floor_id']);
      const scan = isFew ? SCAN_BY_SEQ : SCAN_BY_ID;
      return { rows: readClosed(sql.exec(scan, flushedSeq, floorId ?? fromId, beforeId)), floorId };
    },
    countUnflushed() {
      return readNumber(sql.exec('SELECT COUNT(*) AS n FROM receipts WHERE seq > ?', readFlushedSeq()).one()['n']);
    },
    listUnflushedCosts() {
      const query = "SELECT id, body ->> '$.cost_nano_usd' AS cost FROM receipts WHERE seq > ?";
      const rows = sql.exec(query, readFlushedSeq()).toArray();
      return rows.map((row) => [readText(row['id']), readNumber(row['cost'])] as const);
    },
    sumFlushed({ fromId, beforeId }) {
      const row = sql.exec(SUM_FLUSHED, readFlushedSeq(), fromId, beforeId).one();
      return {
        receipts: readNumber(row['receipts']),
        costNanoUsd: readNumber(row['cost']),
        revs: readNumber(row['revs']),
        waiting: readNumber(row['waiting']),
      };
    },
    eraseIdentities() {
      storage.transactionSync(() => {
        sql.exec(ERASE_RECEIPTS);
        sql.exec("DELETE FROM scopes WHERE name <> ''");
      });
    },
    markFlushed(seq) {
      sql.exec('UPDATE ledger SET flushed_seq = MAX(flushed_seq, ?)', seq);
    },
    unmarkFlushed(sinceMs) {
      const first = 'SELECT MIN(seq) - 1 FROM receipts WHERE closed_at_ms >= ?';
      sql.exec(`UPDATE ledger SET flushed_seq = MIN(flushed_seq, COALESCE((${first}), flushed_seq))`, sinceMs);
    },
    prune(beforeMs, limit) {
      sql.exec(
        `DELETE FROM receipts WHERE seq IN (
           SELECT seq FROM receipts WHERE seq <= ? AND closed_at_ms < ? ORDER BY seq LIMIT ?)`,
        readFlushedSeq(),
        beforeMs,
        limit,
      );
    },
  };
}

/** What was spent up to a receipt; code from before this column writes receipts without it, and then it is unknown. */
function readSpent(sql: SqlStorage): number | null {
  const query = `SELECT spent_nano_usd AS spent FROM ledger
    WHERE spent_seq >= (SELECT COALESCE(MAX(seq), 0) FROM receipts)`;
  const [row] = sql.exec(query).toArray();
  return row === undefined || row['spent'] === null ? null : readNumber(row['spent']);
}

function saveSpent(sql: SqlStorage, spentNanoUsd: number): void {
  const update = 'UPDATE ledger SET spent_nano_usd = ?, spent_seq = (SELECT COALESCE(MAX(seq), 0) FROM receipts)';
  sql.exec(update, spentNanoUsd);
}

/** Slots and holds are not stored: they are counted from the reservations. */
function restoreReservation(state: LedgerState, stored: StoredReservation): void {
  const { receipt, keyLimits } = stored.reservation;
  // The low marks of before are gone with the reset: from here on they are kept anew.
  const open = { ...stored, seq: 0, heldNanoUsd: stored.heldNanoUsd ?? 0, outputLimit: stored.outputLimit ?? null };
  state.open.set(receipt.id, open);
  state.credits.heldNanoUsd += open.heldNanoUsd;
  state.nextExpiryMs = Math.min(state.nextExpiryMs, open.leaseUntilMs);
  for (const name of keyLimits === null ? [''] : ['', receipt.key]) {
    const scope = state.scopes.get(name);
    if (scope !== undefined) state.scopes.set(name, { ...scope, inFlight: scope.inFlight + 1 });
  }
}

function* readClosed(rows: Iterable<Record<string, SqlStorageValue>>): Iterable<ClosedReceipt> {
  for (const row of rows) yield toClosed(row);
}

function toClosed(row: Record<string, SqlStorageValue>): ClosedReceipt {
  return { rev: readNumber(row['rev']), receipt: receiptSchema.parse(JSON.parse(readText(row['body']))) };
}

function readNumber(value: SqlStorageValue | undefined): number {
  return typeof value === 'number' ? value : 0;
}

function readText(value: SqlStorageValue | undefined): string {
  return typeof value === 'string' ? value : '';
}
