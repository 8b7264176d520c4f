// A model's entry in the catalog document as the operator writes it (SPEC §2): schemas and their types.

import * as z from 'zod';
import { parseRate } from './money.ts';
import { policySchema } from './policy.ts';

/** The inference paths a model may list. */
export const INFERENCE_ENDPOINTS = ['/v1/chat/completions', '/v1/completions', '/v1/responses'] as const;
export type InferencePath = (typeof INFERENCE_ENDPOINTS)[number];

/** The engines whose quirks the gateway knows; `openai` assumes nothing. */
export const ENGINES = ['vllm', 'sglang', 'llamacpp', 'ollama', 'tgi', 'openai'] as const;
export type Engine = (typeof ENGINES)[number];

const priceSchema = z.string().refine((text) => parseRate(text) !== null, 'expected a decimal with at most 6 decimals');
const backendSchema = z.object({
  binding: z.string().min(1),
  upstream_model: z.string().min(1),
  engine: z.enum(ENGINES),
  weight: z.number().positive().default(1),
  developer_role: z.enum(['system', 'pass']).default('system'),
});
const backendsSchema = z.tuple([backendSchema], backendSchema);
/** One backend of a model. */
export type Backend = Readonly<z.infer<typeof backendSchema>>;
/** A model's backends: at least one. */
export type Backends = readonly [Backend, ...Backend[]];

const capabilitiesSchema = z.object({
  tools: z.boolean().default(false),
  tool_choice_required: z.boolean().default(false),
  parallel_tool_calls: z.boolean().default(false),
  strict_tools: z.boolean().default(false),
  response_formats: z.array(z.enum(['text', 'json_object', 'json_schema'])).default(['text']),
  logprobs: z.boolean().default(false),
  images: z.boolean().default(false),
  echo: z.boolean().default(false),
  suffix: z.boolean().default(false),
});
/** What a model can do; absent is false. */
export type Capabilities = Readonly<z.infer<typeof capabilitiesSchema>>;

/** How a model's reasoning is controlled. */
export const reasoningSchema = z.object({
  control: z.enum(['chat_template_kwargs', 'reasoning_effort', 'none']),
  kwarg: z.string().min(1).default('enable_thinking'),
  levels: z.array(z.enum(['none', 'low', 'medium', 'high'])).default(['none', 'low', 'medium', 'high']),
});

/** One model of the catalog. */
export const modelSchema = z.object({
  owned_by: z.string().default('turnpike'),
  created: z.int().min(0).default(0),
  visibility: z.union([z.literal('public'), z.array(z.string())]).default('public'),
  aliases: z.array(z.string().min(1)).default([]),
  preset: z.enum(['boardwalk', 'springboards', 'boole']).optional(),
  policy: policySchema.default({}),
  endpoints: z.array(z.enum(INFERENCE_ENDPOINTS)).default([...INFERENCE_ENDPOINTS]),
  context_length: z.int().positive().optional(),
  max_output_tokens: z.int().positive().optional(),
  capabilities: capabilitiesSchema.prefault({}),
  reasoning: reasoningSchema.optional(),
  lane: z.enum(['exact', 'native']).default('exact'),
  responses: z.enum(['translate', 'native']).default('translate'),
  responses_lenient: z.boolean().default(false),
  responses_done: z.boolean().default(false),
  running_counts: z.boolean().default(true),
  upstream_stream: z.boolean().default(false),
  event_bytes_max: z
    .int()
    .min(1024)
    .max(16 * 1024 * 1024)
    .default(4 * 1024 * 1024),
  affinity: z.enum(['none', 'prefix']).default('none'),
  pricing: z
    .object({
      input: priceSchema,
      cached_input: priceSchema.optional(),
      cache_write: priceSchema.optional(),
      output: priceSchema,
    })
    .optional(),
  backends: backendsSchema,
  revisions: z.record(z.string(), z.object({ backends: backendsSchema })).default({}),
});
