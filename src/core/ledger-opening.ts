// Opening and closing one reservation: slot, request, tokens and hold taken together and given back together (SPEC §5).
// Pure; when it is done is decided in ledger-state.ts.

import { changeScope, type ClippedUnits, type LimitedScope, NOTHING_CLIPPED, toScopes } from './ledger-scopes.ts';
import { type ClosedReceipt, type LedgerState, type OpenReservation, type Reservation } from './ledger-types.ts';
import { type TokenBounds } from './money.ts';
import { type Receipt } from './receipt.ts';
import { toTotalTokens } from './usage.ts';

/** What is taken beside a slot and a request. `outputLimit`: tokens per choice, where the balance buys no more. */
export type Taken = {
  readonly tokens: number;
  readonly heldNanoUsd: number;
  readonly outputLimit: number | null;
};

/** For a request that ends as it is taken in. */
export const NOTHING_TAKEN: Taken = { tokens: 0, heldNanoUsd: 0, outputLimit: null };

/** Takes slot, request and tokens in every scope. A reservation that was closed as lost has paid its request already. */
export function openReservation(
  state: LedgerState,
  reservation: Reservation,
  { tokens, heldNanoUsd, outputLimit }: Taken,
  before: ClosedReceipt | null,
): OpenReservation {
  const leaseUntilMs = state.nowMs + reservation.leaseMs;
  const seq = state.seq + 1;
  const clipped: Record<string, ClippedUnits> = {};
  const opened = {
    reservation,
    takenTokens: tokens,
    heldNanoUsd,
    outputLimit,
    clipped,
    seq,
    leaseUntilMs,
    savedLeaseUntilMs: leaseUntilMs,
    before,
  };
  const requests = before === null ? 1 : 0;
  for (const [name, limits] of scopesOf(reservation)) {
    const change = { requests, tokens, inFlight: 1, ...readSeqs(state, opened) };
    clipped[name] = changeScope(state, name, limits, change, NOTHING_CLIPPED);
  }
  state.credits.heldNanoUsd += heldNanoUsd;
  state.seq = seq;
  state.open.set(reservation.receipt.id, opened);
  state.nextExpiryMs = Math.min(state.nextExpiryMs, leaseUntilMs);
  return opened;
}

/**
 * Frees slot and hold, replaces the tokens taken by those really used and charges the cost, both less what an earlier
 * closing charged.
 */
export function closeReservation(
  state: LedgerState,
  id: string,
  current: OpenReservation,
  receipt: Receipt,
): ClosedReceipt {
  state.open.delete(id);
  const { before } = current;
  const chargedBefore = before === null ? 0 : toTotalTokens(before.receipt.usage);
  const tokens = toTotalTokens(receipt.usage) - chargedBefore - current.takenTokens;
  for (const [name, limits] of scopesOf(current.reservation)) {
    const change = { requests: 0, tokens, inFlight: -1, ...readSeqs(state, current) };
    changeScope(state, name, limits, change, tokensClipped(current, name));
  }
  state.credits.heldNanoUsd -= current.heldNanoUsd;
  state.credits.spentNanoUsd += receipt.cost_nano_usd - (before?.receipt.cost_nano_usd ?? 0);
  return { rev: (before?.rev ?? 0) + 1, receipt };
}

/** Gives back all that a reservation took. What an earlier closing charged stays charged, as its receipt stays. */
export function cancelReservation(state: LedgerState, id: string, current: OpenReservation): void {
  state.open.delete(id);
  const requests = current.before === null ? -1 : 0;
  for (const [name, limits] of scopesOf(current.reservation)) {
    const change = { requests, tokens: -current.takenTokens, inFlight: -1, ...readSeqs(state, current) };
    changeScope(state, name, limits, change, requests === 0 ? tokensClipped(current, name) : clippedOf(current, name));
  }
  state.credits.heldNanoUsd -= current.heldNanoUsd;
}

function clippedOf({ clipped }: OpenReservation, name: string): ClippedUnits {
  return clipped[name] ?? NOTHING_CLIPPED;
}

/** Where the request itself stays used, what it did not get of the request bucket is forgiven. */
function tokensClipped(current: OpenReservation, name: string): ClippedUnits {
  return { requests: 0, tokens: clippedOf(current, name).tokens };
}

/** A reservation's number, and that of the oldest still open: they are kept in the order of taking. */
function readSeqs(state: LedgerState, { seq }: OpenReservation): { readonly seq: number; readonly oldestSeq: number } {
  const oldest = state.open.values().next();
  return { seq, oldestSeq: oldest.done === true ? seq : oldest.value.seq };
}

/** The scopes that a request counts against. */
export function scopesOf(reservation: Reservation): readonly LimitedScope[] {
  return toScopes(reservation.receipt.key, reservation);
}

/** What a prepaid request can use at most; null for one that is not prepaid. */
export function boundsOf({ credit, choices }: Reservation): TokenBounds | null {
  return credit === undefined ? null : { ...credit, choices };
}
