// A ledger with a clock and a store, driven as the Durable Object drives it: load what was closed, apply, save.

import { endRebuild, type Funds, readBalance } from '../../src/core/ledger-credits.ts';
import { applyCommand, createLedgerState, expireLeases } from '../../src/core/ledger-state.ts';
import {
  type ClosedReceipt,
  type LedgerCommand,
  type LedgerDecision,
  type LedgerState,
} from '../../src/core/ledger-types.ts';
import { drainBucket, EMPTY_BUCKET } from '../../src/core/token-bucket.ts';
import { buildReservation, type ReservationOptions } from './build-reservation.ts';

export type LedgerHarness = {
  readonly state: LedgerState;
  readonly store: Map<string, ClosedReceipt>;
  /** Every closing there was, in order. */
  readonly closings: ClosedReceipt[];
  readonly apply: (command: LedgerCommand, nowMs: number) => LedgerDecision;
  readonly expire: (nowMs: number) => void;
  /** What was granted, as the next call knows it. */
  funds: Funds;
};

/** An empty ledger that knows what was spent before it began: nothing. */
export function createLedgerHarness(grantedNanoUsd = 0): LedgerHarness {
  const state = createLedgerState();
  endRebuild(state.credits, 0);
  const store = new Map<string, ClosedReceipt>();
  const closings: ClosedReceipt[] = [];
  function save(closed: readonly ClosedReceipt[]): void {
    for (const closing of closed) {
      closings.push(closing);
      const known = store.get(closing.receipt.id);
      if (known === undefined || closing.rev > known.rev) store.set(closing.receipt.id, closing);
    }
  }
  const harness: LedgerHarness = {
    state,
    store,
    closings,
    funds: { grantedNanoUsd, isCurrent: true },
    apply(next, nowMs) {
      const id = next.type === 'release' ? next.id : next.reservation.receipt.id;
      const before = state.open.has(id) ? null : (store.get(id) ?? null);
      const outcome = applyCommand(state, next, nowMs, before, harness.funds);
      save(outcome.closed);
      return outcome.decision;
    },
    expire: (nowMs) => save(expireLeases(state, nowMs).closed),
  };
  return harness;
}

/** What is left of a ledger's credits, in nano-USD. */
export function readBalanceOf(ledger: LedgerHarness): number {
  return readBalance(ledger.state.credits, ledger.funds);
}

/** The balance as receipts and open holds make it: grants − sum of receipts − holds. */
export function countBalance({ store, state, funds }: LedgerHarness): number {
  const spent = [...store.values()].reduce((sum, { receipt }) => sum + receipt.cost_nano_usd, 0);
  const held = [...state.open.values()].reduce((sum, { heldNanoUsd }) => sum + heldNanoUsd, 0);
  return funds.grantedNanoUsd - spent - held;
}

/** What is used of a scope's buckets now, in whole requests and tokens (fractions kept), and in flight. */
export function readUse(
  state: LedgerState,
  scope: string,
  limits: { readonly rpm: number | null; readonly tpm: number | null },
): { readonly requests: number; readonly tokens: number; readonly inFlight: number } {
  const use = state.scopes.get(scope);
  return {
    requests: drainBucket(use?.requests ?? EMPTY_BUCKET, limits.rpm, state.nowMs).usedUnits / 60_000,
    tokens: drainBucket(use?.tokens ?? EMPTY_BUCKET, limits.tpm, state.nowMs).usedUnits / 60_000,
    inFlight: use?.inFlight ?? 0,
  };
}

/** A command about one reservation. */
export function command(type: 'reserve' | 'renew' | 'settle', options: ReservationOptions = {}): LedgerCommand {
  return { type, reservation: buildReservation({ ...(type === 'settle' ? { status: 'completed' } : {}), ...options }) };
}
