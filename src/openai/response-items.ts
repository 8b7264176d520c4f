// The output items of a response and the events that tell of them, as tables (SPEC §8, WIRE §5a). Pure records: when an
// item opens and closes is decided in the state machine.

import { type JsonObject } from '../core/json-read.ts';

/** What a part of an item may be. */
export type PartType = 'output_text' | 'refusal' | 'reasoning_text';
/** How far an item or a response has come. */
export type ItemStatus = 'in_progress' | 'completed' | 'incomplete';

type Part = { readonly type: PartType; text: string };

/** A message or a piece of reasoning. */
export type TextItem = {
  readonly type: 'message' | 'reasoning';
  readonly id: string;
  readonly index: number;
  /** What the engine tells its items apart by; '' where it has one of a kind. */
  readonly key: string;
  status: ItemStatus;
  readonly parts: Part[];
};

/** A call of one of the client's tools. */
export type CallItem = {
  readonly type: 'function_call';
  readonly id: string;
  readonly index: number;
  readonly key: string;
  status: ItemStatus;
  readonly callId: string;
  name: string;
  arguments: string;
};

/** An output item. */
export type OutputItem = TextItem | CallItem;

/** An event without its number. */
export type ResponseEvent = { readonly type: string } & JsonObject;

/** Of each part: the item it belongs to, the member that holds its text, and what else OpenAI's schema wants in it. */
const PARTS = {
  output_text: { item: 'message', member: 'text', more: { annotations: [], logprobs: [] }, inEvents: { logprobs: [] } },
  refusal: { item: 'message', member: 'refusal', more: {}, inEvents: {} },
  reasoning_text: { item: 'reasoning', member: 'text', more: {}, inEvents: {} },
} as const satisfies Readonly<Record<PartType, object>>;

/** The beginning of an item's id. */
export const ID_PREFIXES = { message: 'msg', reasoning: 'rs', function_call: 'fc' } as const;

/** The item that a part belongs to. */
export function toItemType(part: PartType): TextItem['type'] {
  return PARTS[part].item;
}

/** An item as the client sees it. */
export function toItemObject(item: OutputItem): JsonObject {
  const { id, type, status } = item;
  switch (item.type) {
    case 'message':
      return { id, type, status, role: 'assistant', content: item.parts.map(toPartObject) };
    case 'reasoning':
      return { id, type, status, summary: [], content: item.parts.map(toPartObject) };
    case 'function_call':
      return { id, type, status, call_id: item.callId, name: item.name, arguments: item.arguments };
  }
}

function toPartObject({ type, text }: Part): JsonObject {
  const { member, more } = PARTS[type];
  return { type, [member]: text, ...more };
}

/** A new item is there; it has nothing in it yet. */
export function buildItemAdded(item: OutputItem): ResponseEvent {
  return { type: 'response.output_item.added', output_index: item.index, item: toItemObject(item) };
}

/** The item's last part is there; it has no text yet. */
export function buildPartAdded(item: TextItem, part: Part): ResponseEvent {
  return { type: 'response.content_part.added', ...toPartPlace(item), part: toPartObject(part) };
}

/** More text of the item's last part. */
export function buildPartDelta(item: TextItem, { type }: Part, delta: string): ResponseEvent {
  return { type: `response.${type}.delta`, ...toPartPlace(item), delta, ...PARTS[type].inEvents };
}

/** The item's last part is over. */
export function buildPartDone(item: TextItem, part: Part): readonly ResponseEvent[] {
  const { member, inEvents } = PARTS[part.type];
  return [
    { type: `response.${part.type}.done`, ...toPartPlace(item), [member]: part.text, ...inEvents },
    { type: 'response.content_part.done', ...toPartPlace(item), part: toPartObject(part) },
  ];
}

/** More of a call's arguments. */
export function buildArgumentsDelta(item: CallItem, delta: string): ResponseEvent {
  return { type: 'response.function_call_arguments.delta', item_id: item.id, output_index: item.index, delta };
}

/** A call's arguments are whole. */
export function buildArgumentsDone(item: CallItem): ResponseEvent {
  const { id, index, name, arguments: text } = item;
  return { type: 'response.function_call_arguments.done', item_id: id, output_index: index, name, arguments: text };
}

/** The item is over. */
export function buildItemDone(item: OutputItem): ResponseEvent {
  return { type: 'response.output_item.done', output_index: item.index, item: toItemObject(item) };
}

function toPartPlace({ id, index, parts }: TextItem): JsonObject {
  return { item_id: id, output_index: index, content_index: Math.max(0, parts.length - 1) };
}
