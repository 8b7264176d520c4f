// Receipts as rows of D1: flattening, reading back, and the one statement that writes any number of them.

import * as z from 'zod';
import { type ClosedReceipt } from '../core/ledger-types.ts';
import { type Receipt, RECEIPT_STATUSES } from '../core/receipt.ts';

const usageColumns = [
  'input_tokens',
  'cached_input_tokens',
  'cache_write_tokens',
  'output_tokens',
  'reasoning_tokens',
] as const;

const plainColumns = [
  'workspace',
  'id',
  'key',
  'endpoint',
  'requested_model',
  'upstream_model',
  'served_model',
  'revision',
  'backend',
  'attempts',
  'stream',
  'status',
  'http_status',
  'error_code',
  'finish_reason',
  'usage_source',
  'price_version',
  'cost_nano_usd',
  'created_at',
  'first_token_at',
  'ended_at',
  'completion_id',
  'client_request_id',
  'end_user',
] as const satisfies readonly (keyof Receipt)[];

const COLUMNS = ['rev', ...plainColumns, ...usageColumns, 'rates'] as const;

/** Columns that an erasure empties: what callers wrote of their users, and what leads back to a caller's own records. */
export const ERASED_COLUMNS = ['completion_id', 'client_request_id', 'end_user'] as const;
/** What an erasure puts in the place of a key's id, which may be a person's name. */
export const ERASED_KEY = 'erased';

const rowSchema = z.object({
  rev: z.number(),
  workspace: z.string(),
  id: z.string(),
  key: z.string(),
  endpoint: z.string(),
  requested_model: z.string(),
  upstream_model: z.string(),
  served_model: z.string().nullable(),
  revision: z.string().nullable(),
  backend: z.string().nullable(),
  attempts: z.number(),
  stream: z.number().transform((flag) => flag !== 0),
  status: z.enum(RECEIPT_STATUSES),
  http_status: z.number().nullable(),
  error_code: z.string().nullable(),
  finish_reason: z.string().nullable(),
  input_tokens: z.number(),
  cached_input_tokens: z.number(),
  cache_write_tokens: z.number(),
  output_tokens: z.number(),
  reasoning_tokens: z.number(),
  usage_source: z.enum(['engine', 'engine_running', 'estimated', 'none']),
  rates: z.string().transform((text, context): z.infer<typeof ratesSchema> => {
    const rates = ratesSchema.safeParse(JSON.parse(text));
    if (rates.success) return rates.data;
    context.addIssue('rates are damaged');
    return z.NEVER;
  }),
  price_version: z.string(),
  cost_nano_usd: z.number(),
  created_at: z.string(),
  first_token_at: z.string().nullable(),
  ended_at: z.string().nullable(),
  completion_id: z.string().nullable(),
  client_request_id: z.string().nullable(),
  end_user: z.string().nullable(),
});
const ratesSchema = z.object({
  input: z.string(),
  cached_input: z.string(),
  cache_write: z.string(),
  output: z.string(),
});

/** A flat row: column → value, as JSON carries it to D1. */
export function toReceiptRow({ rev, receipt }: ClosedReceipt): Record<string, unknown> {
  const row: Record<string, unknown> = { rev, rates: JSON.stringify(receipt.rates) };
  for (const column of plainColumns) row[column] = receipt[column];
  for (const column of usageColumns) row[column] = receipt.usage[column];
  row['stream'] = receipt.stream ? 1 : 0;
  return row;
}

/**
 * A row read back.
 *
 * @throws z.ZodError when a column does not hold what was written: someone changed the table by hand.
 */
export function fromReceiptRow(row: unknown): ClosedReceipt {
  const { rev, input_tokens, cached_input_tokens, cache_write_tokens, output_tokens, reasoning_tokens, ...plain } =
    rowSchema.parse(row);
  const usage = { input_tokens, cached_input_tokens, cache_write_tokens, output_tokens, reasoning_tokens };
  return { rev, receipt: { ...plain, usage } };
}

/**
 * Writes a JSON array of rows, bound as `?1`. A row that is there already gives way only to a higher rev, so a flush
 * that was applied but reported as failed may be repeated. `WHERE true` keeps the upsert from being read as a join.
 */
export const UPSERT_RECEIPTS = `INSERT INTO receipts (${COLUMNS.join(', ')})
SELECT ${COLUMNS.map((column) => `value ->> '${column}'`).join(', ')} FROM json_each(?1) WHERE true
ON CONFLICT (workspace, id) DO UPDATE SET ${COLUMNS.filter((column) => column !== 'workspace' && column !== 'id')
  .map((column) => `${column} = excluded.${column}`)
  .join(', ')}
WHERE excluded.rev > receipts.rev`;
