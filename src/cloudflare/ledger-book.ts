// One workspace's ledger at work: decisions in memory, changes saved in groups, receipts carried to D1 by the alarm
// (SPEC §5, §9). The decisions themselves are core/ledger-state.ts.

import { applyCommand, expireLeases } from '../core/ledger-state.ts';
import { type ClosedReceipt, type LedgerCommand, type LedgerDecision } from '../core/ledger-types.ts';
import { type Receipt } from '../core/receipt.ts';
import { type ReceiptQuery, type ReceiptScan } from '../core/receipt-page.ts';
import { withDeadline } from '../gateway/deadline.ts';
import { type LogEntry } from '../gateway/ports.ts';
import { listHeldReceipts } from './list-held-receipts.ts';
import { type LedgerStore, type QueuedReceipt } from './ledger-store.ts';
import { type Revocations } from './revocations.ts';
import { toReceiptRow, UPSERT_RECEIPTS } from './receipt-row.ts';

/** A ledger's operations; the Durable Object only passes them on. */
export type LedgerBook = {
  /** Decides. A settlement or release is answered once it is saved. */
  readonly apply: (command: LedgerCommand) => Promise<LedgerDecision>;
  /** A receipt as it stands here: in progress, or closed within the last days. */
  readonly findReceipt: (id: string) => Receipt | null;
  /** At most `rows` of the receipts that D1 may not have as they stand here. */
  readonly listReceipts: (query: ReceiptQuery, rows: number) => ReceiptScan;
  /** Expires leases, carries receipts to D1, sets the next alarm. Never rejects. */
  readonly onAlarm: () => Promise<void>;
};

/** What a book works with. */
export type LedgerBookInput = {
  readonly store: LedgerStore;
  readonly setAlarm: (atMs: number) => Promise<void>;
  readonly db: D1Database;
  readonly revocations: Revocations;
  readonly now: () => number;
  readonly random: () => number;
  readonly log: (entry: LogEntry) => void;
};

const GROUP_MS = 20;
const FLUSH_MS = 5000;
const FLUSH_JITTER_MS = 2000;
const FLUSH_ROWS = 200;
const FLUSH_DEADLINE_MS = 10_000;
const BACK_OFF_MS_MAX = 60_000;
const KEPT_MS = 7 * 24 * 3_600_000;
const PRUNE_ROWS = 500;

type Group = { ids: Set<string>; scopes: Set<string>; closed: Map<string, ClosedReceipt>; saved: Promise<void> | null };

