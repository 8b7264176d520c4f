// The shapes of answers as JSON Schema, for GET /openapi.json. Requests are not here: their schemas are made from those
// that check them. test/process/documented-answers.test.ts holds real answers to these.

/** A JSON Schema, as far as anybody here looks into one. */
export type JsonSchema = { readonly [name: string]: unknown };

const text = { type: 'string' };
const count = { type: 'integer', minimum: 0 };
const flag = { type: 'boolean' };
const usd = { type: 'string', pattern: '^-?\\d+\\.\\d{9}$', description: 'USD with nine decimals' };
const time = { type: 'string', format: 'date-time' };
const constant = (value: string): JsonSchema => ({ type: 'string', const: value });
const orNull = (schema: { readonly type: string }): JsonSchema => ({ ...schema, type: [schema.type, 'null'] });
const listOf = (items: JsonSchema): JsonSchema => ({ type: 'array', items });
const ref = (name: string): JsonSchema => ({ $ref: `#/components/schemas/${name}` });

/** An object all of whose members are always there. */
function whole(properties: Readonly<Record<string, JsonSchema>>, more: JsonSchema = {}): JsonSchema {
  return { type: 'object', properties, required: Object.keys(properties), ...more };
}

const finishReason = { type: ['string', 'null'], enum: ['stop', 'length', 'tool_calls', 'content_filter', null] };
const tokenUsage = whole(
  { prompt_tokens: count, completion_tokens: count, total_tokens: count },
  { description: 'With `estimated: true` where the engine counts nothing and the gateway did.' },
);
const completion = { id: text, created: { type: 'integer', description: 'Unix seconds' }, model: text };
const usageCounts = {
  input_tokens: count,
  cached_input_tokens: count,
  cache_write_tokens: count,
  output_tokens: count,
  reasoning_tokens: count,
};
const message = {
  type: 'object',
  properties: { role: text, content: orNull(text), refusal: orNull(text), tool_calls: listOf({ type: 'object' }) },
};

/** The components of the document. */
export const API_SCHEMAS: Readonly<Record<string, JsonSchema>> = {
  Error: whole({ error: whole({ message: text, type: text, param: orNull(text), code: orNull(text) }) }),
  ChatCompletion: whole({
    ...completion,
    object: constant('chat.completion'),
    choices: listOf(whole({ index: count, message, finish_reason: finishReason })),
    usage: tokenUsage,
  }),
  ChatCompletionChunk: whole({
    ...completion,
    object: constant('chat.completion.chunk'),
    choices: listOf(whole({ index: count, delta: { type: 'object' }, finish_reason: finishReason })),
  }),
  TextCompletion: whole({
    ...completion,
    object: constant('text_completion'),
    choices: listOf(whole({ index: count, text, finish_reason: finishReason })),
  }),
  Response: whole({
    id: text,
    object: constant('response'),
    status: text,
    model: text,
    output: listOf({ type: 'object' }),
  }),
  Model: whole({
    id: text,
    object: constant('model'),
    created: { type: 'integer' },
    owned_by: text,
    aliases: listOf(text),
    context_length: orNull(count),
    max_output_tokens: orNull(count),
    supported_endpoints: listOf(text),
    tool_calling: whole({ supported: flag, required: flag, named: flag, parallel: flag, strict: flag }),
    response_formats: { type: 'object', additionalProperties: listOf(text) },
    thinking_toggle: flag,
    reasoning_levels: listOf(text),
    images: flag,
    max_n: count,
    revisions: listOf(text),
    pricing: {
      type: ['object', 'null'],
      additionalProperties: text,
      description: 'USD per million tokens, as decimal strings',
    },
  }),
  ModelList: whole({ object: constant('list'), data: listOf(ref('Model')) }),
  Receipt: whole({
    object: constant('receipt'),
    id: text,
    workspace: text,
    key: text,
    endpoint: text,
    requested_model: text,
    upstream_model: text,
    served_model: orNull(text),
    revision: orNull(text),
    backend: orNull(text),
    attempts: count,
    stream: flag,
    status: { type: 'string', enum: ['in_progress', 'completed', 'incomplete', 'interrupted', 'failed', 'lost'] },
    http_status: orNull({ type: 'integer' }),
    error_code: orNull(text),
    finish_reason: orNull(text),
    usage: whole(usageCounts),
    usage_source: { type: 'string', enum: ['engine', 'engine_running', 'estimated', 'none'] },
    rates: whole({ input: text, cached_input: text, cache_write: text, output: text }),
    price_version: text,
    cost_usd: usd,
    created_at: time,
    first_token_at: orNull(time),
    ended_at: orNull(time),
    completion_id: orNull(text),
    client_request_id: orNull(text),
    end_user: orNull(text),
  }),
  ReceiptList: whole({
    object: constant('list'),
    data: listOf(ref('Receipt')),
    has_more: flag,
    next_cursor: orNull(text),
  }),
  UsageList: whole({
    object: constant('list'),
    data: listOf({
      type: 'object',
      properties: { start: time, model: text, key: text, requests: count, ...usageCounts, cost_usd: usd },
      required: ['start', 'requests', ...Object.keys(usageCounts), 'cost_usd'],
    }),
  }),
  Credits: whole({
    object: constant('credits'),
    billing: { type: 'string', enum: ['prepaid', 'postpaid'] },
    balance_usd: usd,
    held_usd: usd,
    spent_usd: usd,
    limits: whole({
      requests: whole({ limit: orNull(count), remaining: orNull(count), reset_ms: orNull(count) }),
      tokens: whole({ limit: orNull(count), remaining: orNull(count), reset_ms: orNull(count) }),
      concurrency: whole({ limit: orNull(count), in_use: count }),
    }),
  }),
  Health: whole({ status: constant('ok') }),
};
