// What the use cases need from the outside, as types only. Adapters translate and decide nothing; one contract suite
// per port runs against the real adapter and the fake.

import { type KeyRecord, type Limits } from '../core/api-key.ts';
import { type GatewayError } from '../core/errors.ts';
import { type Account, type AccountQuery } from '../core/ledger-account.ts';
import { type Reservation } from '../core/ledger-types.ts';
import { type ModelCatalog } from '../core/model-catalog.ts';
import { type Receipt, type ReceiptStatus } from '../core/receipt.ts';
import { type IdRange, type ReceiptQuery, type ReceiptScan } from '../core/receipt-page.ts';
import { type Result } from '../core/result.ts';
import { type RateSnapshot } from '../core/retry-hints.ts';
import { type UsageGrouping, type UsageSum } from '../core/usage-sums.ts';

/** Keys and workspaces. */
export type KeyStore = {
  /** The key with its workspace; null when there is none. An unreachable store or a damaged entry is an error. */
  readonly find: (id: string) => Promise<Result<KeyRecord | null, GatewayError>>;
};

/** Keys that were revoked by a row in D1, as the ledger goes by for inference (SPEC §2). */
export type Revocations = {
  /** What is known is at most some seconds old; a record that cannot be read revokes nobody. */
  readonly has: (keyId: string) => Promise<boolean>;
};

/** The model catalog. */
export type CatalogStore = { readonly read: () => Promise<Result<ModelCatalog, GatewayError>> };

/** A refusal, with the limits as they stand. */
export type Refusal = { readonly error: GatewayError; readonly rates: RateSnapshot | null };

/** An admission. `outputLimit`: output tokens per choice, where the workspace's credits buy no more; else null. */
export type Admission = { readonly rates: RateSnapshot; readonly outputLimit: number | null };

/** The ledgers of all workspaces. Every call has a deadline; none rejects. */
export type Ledger = {
  readonly reserve: (reservation: Reservation, location: string | null) => Promise<Result<Admission, Refusal>>;
  /** `unreachable` leaves the request running: its lease covers it. */
  readonly renew: (reservation: Reservation) => Promise<'go' | 'stop' | 'unreachable'>;
  /** Whether the settlement is durable. */
  readonly settle: (reservation: Reservation) => Promise<boolean>;
  /** Whether the release was taken. */
  readonly release: (workspace: string, id: string) => Promise<boolean>;
  /** A receipt the ledger still holds; null when it holds none. */
  readonly findReceipt: (workspace: string, id: string) => Promise<Result<Receipt | null, GatewayError>>;
  /** How a workspace's credits and limits stand. */
  readonly readAccount: (query: AccountQuery) => Promise<Result<Account, GatewayError>>;
  /** At most `rows` of the receipts that the record may not have as they stand: in progress, or not yet flushed. */
  readonly listReceipts: (
    query: ReceiptQuery,
    rows: number,
    location: string | null,
  ) => Promise<Result<ReceiptScan, GatewayError>>;
};

/** The record of receipts. */
export type ReceiptStore = {
  readonly find: (workspace: string, id: string) => Promise<Result<Receipt | null, GatewayError>>;
  /** At most `rows` receipts, out of a bounded number that it looks at. */
  readonly list: (
    query: ReceiptQuery,
    status: ReceiptStatus | null,
    rows: number,
  ) => Promise<Result<ReceiptScan, GatewayError>>;
  /**
   * Sums over the newest receipts of the range, a bounded number of them, without those named. What lies below `floorId`
   * is not among them; null when nothing does. `movedSums`: what of the range's days was moved out of the record by then,
   * by whole days.
   */
  readonly sum: (
    range: UsageRange,
    grouping: UsageGrouping,
    withoutIds: readonly string[],
  ) => Promise<Result<RecordSums, GatewayError>>;
};

/** What the record says of a range: see {@link ReceiptStore}. */
export type RecordSums = {
  readonly sums: readonly UsageSum[];
  readonly floorId: string | null;
  readonly movedSums: readonly UsageSum[];
};

/** A workspace's receipts of a time, and the UTC days which that touches, both included. */
export type UsageRange = IdRange & { readonly workspace: string; readonly firstDay: string; readonly lastDay: string };

/** What goes to a backend. */
export type UpstreamRequest = {
  readonly path: string;
  readonly body: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly signal: AbortSignal;
};

/** The backends behind their bindings. Rejects when no answer came: unreachable, reset, aborted. */
export type Backends = { readonly send: (binding: string, request: UpstreamRequest) => Promise<Response> };

/** A pipe for bytes whose write waits for its reader; the readable side becomes a response body. */
export type Pipe = {
  readonly readable: ReadableStream<Uint8Array>;
  readonly writable: WritableStream<Uint8Array>;
};

/** Opens a pipe through which bytes pass as they are. */
export type OpenPipe = () => Pipe;

/**
 * Opens a pipe that calls `rewrite`, which must not throw, for each piece of UTF-8 text that passes. Bytes that are no
 * UTF-8 become U+FFFD.
 */
export type OpenRewritingPipe = (rewrite: (text: string) => string) => Pipe;

/** One structured line. Never a prompt, an answer or an Authorization header. */
export type LogEntry = { readonly event: string } & Readonly<Record<string, unknown>>;

/** Times in milliseconds, sizes in bytes; the README's table has the defaults. */
export type Settings = {
  readonly keepAliveMs: number;
  readonly firstEventHoldMs: number;
  readonly headersDeadlineMs: number;
  readonly firstEventDeadlineMs: number;
  readonly silenceDeadlineMs: number;
  readonly totalDeadlineMs: number;
  readonly leaseMs: number;
  /** Whether streams may take a native lane; off, the plain pump carries all. */
  readonly nativeLanes: boolean;
  /** Bytes an isolate holds in hand before it refuses new requests. */
  readonly isolateBytesMax: number;
  readonly defaultLimits: Limits;
  readonly corsOrigins: readonly string[];
  /** Whether this is a local run, where the demo key works. */
  readonly local: boolean;
};

/**
 * Counts requests with bad keys per address; false once there were too many. Always true where nothing is bound.
 */
export type FailedKeys = { readonly allow: (address: string) => Promise<boolean> };

/** Everything outside, in one object. */
export type Ports = {
  readonly keys: KeyStore;
  readonly revocations: Revocations;
  readonly failedKeys: FailedKeys;
  readonly catalog: CatalogStore;
  readonly ledger: Ledger;
  readonly receipts: ReceiptStore;
  readonly backends: Backends;
  readonly openPipe: OpenPipe;
  readonly openRewritingPipe: OpenRewritingPipe;
  readonly settings: Settings;
  readonly now: () => number;
  readonly randomBytes: (count: number) => Uint8Array;
  readonly log: (entry: LogEntry) => void;
};
