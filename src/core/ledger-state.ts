// The ledger of one workspace as a reducer: commands in, decisions and closed receipts out (SPEC §5). It knows no
// clock and no storage; the Durable Object loads, calls, saves. The state is changed in place, since a copy for each
// call would cost more than the decision; nothing else is remembered between calls, so equal histories decide equally.

import { type GatewayError } from './errors.ts';
import { estimateTokens, learnOutput } from './ledger-estimate.ts';
import { closeAsLost, type Receipt } from './receipt.ts';
import {
  changeScope,
  type ClippedUnits,
  findRefusal,
  type LimitedScope,
  NOTHING_CLIPPED,
  readRates,
  WORKSPACE_SCOPE,
} from './ledger-scopes.ts';
import {
  type ClosedReceipt,
  type LedgerCommand,
  type LedgerDecision,
  type LedgerOutcome,
  type LedgerState,
  type OpenReservation,
  type Reservation,
} from './ledger-types.ts';
import { toTotalTokens } from './usage.ts';

const BAR_MS = 60_000;

/** A ledger nobody has called. */
export function createLedgerState(): LedgerState {
  return {
    nowMs: 0,
    nextExpiryMs: Infinity,
    seq: 0,
    scopes: new Map(),
    open: new Map(),
    barred: new Map(),
    learned: new Map(),
  };
}

/**
 * Applies one command at `nowMs`.
 *
 * @param closedBefore What the store holds under the command's id, looked up by the caller when the id is not open.
 */
export function applyCommand(
  state: LedgerState,
  command: LedgerCommand,
  nowMs: number,
  closedBefore: ClosedReceipt | null,
): LedgerOutcome {
  const expired = expireLeases(state, nowMs);
  const id = command.type === 'release' ? command.id : command.reservation.receipt.id;
  // The caller looked before this call's own expiries, which may have closed the very id the command is about.
  const before = expired.closed.find(({ receipt }) => receipt.id === id) ?? closedBefore;
  const outcome = dispatch(state, command, before);
  if (expired.closed.length === 0) return outcome;
  return {
    decision: outcome.decision,
    closed: [...expired.closed, ...outcome.closed],
    touchedIds: [...expired.touchedIds, ...outcome.touchedIds],
    touchedScopes: [...expired.touchedScopes, ...outcome.touchedScopes],
  };
}

/** Closes every reservation whose lease has run out: slot and unused tokens freed, receipt `lost` at the last counts. */
export function expireLeases(state: LedgerState, nowMs: number): Omit<LedgerOutcome, 'decision'> {
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
    closed.push(close(state, id, current, receipt));
    touchedIds.push(id);
    for (const [scope] of scopesOf(current.reservation)) touchedScopes.add(scope);
  }
  for (const [id, untilMs] of state.barred) {
    if (untilMs <= state.nowMs) state.barred.delete(id);
    else state.nextExpiryMs = Math.min(state.nextExpiryMs, untilMs);
  }
  return { closed, touchedIds, touchedScopes: [...touchedScopes] };
}

function dispatch(state: LedgerState, command: LedgerCommand, closedBefore: ClosedReceipt | null): LedgerOutcome {
  switch (command.type) {
    case 'reserve':
      return reserve(state, command.reservation, closedBefore);
    case 'renew':
      return renew(state, command.reservation, closedBefore);
    case 'settle':
      return settle(state, command.reservation, closedBefore);
    case 'release':
      return release(state, command.id);
  }
}

function reserve(state: LedgerState, reservation: Reservation, closedBefore: ClosedReceipt | null): LedgerOutcome {
  const id = reservation.receipt.id;
  if (state.barred.has(id)) return answer(refuse(state, reservation, { kind: 'client_closed_request' }));
  const scopes = scopesOf(reservation);
  // A repeated reserve, or one that its own settle overtook, is answered again and takes nothing.
  if (state.open.has(id) || closedBefore !== null) return answer({ type: 'admitted', rates: readRates(state, scopes) });
  const tokens = estimateTokens(state.learned, reservation, scopesOf(reservation));
  const refusal = findRefusal(state, scopes, tokens);
  if (refusal !== null) return answer(refuse(state, reservation, refusal));
  open(state, reservation, tokens, null);
  return touched({ type: 'admitted', rates: readRates(state, scopes) }, reservation);
}

