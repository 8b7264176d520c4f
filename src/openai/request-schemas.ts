// The request bodies as JSON Schema, made from the schemas that check them, so that what is described is what is checked.
// Rules that hang on the model (capabilities, ceilings) are no part of a schema.

import * as z from 'zod';
import { wholeChatSchema } from './chat-fields.ts';
import { textSchema } from './text-request.ts';

const model = { type: 'string', description: 'An id of GET /v1/models, an alias, or id@revision.' };
const MORE: Readonly<Record<string, Readonly<Record<string, unknown>>>> = {
  '/v1/chat/completions': {
    model,
    reasoning_effort: { type: ['string', 'null'], description: 'none, low, medium or high.' },
    reasoning: { type: ['object', 'null'], properties: { effort: { type: ['string', 'null'] } } },
  },
  '/v1/completions': { model },
};
const SCHEMAS: Readonly<Record<string, z.ZodType>> = {
  '/v1/chat/completions': wholeChatSchema,
  '/v1/completions': textSchema,
};

/** The schema of an endpoint's request; one that says little for an endpoint that is not known here. */
export function readRequestSchema(path: string): Readonly<Record<string, unknown>> {
  const schema = SCHEMAS[path];
  if (schema === undefined) return { type: 'object', properties: { model }, required: ['model'] };
  // The document says which dialect holds. What JSON Schema cannot say (a whole number of any size) stays open.
  const { $schema: _, properties, required, ...rest } = z.toJSONSchema(schema, { unrepresentable: 'any', io: 'input' });
  return { ...rest, properties: { ...MORE[path], ...properties }, required: ['model', ...(required ?? [])] };
}
