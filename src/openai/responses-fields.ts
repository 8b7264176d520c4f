// The fields of a Responses request as zod schemas, and those that nothing here serves (SPEC §8). Loose: members that are
// not named here are not looked at.

import * as z from 'zod';
import { isObject } from '../core/json-read.ts';

const name = z.string().min(1);
const parameters = z.looseObject({});

/** A tool of the client's own; every other type is a hosted one. */
export const functionToolSchema = z.looseObject({
  type: z.literal('function'),
  name,
  description: z.string().nullish(),
  parameters,
  strict: z.boolean().nullish(),
});

/** How the answer is to be written. */
export const formatSchemas = {
  text: z.looseObject({ type: z.literal('text') }),
  json_object: z.looseObject({ type: z.literal('json_object') }),
  json_schema: z.looseObject({
    type: z.literal('json_schema'),
    name,
    description: z.string().nullish(),
    schema: parameters,
    strict: z.boolean().nullish(),
  }),
} as const;

/** The body, its input items, tools and format not yet looked into. */
export const responsesSchema = z.looseObject({
  input: z.union([z.string().min(1), z.array(z.looseObject({})).min(1)]),
  instructions: z.string().optional(),
  max_output_tokens: z.int().min(1).optional(),
  stream: z.boolean().optional(),
  store: z.boolean().optional(),
  background: z.boolean().optional(),
  temperature: z.number().min(0).max(2).optional(),
  top_p: z.number().gt(0).max(1).optional(),
  tools: z.array(z.looseObject({ type: z.string() })).optional(),
  tool_choice: z.union([z.enum(['none', 'auto', 'required']), z.looseObject({ type: z.string() })]).optional(),
  parallel_tool_calls: z.boolean().optional(),
  text: z
    .looseObject({
      format: z.looseObject({ type: z.string() }).nullish(),
      verbosity: z.string().nullish(),
    })
    .optional(),
  reasoning: z.looseObject({ effort: z.string().nullish() }).optional(),
  truncation: z.enum(['disabled', 'auto']).optional(),
  metadata: z.record(z.string(), z.string()).optional(),
  user: z.string().optional(),
  safety_identifier: z.string().optional(),
  prompt_cache_key: z.string().optional(),
  service_tier: z.string().optional(),
  top_logprobs: z.int().min(0).max(20).optional(),
  stream_options: z.looseObject({ include_obfuscation: z.boolean().nullish() }).optional(),
});

/** A Responses request as far as the gateway reads it; what asks for nothing is absent. */
export type ResponsesFields = z.infer<typeof responsesSchema>;

/** null, [] and {} are absent. */
export function isAbsent(value: unknown): boolean {
  if (Array.isArray(value)) return value.length === 0;
  return value === null || (isObject(value) && Object.keys(value).length === 0);
}

/** Fields that are known and served; what is neither here nor below is an unknown field. */
export const RESPONSES_FIELDS: ReadonlySet<string> = new Set([...Object.keys(responsesSchema.shape), 'model']);

/**
 * Fields that nothing here serves, and whether `responses_lenient` drops them. Those it does not drop would change what the
 * client believes to be kept or said.
 */
export const UNSERVED_FIELDS: ReadonlyMap<string, 'refused' | 'droppable'> = new Map([
  ['previous_response_id', 'refused'],
  ['conversation', 'refused'],
  ['context_management', 'refused'],
  ['prompt', 'refused'],
  ['max_tool_calls', 'refused'],
  ['include', 'droppable'],
  ['client_metadata', 'droppable'],
  ['prompt_cache_retention', 'droppable'],
  // Chat's names for what Responses names otherwise: the chat body that is made of this one has its own.
  ['messages', 'refused'],
  ['n', 'refused'],
  ['max_tokens', 'refused'],
  ['max_completion_tokens', 'refused'],
  ['response_format', 'refused'],
  ['reasoning_effort', 'refused'],
  ['functions', 'refused'],
  ['function_call', 'refused'],
  ['logprobs', 'refused'],
  ['logit_bias', 'refused'],
]);
