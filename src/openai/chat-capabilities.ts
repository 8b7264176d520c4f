// What a chat request needs of a model against what the model has (SPEC §4). Values that ask for nothing never trip a
// gate: an empty list of tools, `logprobs: false`, `type: text`.

import { type GatewayError } from '../core/errors.ts';
import { isObject } from '../core/json-read.ts';
import { type Model } from '../core/model-catalog.ts';
import { type ChatFields } from './chat-fields.ts';
import {
  invalidType,
  missingParameter,
  parameterError,
  unsupportedParameter,
  unsupportedValue,
} from './parameter-error.ts';

/** The first capability that is needed and absent, or a choice that contradicts itself; null when all is well. */
export function checkChatCapabilities(fields: ChatFields, model: Model): GatewayError | null {
  return (
    checkTools(fields, model) ?? checkFormat(fields, model) ?? checkLogprobs(fields, model) ?? checkParts(fields, model)
  );
}

function checkTools(fields: ChatFields, model: Model): GatewayError | null {
  const tools = fields.tools ?? [];
  const choice = fields.tool_choice ?? null;
  if (tools.length > 0 && !model.capabilities.tools) return unsupportedParameter('tools');
  if (tools.length === 0) {
    if (choice === null || choice === 'none' || choice === 'auto') return null;
    return parameterError(
      'invalid_value',
      'tool_choice',
      "Invalid value for 'tool_choice': there are no 'tools' to choose from.",
    );
  }
  if (choice === 'required' && !model.capabilities.tool_choice_required)
    return unsupportedValue('tool_choice', 'required');
  if (
    typeof choice === 'object' &&
    choice !== null &&
    !tools.some((tool) => tool.function.name === choice.function.name)
  ) {
    const message = `Invalid value for 'tool_choice': no tool named '${choice.function.name.slice(0, 64)}' is among the tools.`;
    return parameterError('invalid_value', 'tool_choice.function.name', message);
  }
  if (
    typeof fields.parallel_tool_calls === 'boolean' &&
    !fields.parallel_tool_calls &&
    !model.capabilities.parallel_tool_calls
  ) {
    return unsupportedParameter('parallel_tool_calls');
  }
  return null;
}

function checkFormat(fields: ChatFields, model: Model): GatewayError | null {
  const format = fields.response_format ?? null;
  if (format === null || format.type === 'text') return null;
  if (format.type === 'json_schema' && (format.json_schema ?? null) === null) {
    return missingParameter('response_format.json_schema');
  }
  if (!model.capabilities.response_formats.includes(format.type))
    return unsupportedValue('response_format.type', format.type);
  return null;
}

function checkLogprobs(fields: ChatFields, model: Model): GatewayError | null {
  if (fields.logprobs === true) return model.capabilities.logprobs ? null : unsupportedParameter('logprobs');
  if ((fields.top_logprobs ?? 0) === 0) return null;
  if (!model.capabilities.logprobs) return unsupportedParameter('top_logprobs');
  return parameterError(
    'invalid_value',
    'top_logprobs',
    "Invalid value for 'top_logprobs': it needs 'logprobs' to be true.",
  );
}

function checkParts(fields: ChatFields, model: Model): GatewayError | null {
  for (const [index, message] of fields.messages.entries()) {
    if (!Array.isArray(message.content)) continue;
    for (const [at, part] of message.content.entries()) {
      const path = `messages[${index}].content[${at}]`;
      if (part.type === 'text') {
        if (part.text !== undefined) continue;
        return missingParameter(`${path}.text`);
      }
      if (!model.capabilities.images || part.type !== 'image_url') return unsupportedValue(`${path}.type`, part.type);
      const fault = findImageFault(part['image_url'], `${path}.image_url`);
      if (fault !== null) return fault;
    }
  }
  return null;
}

/** An image is `{url}` or a URL. Only `data:` URLs pass: no engine fetches an address for a caller. */
export function findImageFault(image: unknown, path: string): GatewayError | null {
  const param = isObject(image) ? `${path}.url` : path;
  const url = isObject(image) ? image['url'] : image;
  if (url === undefined || url === null) return missingParameter(param);
  if (typeof url !== 'string') return invalidType(param, 'a string', url);
  if (/^data:/i.test(url)) return null;
  return parameterError('unsupported_value', param, `Unsupported value: '${param}' must be a data: URL.`);
}
