// The receipt: one record per admitted request, in the words of SPEC §9. Field names are those of the API and of D1.

import { type Rates, toCostNanoUsd, toUsd } from './money.ts';
import { NO_USAGE, type Usage, type UsageSource } from './usage.ts';

/** How a request stands or ended; there is no other status. */
export const RECEIPT_STATUSES = ['in_progress', 'completed', 'incomplete', 'interrupted', 'failed', 'lost'] as const;
export type ReceiptStatus = (typeof RECEIPT_STATUSES)[number];

/** What is known of a request when it is admitted; rates are frozen here. Times are ISO 8601 in UTC. */
export type ReceiptDraft = {
  readonly id: string;
  readonly workspace: string;
  readonly key: string;
  readonly endpoint: string;
  readonly requested_model: string;
  readonly upstream_model: string;
  readonly revision: string | null;
  readonly stream: boolean;
  readonly rates: Rates;
  readonly price_version: string;
  readonly created_at: string;
  readonly client_request_id: string | null;
  readonly end_user: string | null;
};

/** What becomes known while a request runs and when it ends. */
export type ReceiptProgress = {
  readonly served_model: string | null;
  readonly upstream_model: string;
  readonly backend: string | null;
  readonly attempts: number;
  readonly status: ReceiptStatus;
  readonly http_status: number | null;
  readonly error_code: string | null;
  readonly finish_reason: string | null;
  readonly usage: Usage;
  readonly usage_source: UsageSource;
  readonly first_token_at: string | null;
  readonly ended_at: string | null;
  readonly completion_id: string | null;
};

/** A whole receipt. `cost_nano_usd` is always usage × rates, or 0 where nothing is billed. */
export type Receipt = ReceiptDraft & ReceiptProgress & { readonly cost_nano_usd: number };

/** A receipt as it stands when a request has been admitted and nothing has come back yet. */
export function buildOpenReceipt(draft: ReceiptDraft): Receipt {
  return buildReceipt(draft, {
    served_model: null,
    upstream_model: draft.upstream_model,
    backend: null,
    attempts: 0,
    status: 'in_progress',
    http_status: null,
    error_code: null,
    finish_reason: null,
    usage: NO_USAGE,
    usage_source: 'none',
    first_token_at: null,
    ended_at: null,
    completion_id: null,
  });
}

/** Joins draft and progress and sets the cost. A failed request costs nothing; its tokens are still recorded. */
export function buildReceipt(draft: ReceiptDraft, progress: ReceiptProgress): Receipt {
  return {
    ...draft,
    ...progress,
    served_model: cut(progress.served_model),
    completion_id: cut(progress.completion_id),
    client_request_id: cut(draft.client_request_id),
    end_user: cut(draft.end_user),
    cost_nano_usd: progress.status === 'failed' ? 0 : toCostNanoUsd(progress.usage, draft.rates),
  };
}

/** Stores take 2 MB a row and a statement of 200 receipts: texts that callers and engines choose are cut. */
const FOREIGN_TEXT_MAX = 256;

function cut(text: string | null): string | null {
  // A surrogate pair cut in two is no text that a store would give back.
  return text === null || text.length <= FOREIGN_TEXT_MAX ? text : text.slice(0, FOREIGN_TEXT_MAX).toWellFormed();
}

/** Closes a receipt whose lease ran out: billed at the last counts it was renewed with (SPEC §5). */
export function closeAsLost(receipt: Receipt, nowMs: number): Receipt {
  return buildReceipt(receipt, { ...receipt, status: 'lost', ended_at: new Date(nowMs).toISOString() });
}

/** The receipt as `GET /v1/receipts/{id}` shows it. */
export function toReceiptObject(receipt: Receipt): Record<string, unknown> {
  return {
    object: 'receipt',
    id: receipt.id,
    workspace: receipt.workspace,
    key: receipt.key,
    endpoint: receipt.endpoint,
    requested_model: receipt.requested_model,
    upstream_model: receipt.upstream_model,
    served_model: receipt.served_model,
    revision: receipt.revision,
    backend: receipt.backend,
    attempts: receipt.attempts,
    stream: receipt.stream,
    status: receipt.status,
    http_status: receipt.http_status,
    error_code: receipt.error_code,
    finish_reason: receipt.finish_reason,
    usage: receipt.usage,
    usage_source: receipt.usage_source,
    rates: receipt.rates,
    price_version: receipt.price_version,
    cost_usd: toUsd(receipt.cost_nano_usd),
    created_at: receipt.created_at,
    first_token_at: receipt.first_token_at,
    ended_at: receipt.ended_at,
    completion_id: receipt.completion_id,
    client_request_id: receipt.client_request_id,
    end_user: receipt.end_user,
  };
}
