// The fields of a chat completion request as zod schemas (SPEC §4). Loose: fields that are not named here stay in the
// text and are not looked at.

import * as z from 'zod';

const integerFromOne = z.int().min(1);
const toolCallSchema = z.looseObject({
  id: z.string(),
  type: z.literal('function'),
  function: z.looseObject({ name: z.string(), arguments: z.string() }),
});
const partSchema = z.looseObject({ type: z.string(), text: z.string().optional() });
const messageSchema = z.looseObject({
  role: z.enum(['system', 'developer', 'user', 'assistant', 'tool']),
  content: z.union([z.string(), z.array(partSchema)]).nullish(),
  name: z.string().nullish(),
  tool_calls: z.array(toolCallSchema).nullish(),
  tool_call_id: z.string().nullish(),
  reasoning: z.string().nullish(),
  reasoning_content: z.string().nullish(),
});
/** A message as far as the gateway reads it. */
export type ChatMessage = z.infer<typeof messageSchema>;

/** A whole number of any size: beyond the range of a double it parses to Infinity, and goes up as it was spelled. */
function isWholeNumber(value: unknown): boolean {
  return typeof value === 'number' && (Number.isInteger(value) || Math.abs(value) === Infinity);
}

/** Fields that chat and text completions share; every preset lists them, and so checks. */
export const commonShape = {
  stream: z.boolean().nullish(),
  stream_options: z.looseObject({ include_usage: z.boolean().nullish() }).nullish(),
  max_tokens: integerFromOne.nullish(),
  max_completion_tokens: integerFromOne.nullish(),
  temperature: z.number().min(0).max(2).nullish(),
  top_p: z.number().gt(0).max(1).nullish(),
  n: integerFromOne.nullish(),
  stop: z.union([z.string(), z.array(z.string())]).nullish(),
  presence_penalty: z.number().min(-2).max(2).nullish(),
  frequency_penalty: z.number().min(-2).max(2).nullish(),
  seed: z.custom<number>(isWholeNumber).nullish(),
  user: z.string().nullish(),
};

const listedShape = {
  messages: z.array(messageSchema).min(1),
  ...commonShape,
  chat_template_kwargs: z.looseObject({}).nullish(),
};

/** Fields that are checked unless the policy checks listed ones only. */
const furtherShape = {
  logprobs: z.boolean().nullish(),
  top_logprobs: z.int().min(0).max(20).nullish(),
  logit_bias: z.record(z.string(), z.number()).nullish(),
  tools: z
    .array(
      z.looseObject({
        type: z.literal('function'),
        function: z.looseObject({
          name: z.string(),
          description: z.string().nullish(),
          parameters: z.looseObject({}).nullish(),
          strict: z.boolean().nullish(),
        }),
      }),
    )
    .nullish(),
  tool_choice: z
    .union([
      z.enum(['none', 'auto', 'required']),
      z.looseObject({ type: z.literal('function'), function: z.looseObject({ name: z.string() }) }),
    ])
    .nullish(),
  parallel_tool_calls: z.boolean().nullish(),
  response_format: z
    .looseObject({
      type: z.enum(['text', 'json_object', 'json_schema']),
      json_schema: z
        .looseObject({ name: z.string(), schema: z.looseObject({}).nullish(), strict: z.boolean().nullish() })
        .nullish(),
    })
    .nullish(),
};

/** What is checked under `checked_fields: listed`. */
export const listedChatSchema = z.looseObject(listedShape);
/** What is checked otherwise. */
export const wholeChatSchema = z.looseObject({ ...listedShape, ...furtherShape });

/** A chat request as far as the gateway reads it; under `checked_fields: listed` the further fields are absent. */
export type ChatFields = z.infer<typeof wholeChatSchema>;

/** The names of the fields that `checked_fields: listed` leaves unread. */
export const FURTHER_CHAT_FIELDS: readonly string[] = Object.keys(furtherShape);

/** Every field of a chat request that the gateway knows; what is not here is an unknown field. */
export const CHAT_FIELDS: ReadonlySet<string> = new Set([
  ...Object.keys(listedShape),
  ...FURTHER_CHAT_FIELDS,
  'model',
  'reasoning',
  'reasoning_effort',
]);
