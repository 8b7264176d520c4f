// The ledger of one workspace as a reducer: commands in, decisions and closed receipts out (SPEC §5). It knows no
// clock and no storage; the Durable Object loads, calls, saves. The state is changed in place, since a copy for each
// call would cost more than the decision; nothing else is remembered between calls, so equal histories decide equally.

import { type GatewayError } from './errors.ts';
import { createCredits, findFunding, type Funds, UNKNOWN_FUNDS } from './ledger-credits.ts';
import { estimateTokens, learnOutput } from './ledger-estimate.ts';
import {
  boundsOf,
  cancelReservation,
  closeReservation,
  NOTHING_TAKEN,
  openReservation,
  scopesOf,
} from './ledger-opening.ts';
import { findRefusal, readRates } from './ledger-scopes.ts';
import {
  type ClosedReceipt,
  type LedgerCommand,
  type LedgerDecision,
  type LedgerOutcome,
  type LedgerState,
  type Reservation,
} from './ledger-types.ts';
import { toHoldNanoUsd } from './money.ts';
import { closeAsLost } from './receipt.ts';

const BAR_MS = 60_000;

/** A ledger nobody has called. */
export function createLedgerState(): LedgerState {
  return {
    nowMs: 0,
    nextExpiryMs: Infinity,
    seq: 0,
    scopes: new Map(),
    credits: createCredits(),
    open: new Map(),
    barred: new Map(),
    learned: new Map(),
  };
}

/**
 * Applies one command at `nowMs`.
 *
 * @param closedBefore What the store holds under the command's id, looked up by the caller when the id is not open.
 * @param funds What the workspace was granted, as far as the caller knows.
 */
export function applyCommand(
  state: LedgerState,
  command: LedgerCommand,
  nowMs: number,
  closedBefore: ClosedReceipt | null,
  funds: Funds = UNKNOWN_FUNDS,
): LedgerOutcome {
  const expired = expireLeases(state, nowMs);
  const id = command.type === 'release' ? command.id : command.reservation.receipt.id;
  // The caller looked before this call's own expiries, which may have closed the very id the command is about.
  const before = expired.closed.find(({ receipt }) => receipt.id === id) ?? closedBefore;
  const outcome = dispatch(state, command, before, funds);
  if (expired.closed.length === 0) return outcome;
  return {
    ...outcome,
    closed: [...expired.closed, ...outcome.closed],
    touchedIds: [...expired.touchedIds, ...outcome.touchedIds],
    touchedScopes: [...expired.touchedScopes, ...outcome.touchedScopes],
  };
}

/** What is to be saved of a change. */
export type LedgerChange = Omit<LedgerOutcome, 'decision' | 'saveFirst'>;

/** Closes every reservation whose lease has run out: slot and unused tokens freed, receipt `lost` at the last counts. */
export function expireLeases(state: LedgerState, nowMs: number): LedgerChange {
  state.nowMs = Math.max(state.nowMs, nowMs);
  const closed: ClosedReceipt[] = [];
  const touchedIds: string[] = [];
  const touchedScopes = new Set<string>();
  if (state.nowMs < state.nextExpiryMs) return { closed, touchedIds, touchedScopes: [] };
  state.nextExpiryMs = Infinity;
  for (const [id, current] of state.open) {
    if (current.leaseUntilMs > state.nowMs) {
      state.nextExpiryMs = Math.min(state.nextExpiryMs, current.leaseUntilMs);
      continue;
    }
    const receipt = closeAsLost(current.reservation.receipt, state.nowMs);
    closed.push(closeReservation(state, id, current, receipt));
    touchedIds.push(id);
    for (const [scope] of scopesOf(current.reservation)) touchedScopes.add(scope);
  }
  for (const [id, untilMs] of state.barred) {
    if (untilMs <= state.nowMs) state.barred.delete(id);
    else state.nextExpiryMs = Math.min(state.nextExpiryMs, untilMs);
  }
  return { closed, touchedIds, touchedScopes: [...touchedScopes] };
}

function dispatch(
  state: LedgerState,
  command: LedgerCommand,
  closedBefore: ClosedReceipt | null,
  funds: Funds,
): LedgerOutcome {
  switch (command.type) {
    case 'reserve':
      return reserve(state, command.reservation, closedBefore, funds);
    case 'renew':
      return renew(state, command.reservation, closedBefore);
    case 'settle':
      return settle(state, command.reservation, closedBefore);
    case 'release':
      return release(state, command.id);
  }
}

