// What leaves chat and text completions, as OpenAI publishes it and strictly: a member that is not listed is a defect.
// Beyond OpenAI's there are only SPEC's own: reasoning under its two names, `estimated`, `created_cache_tokens`. Narrower
// than OpenAI's where §3 and §7 are: no null where a member may be absent, closed sets, counts that add up.

import * as z from 'zod';

const countSchema = z.int().nonnegative();
const textSchema = z.string().min(1);

const usageSchema = z
  .strictObject({
    prompt_tokens: countSchema,
    completion_tokens: countSchema,
    total_tokens: countSchema,
    prompt_tokens_details: z
      .strictObject({ cached_tokens: countSchema, created_cache_tokens: countSchema.optional() })
      .optional(),
    completion_tokens_details: z.strictObject({ reasoning_tokens: countSchema }).optional(),
    estimated: z.literal(true).optional(),
  })
  .refine((usage) => usage.total_tokens === usage.prompt_tokens + usage.completion_tokens, 'total is the sum')
  .refine((usage) => (usage.completion_tokens_details?.reasoning_tokens ?? 0) <= usage.completion_tokens, 'reasoning')
  .refine(({ prompt_tokens, prompt_tokens_details: details }) => {
    return (details?.cached_tokens ?? 0) + (details?.created_cache_tokens ?? 0) <= prompt_tokens;
  }, 'cached and written tokens are part of the prompt');

const topLogprobSchema = z.strictObject({
  token: z.string(),
  logprob: z.number(),
  bytes: z.array(z.int().min(0).max(255)).nullable(),
});
const tokensSchema = z.array(z.strictObject({ ...topLogprobSchema.shape, top_logprobs: z.array(topLogprobSchema) }));
const chatLogprobsSchema = z.strictObject({ content: tokensSchema.nullable(), refusal: tokensSchema.nullable() });

/** A prompt's first token has no probability: OpenAI sends null for it, although its types do not say so. */
const textLogprobsSchema = z.strictObject({
  tokens: z.array(z.string()),
  token_logprobs: z.array(z.number().nullable()),
  top_logprobs: z.array(z.record(z.string(), z.number()).nullable()).optional(),
  text_offset: z.array(countSchema).optional(),
});

const chatFinishSchema = z.enum(['stop', 'length', 'tool_calls', 'content_filter']);
const textFinishSchema = z.enum(['stop', 'length', 'content_filter']);

const deltaSchema = z.strictObject({
  role: z.literal('assistant').optional(),
  content: z.string().optional(),
  refusal: z.string().optional(),
  reasoning: textSchema.optional(),
  reasoning_content: textSchema.optional(),
  tool_calls: z
    .array(
      z.strictObject({
        index: countSchema,
        id: textSchema.optional(),
        type: z.literal('function').optional(),
        function: z.strictObject({ name: textSchema.optional(), arguments: z.string() }),
      }),
    )
    .min(1)
    .optional(),
});

const messageSchema = z.strictObject({
  role: z.literal('assistant'),
  content: z.string().nullable(),
  refusal: z.string().nullable(),
  reasoning: textSchema.optional(),
  reasoning_content: textSchema.optional(),
  tool_calls: z
    .array(
      z.strictObject({
        id: textSchema,
        type: z.literal('function'),
        function: z.strictObject({ name: z.string(), arguments: z.string() }),
      }),
    )
    .min(1)
    .optional(),
});

const HEAD = {
  id: textSchema,
  created: z.int().positive(),
  model: textSchema,
  system_fingerprint: textSchema.optional(),
};

/** CreateChatCompletionStreamResponse. */
const chatChunkSchema = z.strictObject({
  ...HEAD,
  object: z.literal('chat.completion.chunk'),
  choices: z.array(
    z.strictObject({
      index: countSchema,
      delta: deltaSchema,
      logprobs: chatLogprobsSchema.optional(),
      finish_reason: chatFinishSchema.nullable(),
    }),
  ),
  usage: usageSchema.optional(),
});

const textChoiceSchema = z.strictObject({
  index: countSchema,
  text: z.string(),
  logprobs: textLogprobsSchema.nullable(),
  finish_reason: textFinishSchema.nullable(),
});

