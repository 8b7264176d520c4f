// The input of a Responses request as chat messages (SPEC §8): items keep their order, what one assistant turn is made of
// (reasoning, text, tool calls) becomes one message, instructions and leading system items become one system message.

import * as z from 'zod';
import { type GatewayError } from '../core/errors.ts';
import { isObject, type JsonObject, readText } from '../core/json-read.ts';
import { type Model } from '../core/model-catalog.ts';
import { err, ok, type Result } from '../core/result.ts';
import { findImageFault } from './chat-capabilities.ts';
import { missingParameter, toParameterError, unsupportedParameter, unsupportedValue } from './parameter-error.ts';

const content = z.union([z.string(), z.array(z.looseObject({ type: z.string() }))]);
const itemSchema = z.discriminatedUnion('type', [
  z.looseObject({ type: z.literal('message'), role: z.enum(['user', 'assistant', 'system', 'developer']), content }),
  z.looseObject({
    type: z.literal('reasoning'),
    content: z.array(z.looseObject({ type: z.string(), text: z.string() })).nullish(),
  }),
  z.looseObject({ type: z.literal('function_call'), call_id: z.string(), name: z.string(), arguments: z.string() }),
  z.looseObject({ type: z.literal('function_call_output'), call_id: z.string(), output: content }),
]);
type Item = z.infer<typeof itemSchema>;
type Parts = z.infer<typeof content>;

const ITEM_TYPES: readonly string[] = ['message', 'reasoning', 'function_call', 'function_call_output'];

/** A message of the chat body. */
type Message = {
  role: 'system' | 'developer' | 'user' | 'assistant' | 'tool';
  content: string | readonly JsonObject[] | null;
  reasoning?: string;
  tool_calls?: JsonObject[];
  tool_call_id?: string;
};

/** Input as chat takes it. */
export type ChatInput = { readonly messages: readonly Message[]; readonly callIds: ReadonlySet<string> };

/** Texts that a part may carry, by its type. */
const TEXT_MEMBERS: ReadonlyMap<string, 'text' | 'refusal'> = new Map([
  ['input_text', 'text'],
  ['output_text', 'text'],
  ['refusal', 'refusal'],
]);

/**
 * Parses input and instructions.
 *
 * @param body The whole request, which errors point into.
 */
export function parseResponsesInput(
  body: JsonObject,
  input: string | readonly JsonObject[],
  instructions: string | undefined,
  model: Model,
): Result<ChatInput, GatewayError> {
  const callIds = new Set<string>();
  const messages: Message[] = [];
  if (typeof input === 'string') messages.push({ role: 'user', content: input });
  else {
    for (const [index, value] of input.entries()) {
      const item = parseItem(body, value, index, model);
      if (!item.ok) return item;
      addItem(messages, item.value);
      if (item.value.type === 'function_call') callIds.add(item.value.call_id);
    }
  }
  return ok({ messages: joinLeading(messages, instructions), callIds });
}

function parseItem(body: JsonObject, value: JsonObject, index: number, model: Model): Result<Item, GatewayError> {
  const path = `input[${index}]`;
  // A message may come without its type.
  const type = value['type'] ?? ('role' in value ? 'message' : null);
  if (type === null) return err(missingParameter(`${path}.type`));
  if (!ITEM_TYPES.includes(readText(type))) return err(unsupportedValue(`${path}.type`, type));
  const parsed = itemSchema.safeParse({ ...value, type });
  if (!parsed.success) return err(toParameterError(parsed.error, body, ['input', index]));
  const fault = findPartsFault(parsed.data, path, model);
  return fault === null ? ok(parsed.data) : err(fault);
}

/** The first part that the model does not take. */
function findPartsFault(item: Item, path: string, { capabilities }: Model): GatewayError | null {
  const [name, parts] =
    item.type === 'message'
      ? ['content', item.content]
      : ['output', item.type === 'function_call_output' ? item.output : ''];
  if (typeof parts === 'string') return null;
  const images = capabilities.images && (item.type !== 'message' || item.role === 'user');
  for (const [at, part] of parts.entries()) {
    const fault = findPartFault(part, `${path}.${name}[${at}]`, images);
    if (fault !== null) return fault;
  }
  return null;
}

