// The chat body that stands for a Responses request (SPEC §8). What has the same name and meaning in both goes over in the
// client's own spelling, and so do schemas and the fields nobody here knows; the rest is written anew.

import { type JsonBody } from '../core/json-body.ts';
import { parseJsonObject } from '../core/json-read.ts';
import { readJsonPieces } from '../core/json-edit.ts';
import { type Effort } from './endpoint.ts';
import { isAbsent, RESPONSES_FIELDS, type ResponsesFields, UNSERVED_FIELDS } from './responses-fields.ts';
import { type ChatInput } from './responses-input.ts';
import { type ResponsesTools } from './responses-tools.ts';

/** A Responses request, checked. */
export type CheckedResponses = {
  readonly body: JsonBody;
  readonly fields: ResponsesFields;
  readonly effort: Effort | null;
  readonly tools: ResponsesTools;
  readonly messages: ChatInput['messages'];
};

/** Fields that chat names and reads alike. */
const SAME = new Set(['model', 'stream', 'temperature', 'top_p']);

/** Builds the chat body. Its size is that of the request it came from. */
export function buildResponsesChatBody({ body, fields, effort, tools, messages }: CheckedResponses): JsonBody {
  const members: string[] = [];
  const add = (name: string, text: string): void => void members.push(`${JSON.stringify(name)}:${text}`);
  for (const { key, valueStart, valueEnd } of body.pieces) {
    const unknown = !RESPONSES_FIELDS.has(key) && !UNSERVED_FIELDS.has(key);
    const goes = unknown ? body.value[key] !== null : SAME.has(key) && !isAbsent(body.value[key]);
    if (goes) add(key, body.text.slice(valueStart, valueEnd));
  }
  add('messages', JSON.stringify(messages));
  if (fields.max_output_tokens !== undefined) add('max_completion_tokens', String(fields.max_output_tokens));
  if (effort !== null) add('reasoning_effort', JSON.stringify(effort));
  if (tools.tools.length > 0) {
    add('tools', `[${tools.tools.map(writeTool).join(',')}]`);
    if (fields.parallel_tool_calls !== undefined) add('parallel_tool_calls', String(fields.parallel_tool_calls));
  }
  const choice = toChatChoice(fields.tool_choice);
  // Without tools a choice that asks for none of them asks for nothing.
  const isIdle = tools.tools.length === 0 && (choice === 'auto' || choice === 'none');
  if (choice !== null && !isIdle) add('tool_choice', JSON.stringify(choice));
  const format = writeFormat(tools);
  if (format !== null) add('response_format', format);
  const text = `{${members.join(',')}}`;
  return { text, bytes: body.bytes, value: parseJsonObject(text) ?? {}, open: 0, pieces: readJsonPieces(text, 0) };
}

function writeTool({ tool, parametersText }: ResponsesTools['tools'][number]): string {
  const { name, description, strict } = tool;
  const members = [
    `"name":${JSON.stringify(name)}`,
    ...(typeof description === 'string' ? [`"description":${JSON.stringify(description)}`] : []),
    `"parameters":${parametersText}`,
    ...(strict === true ? ['"strict":true'] : []),
  ];
  return `{"type":"function","function":{${members.join(',')}}}`;
}

function toChatChoice(choice: ResponsesFields['tool_choice']): unknown {
  if (typeof choice !== 'object') return choice ?? null;
  return { type: 'function', function: { name: choice['name'] } };
}

function writeFormat({ format, schemaText }: ResponsesTools): string | null {
  if (format === null) return null;
  if (format.type !== 'json_schema') return JSON.stringify({ type: format.type });
  const { name, description, strict } = format;
  const members = [
    `"name":${JSON.stringify(name)}`,
    ...(typeof description === 'string' ? [`"description":${JSON.stringify(description)}`] : []),
    `"schema":${schemaText ?? '{}'}`,
    ...(typeof strict === 'boolean' ? [`"strict":${strict}`] : []),
  ];
  return `{"type":"json_schema","json_schema":{${members.join(',')}}}`;
}
