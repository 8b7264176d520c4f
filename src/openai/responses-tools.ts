// The tools and the text format of a Responses request, checked (SPEC §8). Schemas stay in the client's own spelling.

import { type GatewayError } from '../core/errors.ts';
import { type JsonBody } from '../core/json-body.ts';
import { type JsonPiece, readJsonPieces } from '../core/json-edit.ts';
import { type Model } from '../core/model-catalog.ts';
import { err, ok, type Result } from '../core/result.ts';
import type * as z from 'zod';
import {
  missingParameter,
  parameterError,
  toParameterError,
  unsupportedParameter,
  unsupportedValue,
} from './parameter-error.ts';
import { formatSchemas, functionToolSchema, type ResponsesFields } from './responses-fields.ts';

type FunctionTool = z.infer<typeof functionToolSchema>;
/** A format by its type. */
export type ResponsesFormat = z.infer<(typeof formatSchemas)[keyof typeof formatSchemas]>;

/** Tools and format of a request; `parametersText` and `schemaText` as the client spelled them. */
export type ResponsesTools = {
  readonly tools: readonly { readonly tool: FunctionTool; readonly parametersText: string }[];
  readonly format: ResponsesFormat | null;
  readonly schemaText: string | null;
};

/** Parses tools, tool choice and format; what of them a model lacks is chat's check. */
export function parseResponsesTools(
  body: JsonBody,
  fields: ResponsesFields,
  model: Model,
): Result<ResponsesTools, GatewayError> {
  const tools: ResponsesTools['tools'][number][] = [];
  for (const [index, value] of (fields.tools ?? []).entries()) {
    const path = `tools[${index}]`;
    if (value.type !== 'function') {
      if (model.responses.lenient) continue;
      return err(unsupportedValue(`${path}.type`, value.type));
    }
    const parsed = functionToolSchema.safeParse(value);
    if (!parsed.success) return err(toParameterError(parsed.error, body.value, ['tools', index]));
    const tool = parsed.data;
    if (tool.strict === true && !model.capabilities.strict_tools) return err(unsupportedParameter(`${path}.strict`));
    tools.push({ tool, parametersText: readTextAt(body, ['tools', index, 'parameters']) });
  }
  const fault = findChoiceFault(fields, tools);
  if (fault !== null) return err(fault);
  const format = parseFormat(body, fields);
  if (!format.ok) return format;
  const schemaText = format.value?.type === 'json_schema' ? readTextAt(body, ['text', 'format', 'schema']) : null;
  return ok({ tools, format: format.value, schemaText });
}

function findChoiceFault(
  { tool_choice: choice }: ResponsesFields,
  tools: ResponsesTools['tools'],
): GatewayError | null {
  if (typeof choice !== 'object') return null;
  if (choice.type !== 'function') return unsupportedValue('tool_choice.type', choice.type);
  const { name } = choice;
  if (typeof name !== 'string') return missingParameter('tool_choice.name');
  if (tools.some(({ tool }) => tool.name === name)) return null;
  const message = "Invalid value for 'tool_choice': its name is not among the tools.";
  return parameterError('invalid_value', 'tool_choice.name', message);
}

function parseFormat(body: JsonBody, fields: ResponsesFields): Result<ResponsesFormat | null, GatewayError> {
  const format = fields.text?.format ?? null;
  if (format === null) return ok(null);
  const schema = Object.entries(formatSchemas).find(([type]) => type === format.type)?.[1];
  if (schema === undefined) {
    const message = "Invalid value for 'text.format.type': expected text, json_object or json_schema.";
    return err(parameterError('invalid_value', 'text.format.type', message));
  }
  const parsed = schema.safeParse(format);
  return parsed.success ? ok(parsed.data) : err(toParameterError(parsed.error, body.value, ['text', 'format']));
}

/** A member as it is spelled in the body, by its path; the last of several members of a name counts, as for JSON.parse. */
function readTextAt({ text }: JsonBody, path: readonly (string | number)[]): string {
  let piece: JsonPiece | undefined;
  for (const step of path) {
    const pieces = readJsonPieces(text, piece?.valueStart ?? 0);
    piece = typeof step === 'number' ? pieces[step] : pieces.findLast(({ key }) => key === step);
  }
  return piece === undefined ? '{}' : text.slice(piece.valueStart, piece.valueEnd);
}
