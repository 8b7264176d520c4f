// Checks the fields of a chat completion request (SPEC §4) and reads out what the pipeline needs. Loose: fields that
// are not named here stay in the text and are not looked at.

import { type GatewayError } from '../core/errors.ts';
import { type JsonBody } from '../core/json-body.ts';
import { type Model, type ResolvedModel } from '../core/model-catalog.ts';
import { err, ok, type Result } from '../core/result.ts';
import { CHAT_FIELDS, type ChatFields, FURTHER_CHAT_FIELDS, listedChatSchema, wholeChatSchema } from './chat-fields.ts';
import { checkChatCapabilities } from './chat-capabilities.ts';
import { findChoiceFault, findContextFault, findLimitFault, findUnknownField } from './common-rules.ts';
import { type InferenceRequest } from './endpoint.ts';
import { estimateChatPrompt } from './estimate-prompt.ts';
import { missingParameter, parameterError, toParameterError } from './parameter-error.ts';
import { readEffort } from './reasoning.ts';

/** Parses and checks a chat request. */
export function parseChatRequest(body: JsonBody, resolved: ResolvedModel): Result<InferenceRequest, GatewayError> {
  const { model } = resolved;
  const parsed = parseFields(body, model);
  if (!parsed.ok) return parsed;
  const fault = findUnknownField(body, CHAT_FIELDS, model) ?? findMessageFault(parsed.value, model);
  return fault === null ? buildChatRequest(body, parsed.value, resolved) : err(fault);
}

/** Checks fields that have their types against the model, and reads out what the pipeline needs. */
export function buildChatRequest(
  body: JsonBody,
  fields: ChatFields,
  resolved: ResolvedModel,
): Result<InferenceRequest, GatewayError> {
  const { model } = resolved;
  const size = estimateChatPrompt(fields, listUnread(fields, body));
  const fault =
    findChoiceFault(fields, model) ??
    checkChatCapabilities(fields, model) ??
    findLimitFault(fields, model, 'messages') ??
    findContextFault(size, fields, model, 'messages');
  if (fault !== null) return err(fault);
  const stream = fields.stream === true;
  return ok({
    body,
    resolved,
    stream,
    usageRequested: stream && fields.stream_options?.include_usage === true,
    choices: fields.n ?? 1,
    choicesPerPrompt: fields.n ?? 1,
    promptTokens: size.promptTokens,
    promptTokensMax: size.promptTokensMax,
    inputTokensMax: size.inputTokensMax,
    outputLimit: fields.max_completion_tokens ?? fields.max_tokens ?? model.maxOutputTokens,
    effort: readEffort(body.value, model),
    endUser: fields.user ?? null,
    echo: null,
  });
}

/** Fields beside messages that a chat template may render; tools only where the policy leaves them unread. */
function listUnread(fields: ChatFields, { value }: JsonBody): readonly unknown[] {
  const { tools, functions, documents, response_format: format, chat_template_kwargs: kwargs } = value;
  const rendered = [fields.tools === undefined ? tools : null, functions, documents, format, kwargs];
  return rendered.filter((field) => field !== null && field !== undefined);
}

function parseFields(body: JsonBody, model: Model): Result<ChatFields, GatewayError> {
  if (model.policy.checked_fields === 'all') {
    const parsed = wholeChatSchema.safeParse(body.value);
    return parsed.success ? ok(parsed.data) : err(toParameterError(parsed.error, body.value));
  }
  const parsed = listedChatSchema.safeParse(body.value);
  if (!parsed.success) return err(toParameterError(parsed.error, body.value));
  const unread = Object.fromEntries(FURTHER_CHAT_FIELDS.map((name) => [name, undefined]));
  return ok({ ...parsed.data, ...unread });
}

function findMessageFault(fields: ChatFields, model: Model): GatewayError | null {
  for (const [index, message] of fields.messages.entries()) {
    const path = `messages[${index}]`;
    const calls = message.role === 'assistant' && (message.tool_calls ?? []).length > 0;
    const mayLackContent = model.policy.content === 'optional' || calls;
    if (!mayLackContent && typeof message.content !== 'string' && !Array.isArray(message.content)) {
      return missingParameter(`${path}.content`);
    }
    const elsewhere = message.reasoning_content !== null && message.reasoning_content !== undefined;
    if (elsewhere && message.role !== 'assistant' && model.policy.reasoning_content_elsewhere === 'reject') {
      const param = `${path}.reasoning_content`;
      return parameterError('unsupported_parameter', param, `'${param}' is accepted on assistant messages only.`);
    }
  }
  return null;
}