/** CreateCompletionResponse as a stream's chunk: OpenAI's own carry null until the reason comes. */
const textChunkSchema = z.strictObject({
  ...HEAD,
  object: z.literal('text_completion'),
  choices: z.array(textChoiceSchema),
  usage: usageSchema.optional(),
});

/** CreateChatCompletionResponse. */
export const chatAnswerSchema = z.strictObject({
  ...HEAD,
  object: z.literal('chat.completion'),
  choices: z
    .array(
      z.strictObject({
        index: countSchema,
        message: messageSchema,
        logprobs: chatLogprobsSchema.nullable(),
        finish_reason: chatFinishSchema,
      }),
    )
    .min(1),
  usage: usageSchema,
});

/** CreateCompletionResponse, not streamed. */
export const textAnswerSchema = z.strictObject({
  ...HEAD,
  object: z.literal('text_completion'),
  choices: z.array(z.strictObject({ ...textChoiceSchema.shape, finish_reason: textFinishSchema })).min(1),
  usage: usageSchema,
});

/** SPEC §3's envelope, on every surface and inside a stream. */
export const errorEnvelopeSchema = z.strictObject({
  error: z.strictObject({
    message: textSchema,
    type: z.enum([
      'invalid_request_error',
      'requests',
      'tokens',
      'insufficient_quota',
      'server_error',
      'service_unavailable_error',
    ]),
    param: textSchema.nullable(),
    code: textSchema.nullable(),
  }),
});

export type PublishedChunk = z.infer<typeof chatChunkSchema> | z.infer<typeof textChunkSchema>;
export type PublishedError = z.infer<typeof errorEnvelopeSchema>['error'];

/** A stream that held to the schema. */
export type PublishedStream = {
  readonly chunks: readonly PublishedChunk[];
  readonly usage: z.infer<typeof usageSchema> | null;
  readonly error: PublishedError | null;
};

/**
 * Reads a client's whole stream; throws at the first thing that SPEC §7 or OpenAI's schema does not allow: framing, a
 * chunk's members, an identity that changes, a choice that ends twice, usage or an error anywhere but at the end.
 */
export function parsePublishedStream(text: string, endpoint: 'chat' | 'text'): PublishedStream {
  const events = text.split('\n\n');
  if (events.pop() !== '' || events.pop() !== 'data: [DONE]') throw new Error(`no [DONE] at the end: ${text}`);
  const lines = events.filter((event) => !/^(: [^\n]*\n?)+$/.test(event));
  const last = lines.at(-1)?.startsWith('data: {"error"') === true ? lines.pop() : undefined;
  const schema: z.ZodType<PublishedChunk> = endpoint === 'chat' ? chatChunkSchema : textChunkSchema;
  const chunks = lines.map((line) => schema.parse(readLine(line)));
  checkOrder(chunks);
  return {
    chunks,
    usage: chunks.at(-1)?.usage ?? null,
    error: last === undefined ? null : errorEnvelopeSchema.parse(readLine(last)).error,
  };
}

function readLine(event: string): unknown {
  if (!event.startsWith('data: {') || event.includes('\n')) throw new Error(`not one line of JSON: ${event}`);
  return JSON.parse(event.slice('data: '.length));
}

/** What a schema of single chunks cannot say. */
function checkOrder(chunks: readonly PublishedChunk[]): void {
  const ended = new Set<number>();
  const begun = new Set<number>();
  const heads = new Set(chunks.map(({ choices: _choices, usage: _usage, ...head }) => JSON.stringify(head)));
  if (heads.size > 1) throw new Error(`an identity that changes: ${[...heads].join(' ')}`);
  for (const [at, { choices, usage }] of chunks.entries()) {
    if ((usage === undefined) === (choices.length === 0)) throw new Error('usage alone has no choices');
    if (usage !== undefined && at < chunks.length - 1) throw new Error('usage before the end');
    for (const choice of choices) {
      if (ended.has(choice.index)) throw new Error(`choice ${choice.index} goes on after its end`);
      const first = !begun.has(choice.index);
      if ('delta' in choice && (choice.delta.role !== undefined) !== first)
        throw new Error('role first and only there');
      begun.add(choice.index);
      if (choice.finish_reason !== null) ended.add(choice.index);
    }
  }
}
