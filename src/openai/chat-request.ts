// Checks the fields of a chat completion request (SPEC §4) and reads out what the pipeline needs. Loose: fields that
// are not named here stay in the text and are not looked at.

import * as z from 'zod';
import { type GatewayError } from '../core/errors.ts';
import { type JsonBody } from '../core/json-body.ts';
import { type Model, type ResolvedModel } from '../core/model-catalog.ts';
import { err, ok, type Result } from '../core/result.ts';
import { checkChatCapabilities } from './chat-capabilities.ts';
import { type InferenceRequest } from './endpoint.ts';
import { estimateChatPrompt } from './estimate-prompt.ts';
import { parameterError, toParameterError } from './parameter-error.ts';
import { readEffort } from './reasoning.ts';

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

/** Fields every preset lists, and so checks. */
const listedShape = {
  messages: z.array(messageSchema).min(1),
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
  seed: z.number().refine(Number.isInteger).nullish(),
  user: z.string().nullish(),
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

const listedSchema = z.looseObject(listedShape);
const wholeSchema = z.looseObject({ ...listedShape, ...furtherShape });

/** A chat request as far as the gateway reads it; under `checked_fields: listed` the further fields are absent. */
export type ChatFields = z.infer<typeof wholeSchema>;

/** Parses and checks a chat request. */
export function parseChatRequest(body: JsonBody, resolved: ResolvedModel): Result<InferenceRequest, GatewayError> {
  const { model } = resolved;
  const parsed = parseFields(body, model);
  if (!parsed.ok) return parsed;
  const fields = parsed.value;
  const fault =
    findMessageFault(fields, model) ??
    findChoiceFault(fields, model) ??
    checkChatCapabilities(fields, model) ??
    findLimitFault(fields, model);
  if (fault !== null) return err(fault);
  const stream = fields.stream === true;
  return ok({
    body,
    resolved,
    stream,
    usageRequested: stream && fields.stream_options?.include_usage === true,
    choices: fields.n ?? 1,
    promptTokens: estimateChatPrompt(fields),
    outputLimit: fields.max_completion_tokens ?? fields.max_tokens ?? model.maxOutputTokens,
    effort: readEffort(body.value, model),
    endUser: fields.user ?? null,
  });
}

function parseFields(body: JsonBody, model: Model): Result<ChatFields, GatewayError> {
  if (model.policy.checked_fields === 'all') {
    const parsed = wholeSchema.safeParse(body.value);
    return parsed.success ? ok(parsed.data) : err(toParameterError(parsed.error, body.value));
  }
  const parsed = listedSchema.safeParse(body.value);
  if (!parsed.success) return err(toParameterError(parsed.error, body.value));
  const unread = Object.fromEntries(Object.keys(furtherShape).map((name) => [name, undefined]));
  return ok({ ...parsed.data, ...unread });
}

function findMessageFault(fields: ChatFields, model: Model): GatewayError | null {
  for (const [index, message] of fields.messages.entries()) {
    const path = `messages[${index}]`;
    const mayLackContent = model.policy.content === 'optional' || (message.role === 'assistant' && message.tool_calls);
    if (!mayLackContent && typeof message.content !== 'string' && !Array.isArray(message.content)) {
      const param = `${path}.content`;
      return parameterError('missing_required_parameter', param, `Missing required parameter: '${param}'.`);
    }
    const elsewhere = message.reasoning_content !== null && message.reasoning_content !== undefined;
    if (elsewhere && message.role !== 'assistant' && model.policy.reasoning_content_elsewhere === 'reject') {
      const param = `${path}.reasoning_content`;
      return parameterError('unsupported_parameter', param, `'${param}' is accepted on assistant messages only.`);
    }
  }
  return null;
}

function findChoiceFault(fields: ChatFields, model: Model): GatewayError | null {
  const { max_n: maxN, max_stop: maxStop } = model.policy;
  if (fields.n !== null && fields.n !== undefined && fields.n > maxN) {
    return parameterError('unsupported_value', 'n', `Unsupported value: 'n' must be at most ${maxN} for this model.`);
  }
  if (Array.isArray(fields.stop) && maxStop !== null && fields.stop.length > maxStop) {
    const message = `Invalid 'stop': array too long. Expected at most ${maxStop} elements.`;
    return parameterError('array_above_max_length', 'stop', message);
  }
  return null;
}

function findLimitFault(fields: ChatFields, model: Model): GatewayError | null {
  const param = fields.max_completion_tokens ? 'max_completion_tokens' : 'max_tokens';
  const limit = fields[param] ?? null;
  if (limit === null) return null;
  if (model.maxOutputTokens !== null && limit > model.maxOutputTokens) {
    const message =
      `Invalid '${param}': integer above maximum value. ` +
      `Expected a value <= ${model.maxOutputTokens}, but got ${limit} instead.`;
    return parameterError('integer_above_max_value', param, message);
  }
  if (model.contextLength !== null && limit > model.contextLength) {
    const message =
      `This model's maximum context length is ${model.contextLength} tokens. ` +
      `However, you requested ${limit} tokens in the completion alone.`;
    return parameterError('context_length_exceeded', 'messages', message);
  }
  return null;
}
