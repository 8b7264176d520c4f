// What crosses between the gateway and a ledger object: one object with a version. An object keeps its code for minutes
// after a deploy, so a ledger accepts the version before its own too (SPEC §11).

import { type Receipt } from '../core/receipt.ts';
import { type ReceiptQuery, type ReceiptScan } from '../core/receipt-page.ts';
import { type LedgerCommand, type LedgerDecision } from '../core/ledger-types.ts';

/** The version this code speaks. It goes up when a field is read that older callers do not send. */
export const LEDGER_CALL_VERSION = 1;

/** One call about one request. */
export type LedgerCall = { readonly v: typeof LEDGER_CALL_VERSION; readonly command: LedgerCommand };

/** The ledger's answer to a call. */
export type LedgerReply = { readonly v: typeof LEDGER_CALL_VERSION; readonly decision: LedgerDecision };

/** A query for the receipts that the ledger holds; at most `rows` come back. */
export type LedgerListCall = {
  readonly v: typeof LEDGER_CALL_VERSION;
  readonly query: ReceiptQuery;
  readonly rows: number;
};

/** What it found. */
export type LedgerListReply = { readonly v: typeof LEDGER_CALL_VERSION; readonly scan: ReceiptScan };

/** What a ledger object answers to. */
export type LedgerRpc = Rpc.DurableObjectBranded & {
  readonly call: (call: LedgerCall) => Promise<LedgerReply>;
  readonly findReceipt: (id: string) => Receipt | null;
  readonly listReceipts: (call: LedgerListCall) => LedgerListReply;
};
