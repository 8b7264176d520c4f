// What leaves /v1/responses, as OpenAI publishes it and strictly: a member that is not listed is a defect. Beyond OpenAI's
// there are only Open Responses' own members and SPEC's `estimated`; narrower than both where §8 is: ids and numbers of the
// gateway's own, one terminal event, texts that add up.

import * as z from 'zod';

const countSchema = z.int().nonnegative();
const statusSchema = z.enum(['in_progress', 'completed', 'incomplete']);
const noneSchema = z.array(z.never());

const outputTextSchema = z.strictObject({
  type: z.literal('output_text'),
  text: z.string(),
  annotations: noneSchema,
  logprobs: noneSchema,
});
const refusalSchema = z.strictObject({ type: z.literal('refusal'), refusal: z.string() });
const reasoningTextSchema = z.strictObject({ type: z.literal('reasoning_text'), text: z.string() });
const partSchema = z.discriminatedUnion('type', [outputTextSchema, refusalSchema, reasoningTextSchema]);

const itemSchema = z.discriminatedUnion('type', [
  z.strictObject({
    id: z.string().regex(/^msg_\w+$/),
    type: z.literal('message'),
    status: statusSchema,
    role: z.literal('assistant'),
    content: z.array(z.discriminatedUnion('type', [outputTextSchema, refusalSchema])),
  }),
  z.strictObject({
    id: z.string().regex(/^rs_\w+$/),
    type: z.literal('reasoning'),
    status: statusSchema,
    summary: noneSchema,
    content: z.array(reasoningTextSchema),
  }),
  z.strictObject({
    id: z.string().regex(/^fc_\w+$/),
    type: z.literal('function_call'),
    status: statusSchema,
    call_id: z.string().min(1),
    name: z.string(),
    arguments: z.string(),
  }),
]);

const usageSchema = z
  .strictObject({
    input_tokens: countSchema,
    input_tokens_details: z.strictObject({ cached_tokens: countSchema, cache_write_tokens: countSchema.optional() }),
    output_tokens: countSchema,
    output_tokens_details: z.strictObject({ reasoning_tokens: countSchema }),
    total_tokens: countSchema,
    estimated: z.literal(true).optional(),
  })
  .refine((usage) => usage.total_tokens === usage.input_tokens + usage.output_tokens, 'total is the sum')
  .refine((usage) => usage.output_tokens_details.reasoning_tokens <= usage.output_tokens, 'reasoning')
  .refine(({ input_tokens, input_tokens_details: details }) => {
    return details.cached_tokens + (details.cache_write_tokens ?? 0) <= input_tokens;
  }, 'cached and written tokens are part of the input');

const formatSchema = z.discriminatedUnion('type', [
  z.strictObject({ type: z.literal('text') }),
  z.strictObject({ type: z.literal('json_object') }),
  z.strictObject({
    type: z.literal('json_schema'),
    name: z.string(),
    description: z.string().nullish(),
    schema: z.looseObject({}),
    strict: z.boolean().nullish(),
  }),
]);

/** The response object, streamed or not. */
export const responseSchema = z.strictObject({
  id: z.string().regex(/^resp_\w+$/),
  object: z.literal('response'),
  created_at: z.int().positive(),
  completed_at: z.int().positive().nullable(),
  status: z.enum(['in_progress', 'completed', 'incomplete', 'failed']),
  error: z.strictObject({ code: z.enum(['server_error', 'invalid_prompt']), message: z.string().min(1) }).nullable(),
  incomplete_details: z.strictObject({ reason: z.enum(['max_output_tokens', 'content_filter']) }).nullable(),
  instructions: z.string().nullable(),
  model: z.string().min(1),
  output: z.array(itemSchema),
  background: z.literal(false),
  frequency_penalty: z.number(),
  max_output_tokens: z.int().positive().nullable(),
  max_tool_calls: z.null(),
  metadata: z.record(z.string(), z.string()),
  parallel_tool_calls: z.boolean(),
  presence_penalty: z.number(),
  previous_response_id: z.null(),
  prompt_cache_key: z.string().nullable(),
  reasoning: z.strictObject({ effort: z.enum(['none', 'low', 'medium', 'high']).nullable(), summary: z.null() }),
  safety_identifier: z.string().nullable(),
  service_tier: z.literal('default'),
  store: z.literal(false),
  temperature: z.number(),
  text: z.strictObject({ format: formatSchema }),
  tool_choice: z.union([
    z.enum(['none', 'auto', 'required']),
    z.strictObject({ type: z.literal('function'), name: z.string() }),
  ]),
  tools: z.array(
    z.strictObject({
      type: z.literal('function'),
      name: z.string(),
      description: z.string().nullable(),
      parameters: z.looseObject({}),
      strict: z.boolean(),
    }),
  ),
  top_logprobs: z.literal(0),
  top_p: z.number(),
  truncation: z.literal('disabled'),
  usage: usageSchema.nullable(),
  user: z.string().nullable(),
});
export type PublishedResponse = z.infer<typeof responseSchema>;
export type PublishedItem = z.infer<typeof itemSchema>;

const numbered = { sequence_number: countSchema };
const inItem = { ...numbered, item_id: z.string(), output_index: countSchema };
const inPart = { ...inItem, content_index: countSchema };
const text = z.string();
const logprobs = noneSchema;

const responseEvent = <const T extends string>(type: T) =>
  z.strictObject({ ...numbered, type: z.literal(type), response: responseSchema });
const itemEvent = <const T extends string>(type: T) =>
  z.strictObject({ ...numbered, type: z.literal(type), output_index: countSchema, item: itemSchema });
const partEvent = <const T extends string>(type: T) =>
  z.strictObject({ ...inPart, type: z.literal(type), part: partSchema });
const deltaEvent = <const T extends string>(type: T) =>
  z.strictObject({ ...inPart, type: z.literal(type), delta: text.min(1) });

/** Every event there may be. */
export const eventSchema = z.discriminatedUnion('type', [
  responseEvent('response.created'),
  responseEvent('response.in_progress'),
  responseEvent('response.completed'),
  responseEvent('response.incomplete'),
  responseEvent('response.failed'),
  itemEvent('response.output_item.added'),
  itemEvent('response.output_item.done'),
  partEvent('response.content_part.added'),
  partEvent('response.content_part.done'),
  z.strictObject({ ...deltaEvent('response.output_text.delta').shape, logprobs }),
  z.strictObject({ ...inPart, type: z.literal('response.output_text.done'), text, logprobs }),
  deltaEvent('response.refusal.delta'),
  z.strictObject({ ...inPart, type: z.literal('response.refusal.done'), refusal: text }),
  deltaEvent('response.reasoning_text.delta'),
  z.strictObject({ ...inPart, type: z.literal('response.reasoning_text.done'), text }),
  z.strictObject({ ...inItem, type: z.literal('response.function_call_arguments.delta'), delta: text.min(1) }),
  z.strictObject({
    ...inItem,
    type: z.literal('response.function_call_arguments.done'),
    name: text,
    arguments: text,
  }),
]);
export type PublishedEvent = z.infer<typeof eventSchema>;