function renew(state: LedgerState, reservation: Reservation, closedBefore: ClosedReceipt | null): LedgerOutcome {
  const id = reservation.receipt.id;
  if (state.barred.has(id)) return answer({ type: 'renewed', go: false });
  const current = state.open.get(id);
  if (current === undefined) {
    if (closedBefore !== null && closedBefore.receipt.status !== 'lost') return answer({ type: 'renewed', go: false });
    open(state, reservation, estimateTokens(state.learned, reservation, scopesOf(reservation)), closedBefore);
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

function settle(state: LedgerState, reservation: Reservation, closedBefore: ClosedReceipt | null): LedgerOutcome {
  const id = reservation.receipt.id;
  if (state.barred.has(id)) return answer({ type: 'settled' });
  const current = state.open.get(id);
  if (current === undefined && closedBefore !== null && closedBefore.receipt.status !== 'lost') {
    return answer({ type: 'settled' });
  }
  const opened = current ?? open(state, reservation, 0, closedBefore);
  const closed = close(state, id, { ...opened, reservation }, reservation.receipt);
  learnOutput(state.learned, reservation);
  return { ...touched({ type: 'settled' }, reservation), closed: [closed] };
}

function release(state: LedgerState, id: string): LedgerOutcome {
  state.barred.set(id, state.nowMs + BAR_MS);
  state.nextExpiryMs = Math.min(state.nextExpiryMs, state.nowMs + BAR_MS);
  const current = state.open.get(id);
  if (current === undefined) return answer({ type: 'released' });
  state.open.delete(id);
  // What an earlier closing charged stays charged, as its receipt stays.
  const requests = current.before === null ? -1 : 0;
  for (const [name, limits] of scopesOf(current.reservation)) {
    const change = { requests, tokens: -current.takenTokens, inFlight: -1, ...readSeqs(state, current) };
    changeScope(state, name, limits, change, requests === 0 ? tokensClipped(current, name) : clippedOf(current, name));
  }
  return touched({ type: 'released' }, current.reservation);
}

/** Takes slot, request and tokens in every scope. A reservation that was closed as lost has paid its request already. */
function open(
  state: LedgerState,
  reservation: Reservation,
  tokens: number,
  before: ClosedReceipt | null,
): OpenReservation {
  const leaseUntilMs = state.nowMs + reservation.leaseMs;
  const seq = state.seq + 1;
  const clipped: Record<string, ClippedUnits> = {};
  const opened = {
    reservation,
    takenTokens: tokens,
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
  state.seq = seq;
  state.open.set(reservation.receipt.id, opened);
  state.nextExpiryMs = Math.min(state.nextExpiryMs, leaseUntilMs);
  return opened;
}

/** Frees the slot and replaces the tokens taken by those really used, less what an earlier closing charged. */
function close(state: LedgerState, id: string, current: OpenReservation, receipt: Receipt): ClosedReceipt {
  state.open.delete(id);
  const chargedBefore = current.before === null ? 0 : toTotalTokens(current.before.receipt.usage);
  const tokens = toTotalTokens(receipt.usage) - chargedBefore - current.takenTokens;
  for (const [name, limits] of scopesOf(current.reservation)) {
    const change = { requests: 0, tokens, inFlight: -1, ...readSeqs(state, current) };
    changeScope(state, name, limits, change, tokensClipped(current, name));
  }
  return { rev: (current.before?.rev ?? 0) + 1, receipt };
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

/** The scopes a request counts against: the workspace, and the key where it has limits of its own. */
export function scopesOf(reservation: Reservation): readonly LimitedScope[] {
  const workspace = [WORKSPACE_SCOPE, reservation.workspaceLimits] as const;
  return reservation.keyLimits === null ? [workspace] : [workspace, [reservation.receipt.key, reservation.keyLimits]];
}

function refuse(state: LedgerState, reservation: Reservation, error: GatewayError): LedgerDecision {
  return { type: 'refused', error, rates: readRates(state, scopesOf(reservation)) };
}

function answer(decision: LedgerDecision): LedgerOutcome {
  return { decision, closed: [], touchedIds: [], touchedScopes: [] };
}

function touched(decision: LedgerDecision, reservation: Reservation): LedgerOutcome {
  return {
    decision,
    closed: [],
    touchedIds: [reservation.receipt.id],
    touchedScopes: scopesOf(reservation).map(([name]) => name),
  };
}
