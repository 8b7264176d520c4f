// Chat's names for what a Responses request calls otherwise: a fault found in the chat body that was made of it, by the
// gateway or by an engine, is told in the words of the request.

import { type GatewayError } from '../core/errors.ts';

const NAMES: ReadonlyMap<string, string> = new Map([
  ['messages', 'input'],
  ['max_tokens', 'max_output_tokens'],
  ['max_completion_tokens', 'max_output_tokens'],
  ['response_format.type', 'text.format.type'],
  ['response_format', 'text.format'],
  ['tool_choice.function.name', 'tool_choice.name'],
]);

/** A field of the chat body as the request has it: a place within the messages is just the input. */
export function toResponsesParam(param: string): string {
  if (param.startsWith('messages[')) return 'input';
  return NAMES.get(param) ?? param;
}

/** An error about the chat body as one about the request. */
export function toResponsesError(error: GatewayError): GatewayError {
  if (error.kind !== 'invalid_parameter') return error;
  const param = toResponsesParam(error.param);
  return { ...error, param, message: error.message.replaceAll(error.param, param).replaceAll('messages', 'input') };
}
