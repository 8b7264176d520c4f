// The ledger of one workspace as a reducer: commands in, decisions and closed receipts out (SPEC §5). It knows no
// clock and no storage; the Durable Object loads, calls, saves. The state is changed in place, since a copy for each
// call would cost more than the decision; nothing else is remembered between calls, so equal histories decide equally.

import { type GatewayError } from './errors.ts';
import { type Limits } from './api-key.ts';
import { type RateSnapshot } from './retry-hints.ts';
import { closeAsLost, type Receipt } from './receipt.ts';
import {
  changeScope,
  findRefusal,
  type LimitedScope,
  readRates,
  type Scope,
  WORKSPACE_SCOPE,
} from './ledger-scopes.ts';
import { toTotalTokens } from './usage.ts';

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
};

/** What may be asked of a ledger about one request. */
export type LedgerCommand =
  | { readonly type: 'reserve'; readonly reservation: Reservation }
  | { readonly type: 'renew'; readonly reservation: Reservation }
  | { readonly type: 'settle'; readonly reservation: Reservation }
  | { readonly type: 'release'; readonly id: string };

/** A receipt that was closed before, as the store has it; `rev` counts its closings. */
export type ClosedReceipt = { readonly rev: number; readonly receipt: Receipt };

/** The ledger's answer. `go: false` on a renewal means: end the request now. */
export type LedgerDecision =
  | { readonly type: 'admitted'; readonly rates: RateSnapshot }
  | { readonly type: 'refused'; readonly error: GatewayError; readonly rates: RateSnapshot }
  | { readonly type: 'renewed'; readonly go: boolean }
  | { readonly type: 'settled' }
  | { readonly type: 'released' };

/** A request in flight. */
export type OpenReservation = {
  readonly reservation: Reservation;
  /** What was taken from the token buckets for it. */
  readonly takenTokens: number;
  readonly leaseUntilMs: number;
  /** A closing that this reservation followed (renewed after its lease had run out): its tokens stay charged. */
  readonly before: ClosedReceipt | null;
};

export type LedgerState = {
  /** The latest time seen; the ledger's clock never goes back. */
  nowMs: number;
  /** No lease ends before this; saves a walk over all of them on every call. */
  nextExpiryMs: number;
  readonly scopes: Map<string, Scope>;
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
};

const BAR_MS = 60_000;
const UNKNOWN_OUTPUT_TOKENS = 512;
const LEARNING_WEIGHT = 0.2;

/** A ledger nobody has called. */
export function createLedgerState(): LedgerState {
  return {
    nowMs: 0,
    nextExpiryMs: Infinity,
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
  const outcome = dispatch(state, command, closedBefore);
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
  for (const [id, open] of state.open) {
    if (open.leaseUntilMs > state.nowMs) {
      state.nextExpiryMs = Math.min(state.nextExpiryMs, open.leaseUntilMs);
      continue;
    }
    const receipt = closeAsLost(open.reservation.receipt, state.nowMs);
    closed.push(close(state, id, open, receipt));
    touchedIds.push(id);
    for (const [scope] of scopesOf(open.reservation)) touchedScopes.add(scope);
  }
  for (const [id, untilMs] of state.barred) if (untilMs <= state.nowMs) state.barred.delete(id);
  return { closed, touchedIds, touchedScopes: [...touchedScopes] };
}

function dispatch(state: LedgerState, command: LedgerCommand, closedBefore: ClosedReceipt | null): LedgerOutcome {
  switch (command.type) {
    case 'reserve':
      return reserve(state, command.reservation);
    case 'renew':
      return renew(state, command.reservation, closedBefore);
    case 'settle':
      return settle(state, command.reservation, closedBefore);
    case 'release':
      return release(state, command.id);
  }
}

function reserve(state: LedgerState, reservation: Reservation): LedgerOutcome {
  const id = reservation.receipt.id;
  if (state.barred.has(id)) return answer(refuse(state, reservation, { kind: 'client_closed_request' }));
  const scopes = scopesOf(reservation);
  if (state.open.has(id)) return answer({ type: 'admitted', rates: readRates(state, scopes) });
  const tokens = estimateTokens(state, reservation);
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
    open(state, reservation, estimateTokens(state, reservation), closedBefore);
  } else {
    const leaseUntilMs = state.nowMs + reservation.leaseMs;
    state.open.set(id, { ...current, reservation, leaseUntilMs });
    state.nextExpiryMs = Math.min(state.nextExpiryMs, leaseUntilMs);
  }
  return touched({ type: 'renewed', go: true }, reservation);
}

