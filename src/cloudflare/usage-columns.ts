// The columns of sums: which are summed, of `receipts` and of the tables of sums, and how a query's sums are read.

import * as z from 'zod';

/** The columns that are summed, of `receipts` and of the tables of sums. */
export const COUNTED_COLUMNS = [
  'input_tokens',
  'cached_input_tokens',
  'cache_write_tokens',
  'output_tokens',
  'reasoning_tokens',
  'cost_nano_usd',
] as const;

/** Sums leave D1 as text: it hands out numbers as doubles. */
const countSchema = z.string().transform((text) => BigInt(text));

/** The members of a row of sums. */
export const COUNTS_SHAPE = {
  requests: countSchema,
  input_tokens: countSchema,
  cached_input_tokens: countSchema,
  cache_write_tokens: countSchema,
  output_tokens: countSchema,
  reasoning_tokens: countSchema,
  cost_nano_usd: countSchema,
} as const;
