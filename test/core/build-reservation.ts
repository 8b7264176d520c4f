// Reservations for tests of the ledger: one request of one key, with what it has used so far.

import { type Limits, UNLIMITED } from '../../src/core/api-key.ts';
import { type Reservation } from '../../src/core/ledger-types.ts';
import { type CreditTerms } from '../../src/core/ledger-credits.ts';
import { buildReceipt, type ReceiptStatus } from '../../src/core/receipt.ts';
import { buildUsage } from '../../src/core/usage.ts';

export type ReservationOptions = {
  readonly id?: string;
  readonly workspace?: string;
  readonly key?: string;
  readonly model?: string;
  readonly limits?: Partial<Limits>;
  readonly keyLimits?: Partial<Limits> | null;
  readonly prompt?: number;
  readonly output?: number | null;
  readonly choices?: number;
  readonly leaseMs?: number;
  /** What a prepaid request may use at most, over all prompts and per choice. */
  readonly credit?: CreditTerms | null;
  readonly status?: ReceiptStatus;
  /** What was really used so far: input and output tokens. */
  readonly used?: readonly [input: number, output: number];
};

/** A reservation of 10 prompt and 20 output tokens without limits or credits, unless said otherwise; 1,000 nano-USD a token. */
export function buildReservation(options: ReservationOptions = {}): Reservation {
  const { id = 'req_1', key = 'k', model = 'm', used = [0, 0], status = 'in_progress' } = options;
  const { workspace = 'acme', keyLimits = null, credit = null } = options;
  const draft = {
    id,
    workspace,
    key,
    endpoint: '/v1/chat/completions',
    requested_model: model,
    upstream_model: model,
    revision: null,
    stream: true,
    rates: { input: '1', cached_input: '1', cache_write: '1', output: '1' },
    price_version: '0'.repeat(12),
    created_at: '2026-12-01T10:00:00.000Z',
    client_request_id: null,
    end_user: null,
  };
  return {
    receipt: buildReceipt(draft, {
      served_model: null,
      upstream_model: model,
      backend: null,
      attempts: 1,
      status,
      http_status: 200,
      error_code: null,
      finish_reason: null,
      usage: buildUsage({ input: used[0], output: used[1] }),
      usage_source: 'engine',
      first_token_at: null,
      ended_at: null,
      completion_id: null,
    }),
    workspaceLimits: { ...UNLIMITED, ...options.limits },
    keyLimits: keyLimits === null ? null : { ...UNLIMITED, ...keyLimits },
    promptTokens: options.prompt ?? 10,
    outputTokens: options.output === undefined ? 20 : options.output,
    choices: options.choices ?? 1,
    leaseMs: options.leaseMs ?? 60_000,
    ...(credit === null ? {} : { credit }),
  };
}
