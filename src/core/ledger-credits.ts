// Prepaid credits in the ledger: what a request may cost at most, what the balance buys of that, and the account's sums
// (SPEC §5, §9). Pure; what was granted comes with each call, since D1 has it, and D1 is not asked from here.

import { type GatewayError } from './errors.ts';
import { type Rates, toAffordableOutput, toHoldNanoUsd, type TokenBounds } from './money.ts';
import { err, ok, type Result } from './result.ts';

/** What a prepaid request may use at most; its hold is made from this. */
export type CreditTerms = Omit<TokenBounds, 'choices'>;

/** What a workspace has spent and holds, in nano-USD. */
export type Credits = {
  /** Cost of the receipts counted so far; all there are once `isWhole`. */
  spentNanoUsd: number;
  /** Whether receipts from before this ledger began are counted. */
  isWhole: boolean;
  /** The holds of all open reservations. */
  heldNanoUsd: number;
};

/** What was granted, as it is known at the time of a call. */
export type Funds = {
  readonly grantedNanoUsd: number;
  /** Whether that is recent enough to refuse for want of credits. */
  readonly isCurrent: boolean;
};

/** Nothing known of any grant. */
export const UNKNOWN_FUNDS: Funds = { grantedNanoUsd: 0, isCurrent: false };

/** How a request is paid for. */
export type Funding = {
  readonly heldNanoUsd: number;
  /** Output tokens a choice may have, where the balance buys less than was asked for; null where it buys all. */
  readonly outputLimit: number | null;
  /** Whether the balance is so small that a forgotten hold would matter. */
  readonly isTight: boolean;
};

/** Below so many holds a hold is made durable before the request is admitted. */
const TIGHT_HOLDS = 20;

const FREE: Funding = { heldNanoUsd: 0, outputLimit: null, isTight: false };

/** An account without history. */
export function createCredits(): Credits {
  return { spentNanoUsd: 0, isWhole: false, heldNanoUsd: 0 };
}

/** What is left to spend, in nano-USD: grants − spent − held. */
export function readBalance(credits: Credits, funds: Funds): number {
  return funds.grantedNanoUsd - credits.spentNanoUsd - credits.heldNanoUsd;
}

/**
 * How a request would be paid for; takes nothing.
 *
 * @param bounds null for a request that is not prepaid.
 * @returns an error when the balance does not buy one token for each choice, or cannot be told.
 */
export function findFunding(
  credits: Credits,
  funds: Funds,
  bounds: TokenBounds | null,
  rates: Rates,
): Result<Funding, GatewayError> {
  if (bounds === null) return ok(FREE);
  if (!credits.isWhole) return err({ kind: 'limiter_unavailable' });
  const wanted = toHoldNanoUsd(bounds, rates);
  if (wanted === 0) return ok(FREE);
  const balance = readBalance(credits, funds);
  const isTight = balance < TIGHT_HOLDS * wanted;
  if (wanted <= balance) return ok({ heldNanoUsd: wanted, outputLimit: null, isTight });
  const outputLimit = toAffordableOutput(balance, bounds, rates);
  if (outputLimit === null) return err({ kind: funds.isCurrent ? 'insufficient_quota' : 'limiter_unavailable' });
  return ok({ heldNanoUsd: toHoldNanoUsd({ ...bounds, outputTokensMax: outputLimit }, rates), outputLimit, isTight });
}

/** Begins to count anew what was spent: first the receipts that only this ledger has, in nano-USD. */
export function beginRebuild(credits: Credits, ownNanoUsd: number): void {
  credits.spentNanoUsd = ownNanoUsd;
}

/** Adds what all other receipts cost, in nano-USD. What was closed in the meantime is counted already. */
export function endRebuild(credits: Credits, recordedNanoUsd: number): void {
  credits.spentNanoUsd += recordedNanoUsd;
  credits.isWhole = true;
}
