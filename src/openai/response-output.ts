// The output of a response while it is made: which item is open, when it closes, and the events of both (SPEC §8). What the
// events hold is in response-items; when a response begins and ends is in response-machine.

import { parseJsonObject } from '../core/json-read.ts';
import {
  buildArgumentsDelta,
  buildArgumentsDone,
  buildItemAdded,
  buildItemDone,
  buildPartAdded,
  buildPartDelta,
  buildPartDone,
  type CallItem,
  ID_PREFIXES,
  type ItemStatus,
  type OutputItem,
  type PartType,
  type ResponseEvent,
  type TextItem,
  toItemType,
} from './response-items.ts';

/** A piece of a tool call; what is not said is ''. */
export type CallPiece = { readonly id: string; readonly name: string; readonly arguments: string };

/** The output of one response. Each method gives the events it leads to. */
export type ResponseOutput = {
  readonly items: readonly OutputItem[];
  /** More text. Another `key` than before begins a new item of the same kind. */
  readonly say: (part: PartType, delta: string, key: string) => readonly ResponseEvent[];
  /** More of a tool call; a `key` that was not seen before begins one. */
  readonly call: (key: string, piece: CallPiece) => readonly ResponseEvent[];
  /** Closes what is open. */
  readonly close: (status: ItemStatus) => readonly ResponseEvent[];
  /** Leaves what is open as incomplete, without a word: nobody is to act on it. */
  readonly abandon: () => void;
};

/**
 * Creates an output without items.
 *
 * @param tail What makes its ids its own.
 * @param takenIds Ids of tool calls that stand for others already.
 */
export function createResponseOutput(tail: string, takenIds: Iterable<string>): ResponseOutput {
  const items: OutputItem[] = [];
  const calls = new Map<string, CallItem>();
  const openCalls = new Set<CallItem>();
  const callIds = new Set(takenIds);
  let open: TextItem | null = null;

  const buildId = (type: OutputItem['type']): string => `${ID_PREFIXES[type]}_${tail}_${items.length}`;

  function closeText(status: ItemStatus): readonly ResponseEvent[] {
    if (open === null) return [];
    const item = open;
    open = null;
    item.status = status;
    return [...closePart(item), buildItemDone(item)];
  }

  /** Closes calls; null: only whole ones, since arguments of several calls may come in turns. */
  function closeCalls(status: ItemStatus | null): readonly ResponseEvent[] {
    const events: ResponseEvent[] = [];
    for (const item of openCalls) {
      const isWhole = parseJsonObject(item.arguments) !== null;
      if (!isWhole && status === null) continue;
      item.status = isWhole || status === null ? 'completed' : status;
      openCalls.delete(item);
      events.push(buildArgumentsDone(item), buildItemDone(item));
    }
    return events;
  }

  /** What must be over before another item begins. */
  const makeRoom = (): readonly ResponseEvent[] => [...closeText('completed'), ...closeCalls(null)];

  function openText(type: TextItem['type'], key: string): TextItem {
    open = { type, id: buildId(type), index: items.length, key, status: 'in_progress', parts: [] };
    items.push(open);
    return open;
  }

  function openCall(key: string, { id, name }: CallPiece): CallItem {
    // The engine's own id, unless it has none or it stands for another call already.
    const callId = id === '' || callIds.has(id) ? `call_${tail}_${items.length}` : id;
    const index = items.length;
    const type = 'function_call';
    const item: CallItem = { type, id: buildId(type), index, key, status: 'in_progress', callId, name, arguments: '' };
    callIds.add(callId);
    calls.set(key, item);
    openCalls.add(item);
    items.push(item);
    return item;
  }

  return {
    items,
    say(type, delta, key) {
      const kind = toItemType(type);
      const events: ResponseEvent[] = [];
      let item = open?.type === kind && open.key === key ? open : null;
      if (item === null) {
        events.push(...makeRoom());
        item = openText(kind, key);
        events.push(buildItemAdded(item));
      }
      let part = item.parts.at(-1);
      if (part?.type !== type) {
        events.push(...closePart(item));
        part = { type, text: '' };
        item.parts.push(part);
        events.push(buildPartAdded(item, part));
      }
      part.text += delta;
      return delta === '' ? events : [...events, buildPartDelta(item, part, delta)];
    },
    call(key, piece) {
      const events: ResponseEvent[] = [];
      let item = calls.get(key);
      if (item === undefined) {
        events.push(...makeRoom());
        item = openCall(key, piece);
        events.push(buildItemAdded(item));
      }
      item.name ||= piece.name;
      // Nothing but space can follow arguments that were whole.
      if (piece.arguments === '' || item.status !== 'in_progress') return events;
      item.arguments += piece.arguments;
      return [...events, buildArgumentsDelta(item, piece.arguments)];
    },
    close: (status) => [...closeText(status), ...closeCalls(status)],
    abandon() {
      for (const item of items) if (item.status === 'in_progress') item.status = 'incomplete';
    },
  };
}

function closePart(item: TextItem): readonly ResponseEvent[] {
  const part = item.parts.at(-1);
  return part === undefined ? [] : buildPartDone(item, part);
}
