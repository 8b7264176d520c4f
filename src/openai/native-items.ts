// Follows the items of an engine's own response stream and says them to the state machine (SPEC §8). Engines differ in
// what they tell items apart by, leave events out and invent others (WIRE §4d): deltas are what counts, and what a done item
// has beyond its deltas.

import { isObject, type JsonObject, readText } from '../core/json-read.ts';
import { type PartType } from './response-items.ts';
import { type ResponseMachine } from './response-machine.ts';

/** The parts that delta events bring, under OpenAI's names and under those that engines have for them. */
const DELTAS: ReadonlyMap<string, PartType> = new Map([
  ['response.output_text.delta', 'output_text'],
  ['response.refusal.delta', 'refusal'],
  ['response.reasoning_text.delta', 'reasoning_text'],
  ['response.reasoning.delta', 'reasoning_text'],
  ['response.reasoning_summary_text.delta', 'reasoning_text'],
]);
const ARGUMENTS = 'response.function_call_arguments.delta';
const ADDED = 'response.output_item.added';
const DONE = 'response.output_item.done';

/** The follower of one response's items. */
export type ItemFollower = {
  /** Whether an event is about what the response says. */
  readonly concerns: (type: string, value: JsonObject) => boolean;
  readonly follow: (type: string, value: JsonObject) => string;
  /** Says what of the final output has not been said. */
  readonly settle: (output: readonly JsonObject[]) => string;
  readonly deltas: () => number;
  readonly calls: () => number;
};

/** What has been said of one item of the engine's. */
type Said = { readonly key: string; readonly type: string; text: string };

/** Creates the follower. Without `showReasoning` no reasoning is said; it was generated all the same. */
export function createItemFollower(machine: ResponseMachine, showReasoning: boolean): ItemFollower {
  const items: Said[] = [];
  const byType = new Map<string, Said[]>();
  /** Items by the engine's ids and positions. */
  const byName = new Map<string, Said>();
  let deltas = 0;

  /** The item an event is about: by id, else by position, else the latest of its type. */
  function find(type: string, value: JsonObject, id: unknown): Said {
    const names = [readText(id), typeof value['output_index'] === 'number' ? `#${value['output_index']}` : ''];
    const known = names.map((name) => byName.get(name)).find((said) => said?.type === type);
    const nameless = names.every((name) => name === '');
    const said = known ?? (nameless ? byType.get(type)?.at(-1) : undefined) ?? add(type);
    for (const name of names) if (name !== '') byName.set(name, said);
    return said;
  }

  function add(type: string): Said {
    const said = { key: String(items.length), type, text: '' };
    items.push(said);
    const same = byType.get(type);
    if (same === undefined) byType.set(type, [said]);
    else same.push(said);
    return said;
  }

  function say(said: Said, part: PartType, text: string): string {
    said.text += text;
    if (text !== '') deltas += 1;
    if (text === '' || (part === 'reasoning_text' && !showReasoning)) return '';
    return machine.say(part, text, said.key);
  }

  function call(said: Said, item: JsonObject, text: string): string {
    said.text += text;
    if (text !== '') deltas += 1;
    return machine.call(said.key, { id: readText(item['call_id']), name: readText(item['name']), arguments: text });
  }

  /** Says what a whole item has beyond its deltas. */
  function sayRest(said: Said, item: JsonObject): string {
    const rest = (text: string): string => (text.startsWith(said.text) ? text.slice(said.text.length) : '');
    if (said.type === 'function_call') return call(said, item, rest(readText(item['arguments'])));
    if (said.type === 'reasoning') {
      const content = joinTexts(item['content'], 'text');
      return say(said, 'reasoning_text', rest(content === '' ? joinTexts(item['summary'], 'text') : content));
    }
    const refusal = joinTexts(item['content'], 'refusal');
    const text = joinTexts(item['content'], 'text');
    // Text and refusal of one message: what was said is as long as both.
    return text === ''
      ? say(said, 'refusal', rest(refusal))
      : say(said, 'output_text', said.text.length > text.length ? '' : rest(text));
  }

  return {
    concerns: (type, value) => {
      if (DELTAS.has(type) || type === ARGUMENTS) return readText(value['delta']) !== '';
      return (type === ADDED || type === DONE) && isItemType(readType(value['item']));
    },
    follow(type, value) {
      const part = DELTAS.get(type);
      const delta = readText(value['delta']);
      if (part !== undefined) {
        const kind = part === 'reasoning_text' ? 'reasoning' : 'message';
        return say(find(kind, value, value['item_id']), part, delta);
      }
      if (type === ARGUMENTS) return call(find('function_call', value, value['item_id']), {}, delta);
      const item = isObject(value['item']) ? value['item'] : {};
      const kind = readType(item);
      if (type === DONE) return sayRest(find(kind, value, item['id']), item);
      // A new item, though an engine may have given its id before.
      const said = add(kind);
      const names = [
        readText(item['id']),
        typeof value['output_index'] === 'number' ? `#${value['output_index']}` : '',
      ];
      for (const name of names) if (name !== '') byName.set(name, said);
      return kind === 'function_call' ? call(said, item, readText(item['arguments'])) : '';
    },
    settle(output) {
      // Engines build the final output anew, with other ids: items are told apart by their order.
      const seen = new Map<string, number>();
      return output
        .map((item) => {
          const kind = readType(item);
          if (!isItemType(kind)) return '';
          const at = seen.get(kind) ?? 0;
          seen.set(kind, at + 1);
          const said = byType.get(kind)?.[at] ?? add(kind);
          return sayRest(said, item);
        })
        .join('');
    },
    deltas: () => deltas,
    calls: () => byType.get('function_call')?.length ?? 0,
  };
}

function readType(item: unknown): string {
  return isObject(item) ? readText(item['type']) : '';
}

function isItemType(type: string): boolean {
  return type === 'message' || type === 'reasoning' || type === 'function_call';
}

function joinTexts(parts: unknown, member: string): string {
  return Array.isArray(parts)
    ? parts.map((part: unknown) => (isObject(part) ? readText(part[member]) : '')).join('')
    : '';
}
