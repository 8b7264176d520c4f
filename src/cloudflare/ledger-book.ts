// One workspace's ledger at work: decisions in memory, changes saved in groups, receipts carried to D1 by the alarm
// (SPEC §5, §9). The decisions themselves are core/ledger-state.ts.

import { type Account, type AccountQuery, readAccount } from '../core/ledger-account.ts';
import { UNKNOWN_FUNDS } from '../core/ledger-credits.ts';
import { applyCommand, expireLeases, type LedgerChange } from '../core/ledger-state.ts';
import { type ClosedReceipt, type LedgerCommand, type LedgerDecision } from '../core/ledger-types.ts';
import { type Receipt } from '../core/receipt.ts';
import { type IdRange, type ReceiptQuery, type ReceiptScan } from '../core/receipt-page.ts';
import { withDeadline } from '../gateway/deadline.ts';
import { type LogEntry } from '../gateway/ports.ts';
import { type FlushedSums } from './ledger-call.ts';
import { listHeldReceipts } from './list-held-receipts.ts';
import { type LedgerStore, type QueuedReceipt } from './ledger-store.ts';
import { toReceiptRow, UPSERT_RECEIPTS } from './receipt-row.ts';
import { createRecallReceipt } from './recall-receipt.ts';
import { createSpentHistory } from './spent-history.ts';
import { type WorkspaceFacts } from './workspace-facts.ts';

/** A ledger's operations; the Durable Object only passes them on. */
export type LedgerBook = {
  /** Decides. A settlement or release, and a hold on a small balance, is answered once it is saved. */
  readonly apply: (command: LedgerCommand) => Promise<LedgerDecision>;
  /** A receipt as it stands here: in progress, or closed within the last days. */
  readonly findReceipt: (id: string) => Receipt | null;
  /** How the account stands; null while D1 has not said what was granted and spent. */
  readonly readAccount: (query: AccountQuery) => Promise<Account | null>;
  /** At most `rows` of the receipts that D1 may not have as they stand here. */
  readonly listReceipts: (query: ReceiptQuery, rows: number) => ReceiptScan;
  /** What of a span this ledger says D1 has. */
  readonly sumFlushed: (range: IdRange) => FlushedSums;
  /** Blanks what identifies people in all closed receipts held here. */
  readonly eraseIdentities: () => void;
  /** Has the receipts closed since then carried to D1 again, and tells how many wait for it. */
  readonly replayReceipts: (sinceMs: number) => Promise<number>;
  /**
   * Expires leases, carries receipts to D1, sets the next alarm. Rejects only when that cannot be set: the platform then
   * runs it again.
   */
  readonly onAlarm: () => Promise<void>;
};

/** What a book works with. */
export type LedgerBookInput = {
  readonly store: LedgerStore;
  readonly setAlarm: (atMs: number) => Promise<void>;
  readonly db: D1Database;
  readonly facts: WorkspaceFacts;
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
export function openLedgerBook({ store, setAlarm, db, facts, now, random, log }: LedgerBookInput): LedgerBook {
  const state = store.load();
  let group = createGroup();
  let unflushed = store.countUnflushed();
  let newestClosedId = store.readNewestClosedId();
  let alarmAtMs = Infinity;
  let failures = 0;
  const { credits } = state;
  const recall = createRecallReceipt(db, log);
  const history = createSpentHistory({ db, credits, listOwnCosts, now, log });

  /** Costs of receipts that D1 may not have yet, those of the group that is still to be saved included. */
  function listOwnCosts(): ReadonlyMap<string, number> {
    const costs = new Map(store.listUnflushedCosts());
    for (const [id, { receipt }] of group.closed) costs.set(id, receipt.cost_nano_usd);
    return costs;
  }

  function note(change: LedgerChange): void {
    for (const id of change.touchedIds) group.ids.add(id);
    for (const scope of change.touchedScopes) group.scopes.add(scope);
    for (const closed of change.closed) {
      const { id } = closed.receipt;
      group.closed.set(id, closed);
      if (id > newestClosedId) newestClosedId = id;
    }
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
    try {
      await setAlarm(atMs);
    } catch (error) {
      alarmAtMs = Infinity;
      throw error;
    }
  }

  /**
   * Whether a command comes from a key that may go no further; for a prepaid admission what was granted and spent is
   * brought up to date as well. Settlements and releases are always taken, and wait for nothing.
   */
  async function isStopped(command: LedgerCommand): Promise<boolean> {
    if (command.type !== 'reserve' && command.type !== 'renew') return false;
    const { receipt, credit } = command.reservation;
    const isAdmission = command.type === 'reserve' && credit !== undefined;
    await Promise.all([
      facts.refresh(receipt.workspace, receipt.key),
      isAdmission ? history.complete(receipt.workspace) : undefined,
    ]);
    return facts.isRevoked(receipt.key);
  }

  /** Ids sort by time, so an admission is newer than nearly all that is closed: the store is not asked on its way. */
  function findClosed(id: string): ClosedReceipt | null {
    return id > newestClosedId ? null : (group.closed.get(id) ?? store.findClosed(id));
  }

  /** What D1 knows of a request that runs or ended and of which nothing is known here: forgotten, or closed long ago. */
  async function recallUnknown(command: LedgerCommand): Promise<ClosedReceipt | null> {
    if (command.type !== 'renew' && command.type !== 'settle') return null;
    const { id, workspace } = command.reservation.receipt;
    return state.open.has(id) || findClosed(id) !== null ? null : recall(workspace, id);
  }

  async function flush(): Promise<void> {
    for (;;) {
      await history.pause();
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
      const revoked = await isStopped(command);
      if (revoked && command.type === 'reserve') return REVOKED;
      const recalled = await recallUnknown(command);
      const id = command.type === 'release' ? command.id : command.reservation.receipt.id;
      const before = state.open.has(id) ? null : (findClosed(id) ?? recalled);
      const outcome = applyCommand(state, command, now(), before, facts.readFunds() ?? UNKNOWN_FUNDS);
      note(outcome);
      const changed = outcome.touchedIds.length > 0 || outcome.closed.length > 0;
      const saved = changed ? saveSoon() : (group.saved ?? Promise.resolve());
      if (command.type === 'settle' || command.type === 'release' || outcome.saveFirst) await saved;
      // The others do not wait; that a save failed is logged, and what it held is saved with the next group.
      else saved.catch(() => undefined);
      return revoked && outcome.decision.type === 'renewed' ? { type: 'renewed', go: false } : outcome.decision;
    },
    findReceipt(id) {
      const open = state.open.get(id);
      if (open !== undefined) return open.reservation.receipt;
      return findClosed(id)?.receipt ?? null;
    },
    async readAccount(query) {
      await Promise.all([facts.refresh(query.workspace, query.key), history.complete(query.workspace)]);
      const funds = facts.readFunds();
      if (funds === null || !credits.isWhole) return null;
      const expired = expireLeases(state, now());
      note(expired);
      if (expired.touchedIds.length > 0) saveSoon().catch(() => undefined);
      return readAccount(state, query, funds);
    },
    sumFlushed: (range) => store.sumFlushed(range),
    eraseIdentities: () => store.eraseIdentities(),
    async replayReceipts(sinceMs) {
      store.unmarkFlushed(sinceMs);
      unflushed = store.countUnflushed();
      if (unflushed > 0) {
        alarmAtMs = now();
        await setAlarm(alarmAtMs);
      }
      return unflushed;
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
