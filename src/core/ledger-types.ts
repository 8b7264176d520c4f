// What is asked of a ledger, what it answers, and what it keeps: the types of core/ledger-state.ts (SPEC §5).

import { type Limits } from './api-key.ts';
import { type GatewayError } from './errors.ts';
import { type Credits, type CreditTerms } from './ledger-credits.ts';
import { type ClippedUnits, type Scope } from './ledger-scopes.ts';
import { type Receipt } from './receipt.ts';
import { type RateSnapshot } from './retry-hints.ts';

/** Everything the ledger needs to admit, re-admit or close a request; each command carries all of it. */
export type Reservation = {
  readonly receipt: Receipt;
  readonly workspaceLimits: Limits;
  /** null when the key has no limits of its own. */
  readonly keyLimits: Limits | null;
  /** Estimated prompt tokens, over all prompts. */
  readonly promptTokens: number;
  /** Output tokens the request may make in all its choices; null when it sets no limit. */
  readonly outputTokens: number | null;
  /** Choices over all prompts; what is learned of a model is per choice. */
  readonly choices: number;
  readonly leaseMs: number;
  /** Of a prepaid workspace only: nothing is held for others. */
  readonly credit?: CreditTerms;
};

/** What may be asked of a ledger about one request. */
export type LedgerCommand =
  | { readonly type: 'reserve'; readonly reservation: Reservation }
  | { readonly type: 'renew'; readonly reservation: Reservation }
  | { readonly type: 'settle'; readonly reservation: Reservation }
  | { readonly type: 'release'; readonly id: string };

/** A receipt that was closed before, as the store has it; `rev` counts its closings. */
export type ClosedReceipt = { readonly rev: number; readonly receipt: Receipt };

/**
 * The ledger's answer. `go: false` on a renewal means: end the request now. `outputLimit` on an admission: each choice may
 * have so many tokens and no more, since the balance buys no more.
 */
export type LedgerDecision =
  | { readonly type: 'admitted'; readonly rates: RateSnapshot; readonly outputLimit?: number }
  | { readonly type: 'refused'; readonly error: GatewayError; readonly rates: RateSnapshot }
  | { readonly type: 'renewed'; readonly go: boolean }
  | { readonly type: 'settled' }
  | { readonly type: 'released' };

/** A request in flight. */
export type OpenReservation = {
  readonly reservation: Reservation;
  /** What was taken from the token buckets for it. */
  readonly takenTokens: number;
  /** What is held of the balance for it. */
  readonly heldNanoUsd: number;
  /** Output tokens per choice that the balance bought; null when it bought all that was asked for. */
  readonly outputLimit: number | null;
  /** Per scope what the debt limit kept it from taking. */
  readonly clipped: Readonly<Record<string, ClippedUnits>>;
  /** Its number in the order of taking. */
  readonly seq: number;
  readonly leaseUntilMs: number;
  /** The lease as it was last saved: a renewal is saved when it has moved by a third, since rows written cost most. */
  readonly savedLeaseUntilMs: number;
  /** A closing that this reservation followed (renewed after its lease had run out): its tokens stay charged. */
  readonly before: ClosedReceipt | null;
};

export type LedgerState = {
  /** The latest time seen; the ledger's clock never goes back. */
  nowMs: number;
  /** No lease ends before this; saves a walk over all of them on every call. */
  nextExpiryMs: number;
  /** The number of the newest reservation. */
  seq: number;
  readonly scopes: Map<string, Scope>;
  readonly credits: Credits;
  readonly open: Map<string, OpenReservation>;
  /** Released ids and until when they are barred. */
  readonly barred: Map<string, number>;
  /** Output tokens per choice of a model's recent requests, as a moving average. */
  readonly learned: Map<string, number>;
};

/** What a command did: the answer, receipts closed by it, and the ids and scopes to save. */
export type LedgerOutcome = {
  readonly decision: LedgerDecision;
  readonly closed: readonly ClosedReceipt[];
  readonly touchedIds: readonly string[];
  readonly touchedScopes: readonly string[];
  /** Whether the answer must wait until this is durable: the balance could not bear a hold that is forgotten. */
  readonly saveFirst: boolean;
};
