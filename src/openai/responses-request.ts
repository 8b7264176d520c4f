// Checks the fields of a Responses request (SPEC §8) and makes of it what the pipeline needs: the chat request that
// engines are asked with, which then passes chat's own checks, and what the response says again.

import { type GatewayError } from '../core/errors.ts';
import { type JsonBody } from '../core/json-body.ts';
import { type JsonObject } from '../core/json-read.ts';
import { type Model, type ResolvedModel } from '../core/model-catalog.ts';
import { err, ok, type Result } from '../core/result.ts';
import { wholeChatSchema } from './chat-fields.ts';
import { buildChatRequest } from './chat-request.ts';
import { findUnknownField } from './common-rules.ts';
import { type InferenceRequest } from './endpoint.ts';
import { toParameterError } from './parameter-error.ts';
import { buildResponsesChatBody } from './responses-chat-body.ts';
import {
  isAbsent,
  RESPONSES_FIELDS,
  type ResponsesFields,
  responsesSchema,
  UNSERVED_FIELDS,
} from './responses-fields.ts';
import { parseResponsesInput } from './responses-input.ts';
import { checkResponsesRules, readResponsesEffort } from './responses-rules.ts';
import { type ResponsesTools, parseResponsesTools } from './responses-tools.ts';
import { toResponsesError } from './responses-names.ts';

const KNOWN_FIELDS: ReadonlySet<string> = new Set([...RESPONSES_FIELDS, ...UNSERVED_FIELDS.keys()]);

/** Parses and checks a Responses request. */
export function parseResponsesRequest(body: JsonBody, resolved: ResolvedModel): Result<InferenceRequest, GatewayError> {
  const { model } = resolved;
  const parsed = responsesSchema.safeParse(dropAbsent(body.value));
  if (!parsed.success) return err(toParameterError(parsed.error, body.value));
  const fields = parsed.data;
  const fault = checkResponsesRules(body.value, fields, resolved) ?? findUnknownField(body, KNOWN_FIELDS, model);
  if (fault !== null) return err(fault);
  const tools = parseResponsesTools(body, fields, model);
  if (!tools.ok) return tools;
  const input = parseResponsesInput(body.value, fields.input, fields.instructions, model);
  if (!input.ok) return input;
  const effort = readResponsesEffort(fields, model);
  const chat = buildResponsesChatBody({ body, fields, effort, tools: tools.value, messages: input.value.messages });
  const chatFields = wholeChatSchema.safeParse(chat.value);
  if (!chatFields.success) return err(toParameterError(chatFields.error, chat.value));
  const request = buildChatRequest(chat, chatFields.data, resolved);
  if (!request.ok) return err(toResponsesError(request.error));
  return ok({
    ...request.value,
    // Engines that have the endpoint get the client's own text.
    body: model.responses.mode === 'native' ? body : chat,
    endUser: fields.user ?? null,
    echo: { members: buildEchoMembers(fields, tools.value, model), callIds: input.value.callIds },
  });
}

/** null, [] and {} are absent (SPEC §8); of the input only null is. */
function dropAbsent(value: JsonObject): JsonObject {
  return Object.fromEntries(
    Object.entries(value).filter(([key, member]) => (key === 'input' ? member !== null : !isAbsent(member))),
  );
}

/** The members of a response that repeat the request, or say what was taken where it said nothing. */
function buildEchoMembers(fields: ResponsesFields, tools: ResponsesTools, model: Model): JsonObject {
  return {
    instructions: fields.instructions ?? null,
    max_output_tokens: fields.max_output_tokens ?? null,
    metadata: fields.metadata ?? {},
    parallel_tool_calls: fields.parallel_tool_calls ?? true,
    prompt_cache_key: fields.prompt_cache_key ?? null,
    reasoning: { effort: readResponsesEffort(fields, model), summary: null },
    safety_identifier: fields.safety_identifier ?? null,
    temperature: fields.temperature ?? 1,
    text: { format: tools.format ?? { type: 'text' } },
    tool_choice: fields.tool_choice ?? 'auto',
    tools: tools.tools.map(({ tool: { name, description, parameters, strict } }) => ({
      type: 'function',
      name,
      description: description ?? null,
      parameters,
      strict: strict ?? false,
    })),
    top_p: fields.top_p ?? 1,
    presence_penalty: 0,
    frequency_penalty: 0,
    user: fields.user ?? null,
  };
}