function reserve(
  state: LedgerState,
  reservation: Reservation,
  closedBefore: ClosedReceipt | null,
  funds: Funds,
): LedgerOutcome {
  const id = reservation.receipt.id;
  if (state.barred.has(id)) return answer(refuse(state, reservation, { kind: 'client_closed_request' }));
  // A repeated reserve, or one that its own settle overtook, is answered again and takes nothing.
  const known = state.open.get(id);
  if (known !== undefined || closedBefore !== null) {
    const again = answer(admit(state, reservation, known?.outputLimit ?? null));
    return { ...again, saveFirst: (known?.heldNanoUsd ?? 0) > 0 };
  }
  const scopes = scopesOf(reservation);
  const funding = findFunding(state.credits, funds, boundsOf(reservation), reservation.receipt.rates);
  const outputLimit = funding.ok ? funding.value.outputLimit : null;
  const estimate = estimateTokens(state.learned, reservation, scopes);
  // What the balance does not buy is not taken from the buckets either.
  const tokens =
    outputLimit === null ? estimate : Math.min(estimate, reservation.promptTokens + outputLimit * reservation.choices);
  const refusal = findRefusal(state, scopes, tokens);
  if (refusal !== null) return answer(refuse(state, reservation, refusal));
  if (!funding.ok) return answer(refuse(state, reservation, funding.error));
  const { heldNanoUsd, isTight } = funding.value;
  openReservation(state, reservation, { tokens, heldNanoUsd, outputLimit }, null);
  return { ...touched(admit(state, reservation, outputLimit), reservation), saveFirst: isTight };
}

function admit(state: LedgerState, reservation: Reservation, outputLimit: number | null): LedgerDecision {
  const rates = readRates(state, scopesOf(reservation));
  return outputLimit === null ? { type: 'admitted', rates } : { type: 'admitted', rates, outputLimit };
}

function renew(state: LedgerState, reservation: Reservation, closedBefore: ClosedReceipt | null): LedgerOutcome {
  const id = reservation.receipt.id;
  if (state.barred.has(id)) return answer({ type: 'renewed', go: false });
  const current = state.open.get(id);
  if (current === undefined) {
    if (closedBefore !== null && closedBefore.receipt.status !== 'lost') return answer({ type: 'renewed', go: false });
    adopt(state, reservation, closedBefore);
  } else {
    const leaseUntilMs = state.nowMs + reservation.leaseMs;
    const save = leaseUntilMs - current.savedLeaseUntilMs >= reservation.leaseMs / 3;
    const savedLeaseUntilMs = save ? leaseUntilMs : current.savedLeaseUntilMs;
    state.open.set(id, { ...current, reservation, leaseUntilMs, savedLeaseUntilMs });
    state.nextExpiryMs = Math.min(state.nextExpiryMs, leaseUntilMs);
    if (!save) return answer({ type: 'renewed', go: true });
  }
  return touched({ type: 'renewed', go: true }, reservation);
}

/** Takes in a request that runs already: nothing can refuse it any more, so it takes what it needs. */
function adopt(state: LedgerState, reservation: Reservation, before: ClosedReceipt | null): void {
  const tokens = estimateTokens(state.learned, reservation, scopesOf(reservation));
  const bounds = boundsOf(reservation);
  const hold = bounds === null ? 0 : toHoldNanoUsd(bounds, reservation.receipt.rates);
  // What it was charged already is not held a second time.
  const heldNanoUsd = Math.max(0, hold - (before?.receipt.cost_nano_usd ?? 0));
  openReservation(state, reservation, { tokens, heldNanoUsd, outputLimit: null }, before);
}

function settle(state: LedgerState, reservation: Reservation, closedBefore: ClosedReceipt | null): LedgerOutcome {
  const id = reservation.receipt.id;
  if (state.barred.has(id)) return answer({ type: 'settled' });
  const current = state.open.get(id);
  if (current === undefined && closedBefore !== null && closedBefore.receipt.status !== 'lost') {
    return answer({ type: 'settled' });
  }
  const opened = current ?? openReservation(state, reservation, NOTHING_TAKEN, closedBefore);
  const closed = closeReservation(state, id, { ...opened, reservation }, reservation.receipt);
  learnOutput(state.learned, reservation);
  return { ...touched({ type: 'settled' }, reservation), closed: [closed] };
}

function release(state: LedgerState, id: string): LedgerOutcome {
  state.barred.set(id, state.nowMs + BAR_MS);
  state.nextExpiryMs = Math.min(state.nextExpiryMs, state.nowMs + BAR_MS);
  const current = state.open.get(id);
  if (current === undefined) return answer({ type: 'released' });
  cancelReservation(state, id, current);
  return touched({ type: 'released' }, current.reservation);
}

function refuse(state: LedgerState, reservation: Reservation, error: GatewayError): LedgerDecision {
  return { type: 'refused', error, rates: readRates(state, scopesOf(reservation)) };
}

function answer(decision: LedgerDecision): LedgerOutcome {
  return { decision, closed: [], touchedIds: [], touchedScopes: [], saveFirst: false };
}

function touched(decision: LedgerDecision, reservation: Reservation): LedgerOutcome {
  return {
    decision,
    closed: [],
    touchedIds: [reservation.receipt.id],
    touchedScopes: scopesOf(reservation).map(([name]) => name),
    saveFirst: false,
  };
}
