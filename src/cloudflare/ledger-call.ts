// What crosses between the gateway and a ledger object: one object with a version. An object keeps its code for minutes
// after a deploy, so a ledger accepts the version before its own too (SPEC §11).

import { type Account, type AccountQuery } from '../core/ledger-account.ts';
import { type IdRange, type ReceiptQuery, type ReceiptScan } from '../core/receipt-page.ts';
import { type LedgerCommand, type LedgerDecision } from '../core/ledger-types.ts';
import { type Receipt } from '../core/receipt.ts';

/** The version this code speaks. It goes up when a field is read that older callers do not send. */
export const LEDGER_CALL_VERSION = 2;

/** The first version whose ledger knows credits: an older one would admit a prepaid request without a hold. */
export const CREDITS_VERSION = 2;

/** Every version a call or reply may have. */
export type LedgerCallVersion = 1 | typeof LEDGER_CALL_VERSION;

/** One call about one request. */
export type LedgerCall = { readonly v: LedgerCallVersion; readonly command: LedgerCommand };

/** The ledger's answer to a call. */
export type LedgerReply = { readonly v: LedgerCallVersion; readonly decision: LedgerDecision };

/** A question about the account. */
export type AccountCall = { readonly v: LedgerCallVersion; readonly query: AccountQuery };

/** The account; null when it cannot be told now. */
export type AccountReply = { readonly v: LedgerCallVersion; readonly account: Account | null };

/** A query for the receipts that the ledger holds; at most `rows` come back. */
export type LedgerListCall = {
  readonly v: LedgerCallVersion;
  readonly query: ReceiptQuery;
  readonly rows: number;
};

/** What it found. */
export type LedgerListReply = { readonly v: LedgerCallVersion; readonly scan: ReceiptScan };

/** What of a span of ids a ledger says D1 has: to be compared with D1 (SPEC §12). */
export type FlushedSums = {
  readonly receipts: number;
  readonly costNanoUsd: number;
  /** The sum of their revs: a receipt of which D1 has an older form shows. */
  readonly revs: number;
  /** Closed receipts of the span that wait for D1. */
  readonly waiting: number;
};

/** What a ledger object answers to. */
export type LedgerRpc = Rpc.DurableObjectBranded & {
  readonly call: (call: LedgerCall) => Promise<LedgerReply>;
  readonly findReceipt: (id: string) => Receipt | null;
  readonly readAccount: (call: AccountCall) => Promise<AccountReply>;
  readonly listReceipts: (call: LedgerListCall) => LedgerListReply;
  readonly sumFlushed: (range: IdRange) => FlushedSums;
  readonly eraseIdentities: () => void;
  readonly replayReceipts: (sinceMs: number) => Promise<number>;
};