/** Opens the ledger that `store` holds. */
export function openLedgerBook({ store, setAlarm, db, revocations, now, random, log }: LedgerBookInput): LedgerBook {
  const state = store.load();
  let group = createGroup();
  let unflushed = store.countUnflushed();
  let alarmAtMs = Infinity;
  let failures = 0;

  function note(change: {
    touchedIds: readonly string[];
    touchedScopes: readonly string[];
    closed: readonly ClosedReceipt[];
  }): void {
    for (const id of change.touchedIds) group.ids.add(id);
    for (const scope of change.touchedScopes) group.scopes.add(scope);
    for (const closed of change.closed) group.closed.set(closed.receipt.id, closed);
  }

  /** Saves everything noted so far; on failure it stays noted and the next group takes it along. */
  async function save(): Promise<void> {
    const saving = group;
    group = createGroup();
    try {
      store.save(state, { ...saving, closed: [...saving.closed.values()] }, now());
    } catch (error) {
      note({ touchedIds: [...saving.ids], touchedScopes: [...saving.scopes], closed: [...saving.closed.values()] });
      log({ event: 'ledger_unsaved', fault: String(error) });
      throw error;
    }
    unflushed += saving.closed.size;
    await arm();
  }

  /** The group's save, started at most 20 ms after its first change. */
  function saveSoon(): Promise<void> {
    group.saved ??= new Promise<void>((resolve, reject) => {
      setTimeout(() => void save().then(resolve, reject), GROUP_MS);
    });
    return group.saved;
  }

  /** Sets the alarm for the next lease to run out or the next flush, if nothing earlier is set. */
  async function arm(): Promise<void> {
    const backOffMs = failures === 0 ? 0 : Math.min(FLUSH_MS * 2 ** failures, BACK_OFF_MS_MAX);
    const jitterMs = (random() * 2 - 1) * FLUSH_JITTER_MS;
    const flushInMs = unflushed >= FLUSH_ROWS ? backOffMs : Math.max(backOffMs, FLUSH_MS + jitterMs);
    const atMs = Math.min(unflushed === 0 ? Infinity : now() + flushInMs, state.nextExpiryMs);
    if (!Number.isFinite(atMs) || alarmAtMs <= atMs + FLUSH_JITTER_MS) return;
    alarmAtMs = atMs;
    await setAlarm(atMs);
  }

  async function flush(): Promise<void> {
    for (;;) {
      const rows = store.listUnflushed(FLUSH_ROWS);
      const last = rows.at(-1);
      if (last === undefined) break;
      await writeToD1(db, rows);
      store.markFlushed(last.seq);
      if (rows.length < FLUSH_ROWS) break;
    }
    unflushed = store.countUnflushed();
    store.prune(now() - KEPT_MS, PRUNE_ROWS);
  }

  return {
    async apply(command) {
      const revoked = await isStopped(command, revocations);
      if (revoked && command.type === 'reserve') return REVOKED;
      const id = command.type === 'release' ? command.id : command.reservation.receipt.id;
      const before = state.open.has(id) ? null : (group.closed.get(id) ?? store.findClosed(id));
      const outcome = applyCommand(state, command, now(), before);
      note(outcome);
      const changed = outcome.touchedIds.length > 0 || outcome.closed.length > 0;
      const saved = changed ? saveSoon() : (group.saved ?? Promise.resolve());
      if (command.type === 'settle' || command.type === 'release') await saved;
      // The others do not wait; that a save failed is logged, and what it held is saved with the next group.
      else saved.catch(() => undefined);
      return revoked && outcome.decision.type === 'renewed' ? { type: 'renewed', go: false } : outcome.decision;
    },
    findReceipt(id) {
      const open = state.open.get(id);
      if (open !== undefined) return open.reservation.receipt;
      return (group.closed.get(id) ?? store.findClosed(id))?.receipt ?? null;
    },
    listReceipts: (query, rows) => listHeldReceipts(state, group.closed, store, query, rows),
    async onAlarm() {
      alarmAtMs = Infinity;
      try {
        note(expireLeases(state, now()));
        if (group.ids.size > 0) await saveSoon();
        await flush();
        failures = 0;
      } catch (error) {
        failures += 1;
        log({ event: 'receipts_unflushed', waiting: unflushed, failures, fault: String(error) });
      }
      await arm();
    },
  };
}

const REVOKED: LedgerDecision = {
  type: 'refused',
  error: { kind: 'invalid_api_key', reason: 'Incorrect API key provided.' },
  rates: { requests: null, tokens: null },
};

/** Whether a command comes from a key that may go no further. Settlements and releases are always taken. */
async function isStopped(command: LedgerCommand, revocations: Revocations): Promise<boolean> {
  if (command.type !== 'reserve' && command.type !== 'renew') return false;
  return revocations.isRevoked(command.reservation.receipt.key);
}

function createGroup(): Group {
  return { ids: new Set(), scopes: new Set(), closed: new Map(), saved: null };
}

/** One statement, which may be repeated: only a higher rev changes a row. */
async function writeToD1(db: D1Database, rows: readonly QueuedReceipt[]): Promise<void> {
  const writing = db
    .prepare(UPSERT_RECEIPTS)
    .bind(JSON.stringify(rows.map(toReceiptRow)))
    .run();
  const result = await withDeadline(writing, FLUSH_DEADLINE_MS, () => undefined);
  if (result === 'deadline') throw new Error('D1 did not answer in time');
}