function settle(state: LedgerState, reservation: Reservation, closedBefore: ClosedReceipt | null): LedgerOutcome {
  const id = reservation.receipt.id;
  const current = state.open.get(id);
  if (current === undefined && closedBefore !== null && closedBefore.receipt.status !== 'lost') {
    return answer({ type: 'settled' });
  }
  const opened = current ?? open(state, reservation, 0, closedBefore);
  const closed = close(state, id, { ...opened, reservation }, reservation.receipt);
  learn(state, reservation);
  return { ...touched({ type: 'settled' }, reservation), closed: [closed] };
}

function release(state: LedgerState, id: string): LedgerOutcome {
  state.barred.set(id, state.nowMs + BAR_MS);
  state.nextExpiryMs = Math.min(state.nextExpiryMs, state.nowMs + BAR_MS);
  const current = state.open.get(id);
  if (current === undefined) return answer({ type: 'released' });
  state.open.delete(id);
  for (const [name, limits] of scopesOf(current.reservation)) {
    changeScope(state, name, limits, { requests: -1, tokens: -current.takenTokens, inFlight: -1 });
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
  const opened = { reservation, takenTokens: tokens, leaseUntilMs, before };
  state.open.set(reservation.receipt.id, opened);
  state.nextExpiryMs = Math.min(state.nextExpiryMs, leaseUntilMs);
  for (const [name, limits] of scopesOf(reservation)) {
    changeScope(state, name, limits, { requests: before === null ? 1 : 0, tokens, inFlight: 1 });
  }
  return opened;
}

/** Frees the slot and replaces the tokens taken by those really used, less what an earlier closing charged. */
function close(state: LedgerState, id: string, current: OpenReservation, receipt: Receipt): ClosedReceipt {
  state.open.delete(id);
  const chargedBefore = current.before === null ? 0 : toTotalTokens(current.before.receipt.usage);
  const tokens = toTotalTokens(receipt.usage) - chargedBefore - current.takenTokens;
  for (const [name, limits] of scopesOf(current.reservation)) {
    changeScope(state, name, limits, { requests: 0, tokens, inFlight: -1 });
  }
  return { rev: (current.before?.rev ?? 0) + 1, receipt };
}

/**
 * Tokens to take for a request: prompt, and its output limit, or else what the model's recent requests made. What is
 * learned never makes a request too large for a bucket that its prompt fits.
 */
function estimateTokens(state: LedgerState, reservation: Reservation): number {
  const { promptTokens, outputTokens, choices, receipt } = reservation;
  if (outputTokens !== null) return promptTokens + outputTokens;
  const learned = (state.learned.get(receipt.upstream_model) ?? UNKNOWN_OUTPUT_TOKENS) * choices;
  const capacity = Math.min(...scopesOf(reservation).map(([, limits]) => limits.tpm ?? Infinity));
  return promptTokens + Math.max(0, Math.ceil(Math.min(learned, capacity / 4, capacity - promptTokens)));
}

function learn(state: LedgerState, reservation: Reservation): void {
  const { receipt, choices } = reservation;
  if (receipt.status !== 'completed' && receipt.status !== 'incomplete') return;
  const seen = receipt.usage.output_tokens / Math.max(1, choices);
  const known = state.learned.get(receipt.upstream_model) ?? seen;
  state.learned.set(receipt.upstream_model, known + (seen - known) * LEARNING_WEIGHT);
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