function findPartFault(part: JsonObject, path: string, images: boolean): GatewayError | null {
  const type = part['type'];
  const member = TEXT_MEMBERS.get(readText(type));
  if (member !== undefined) {
    return typeof part[member] === 'string' ? null : missingParameter(`${path}.${member}`);
  }
  if (type !== 'input_image' || !images) return unsupportedValue(`${path}.type`, type);
  if ((part['file_id'] ?? null) !== null) return unsupportedParameter(`${path}.file_id`);
  return findImageFault(part['image_url'], `${path}.image_url`);
}

/** Adds an item: to the assistant's message under way if it can follow what is in it, else as a message of its own. */
function addItem(messages: Message[], item: Item): void {
  const last = messages.at(-1);
  const turn = last?.role === 'assistant' ? last : null;
  switch (item.type) {
    case 'message': {
      if (item.role !== 'assistant') {
        const text = item.role === 'user' ? toChatParts(item.content) : joinText(item.content, '\n');
        messages.push({ role: item.role, content: text });
      } else if (turn !== null && turn.content === null && turn.tool_calls === undefined) {
        turn.content = joinText(item.content, '');
      } else messages.push({ role: 'assistant', content: joinText(item.content, '') });
      return;
    }
    case 'reasoning': {
      const text = (item.content ?? []).map((part) => part.text).join('');
      // What only a provider could decrypt says nothing to an engine.
      if (text === '') return;
      if (turn !== null && turn.content === null && turn.tool_calls === undefined) turn.reasoning += text;
      else messages.push({ role: 'assistant', content: null, reasoning: text });
      return;
    }
    case 'function_call': {
      const call = {
        id: item.call_id,
        type: 'function',
        function: { name: item.name, arguments: item.arguments },
      };
      if (turn === null) messages.push({ role: 'assistant', content: null, tool_calls: [call] });
      else (turn.tool_calls ??= []).push(call);
      return;
    }
    case 'function_call_output':
      messages.push({ role: 'tool', tool_call_id: item.call_id, content: toChatParts(item.output) });
  }
}

/** Parts as chat names them; a single text is a string, which every chat template takes. */
function toChatParts(parts: Parts): Message['content'] {
  if (typeof parts === 'string') return parts;
  if (parts.every(({ type }) => TEXT_MEMBERS.has(type)) && parts.length < 2) return joinText(parts, '');
  return parts.map((part) => {
    const member = TEXT_MEMBERS.get(part.type);
    if (member !== undefined) return { type: 'text', text: part[member] };
    const { image_url: image, detail } = part;
    const url = isObject(image) ? image['url'] : image;
    return { type: 'image_url', image_url: { url, ...(typeof detail === 'string' ? { detail } : {}) } };
  });
}

function joinText(parts: Parts, between: string): string {
  if (typeof parts === 'string') return parts;
  return parts.map((part) => readText(part[TEXT_MEMBERS.get(part.type) ?? 'text'])).join(between);
}

/** Chat templates take one system message, and it must be the first. */
function joinLeading(messages: readonly Message[], instructions: string | undefined): readonly Message[] {
  const isLeading = ({ role }: Message): boolean => role === 'system' || role === 'developer';
  const end = messages.findIndex((message) => !isLeading(message));
  const leading = messages.slice(0, end === -1 ? messages.length : end);
  const others = messages.slice(leading.length).map(fillContent);
  const texts = [instructions ?? '', ...leading.map(({ content: text }) => readText(text))].filter(
    (text) => text !== '',
  );
  const [first] = leading;
  if (texts.length === 1 && first !== undefined && leading.length === 1)
    return [{ ...first, content: texts[0] ?? '' }, ...others];
  return texts.length === 0 ? others : [{ role: 'system', content: texts.join('\n\n') }, ...others];
}

/** An assistant's turn of reasoning alone has said nothing; one that only calls tools has no content. */
function fillContent(message: Message): Message {
  return message.content === null && message.tool_calls === undefined ? { ...message, content: '' } : message;
}
