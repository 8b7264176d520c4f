// What the bench and its load generator tell each other. Schemas and their types only.

import * as z from 'zod';

export const loadOrderSchema = z.object({
  call: z.object({
    url: z.string(),
    headers: z.record(z.string(), z.string()),
    body: z.string(),
    events: z.number(),
  }),
  /** How many at a time. */
  streams: z.number(),
  /** How long new ones are begun; each place has at least one. */
  forMs: z.number(),
  /** Over how long the first ones are spread. */
  spreadMs: z.number(),
});
export type LoadOrder = z.infer<typeof loadOrderSchema>;

export const loadResultSchema = z.object({
  wallMs: z.number(),
  /** Request sent until the first byte of the body, of each whole stream. */
  ttftMs: z.array(z.number()),
  /** What was wrong with the others. */
  faults: z.array(z.string()),
});
export type LoadResult = z.infer<typeof loadResultSchema>;

export const enginePortSchema = z.object({ port: z.number() });
