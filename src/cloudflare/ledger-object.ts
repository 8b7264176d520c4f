// The Durable Object of one workspace. It only passes calls on: decisions are in core/ledger-state.ts, storage and
// groups in ledger-book.ts.

import { DurableObject } from 'cloudflare:workers';
import { type Receipt } from '../core/receipt.ts';
import { type IdRange } from '../core/receipt-page.ts';
import { type Env } from './env.ts';
import { type LedgerBook, openLedgerBook } from './ledger-book.ts';
import {
  type AccountCall,
  type AccountReply,
  type FlushedSums,
  LEDGER_CALL_VERSION,
  type LedgerCall,
  type LedgerListCall,
  type LedgerListReply,
  type LedgerReply,
} from './ledger-call.ts';
import { openLedgerStore } from './ledger-store.ts';
import { log } from './log.ts';
import { createWorkspaceFacts } from './workspace-facts.ts';

/** A workspace's ledger; its name is the workspace's id. */
export class Ledger extends DurableObject<Env> {
  readonly #book: LedgerBook;

  constructor(context: DurableObjectState, env: Env) {
    super(context, env);
    this.#book = openLedgerBook({
      store: openLedgerStore(context.storage),
      setAlarm: (atMs) => context.storage.setAlarm(atMs),
      db: env.DB,
      facts: createWorkspaceFacts(env.DB, Date.now, log),
      now: Date.now,
      random: () => Math.random(),
      log,
    });
  }

  /** One command about one request (SPEC §5). */
  async call(call: LedgerCall): Promise<LedgerReply> {
    return { v: LEDGER_CALL_VERSION, decision: await this.#book.apply(call.command) };
  }

  /** A receipt this object still holds, in progress or closed. */
  findReceipt(id: string): Receipt | null {
    return this.#book.findReceipt(id);
  }

  /** How the workspace's credits and limits stand (SPEC §9). */
  async readAccount({ query }: AccountCall): Promise<AccountReply> {
    return { v: LEDGER_CALL_VERSION, account: await this.#book.readAccount(query) };
  }

  /** The receipts this object holds that D1 may not have as they stand. */
  listReceipts({ query, rows }: LedgerListCall): LedgerListReply {
    return { v: LEDGER_CALL_VERSION, scan: this.#book.listReceipts(query, rows) };
  }

  /** What of a span this object says D1 has (SPEC §12). */
  sumFlushed(range: IdRange): FlushedSums {
    return this.#book.sumFlushed(range);
  }

  /** Blanks what identifies people in the receipts this object holds (SPEC §12). */
  eraseIdentities(): void {
    this.#book.eraseIdentities();
  }

  /** Has receipts carried to D1 again; returns how many (SPEC §9). */
  replayReceipts(sinceMs: number): Promise<number> {
    return this.#book.replayReceipts(sinceMs);
  }

  /** Carries receipts to D1; never throws, since a throwing alarm is dropped after six tries. */
  override async alarm(): Promise<void> {
    await this.#book.onAlarm();
  }
}
