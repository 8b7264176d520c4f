// The account of a workspace as GET /v1/credits shows it: credits, limits and what is left of each (SPEC §9). Pure.

import { type Billing, type CallerLimits } from './api-key.ts';
import { type Funds, readBalance } from './ledger-credits.ts';
import { type ConcurrencyStatus, readConcurrency, readRates, toScopes } from './ledger-scopes.ts';
import { type LedgerState } from './ledger-types.ts';
import { toUsd } from './money.ts';
import { type RateSnapshot, type RateStatus } from './retry-hints.ts';

/** Whose account is asked for, with the limits as the caller's records have them. */
export type AccountQuery = CallerLimits & { readonly workspace: string; readonly key: string };

/** How an account stands. */
export type Account = {
  readonly balanceNanoUsd: number;
  readonly heldNanoUsd: number;
  readonly spentNanoUsd: number;
  readonly rates: RateSnapshot;
  readonly concurrency: ConcurrencyStatus;
};

/** The account at the ledger's time. Of several limits of a kind it shows the one with the least left. */
export function readAccount(state: LedgerState, query: AccountQuery, funds: Funds): Account {
  const scopes = toScopes(query.key, query);
  const { heldNanoUsd, spentNanoUsd } = state.credits;
  return {
    balanceNanoUsd: readBalance(state.credits, funds),
    heldNanoUsd,
    spentNanoUsd,
    rates: readRates(state, scopes),
    concurrency: readConcurrency(state, scopes),
  };
}

/** The account as the API shows it; null where nothing limits. */
export function toCreditsObject(account: Account, billing: Billing): Record<string, unknown> {
  const { rates, concurrency } = account;
  return {
    object: 'credits',
    billing,
    balance_usd: toUsd(account.balanceNanoUsd),
    held_usd: toUsd(account.heldNanoUsd),
    spent_usd: toUsd(account.spentNanoUsd),
    limits: {
      requests: toLimitObject(rates.requests),
      tokens: toLimitObject(rates.tokens),
      concurrency: { limit: concurrency.limit, in_use: concurrency.inUse },
    },
  };
}

function toLimitObject(status: RateStatus | null): Record<string, unknown> {
  return { limit: status?.limit ?? null, remaining: status?.remaining ?? null, reset_ms: status?.resetMs ?? null };
}
