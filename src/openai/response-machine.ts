// The one state machine behind every response, streamed or not (SPEC §8): what an engine says goes in piece by piece, events
// with ids of the gateway's own come out, numbered without gaps, with exactly one terminal event. It knows no engine's shape.

import { type GatewayError } from '../core/errors.ts';
import { type JsonObject, parseJsonObject } from '../core/json-read.ts';
import { toOpenAIError } from '../core/openai-error.ts';
import { type AnswerContext, type FinishReason } from './endpoint.ts';
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
  toItemObject,
  toItemType,
} from './response-items.ts';
import { buildResponseObject, type ResponseState } from './response-object.ts';
import { type Metered } from './usage-meter.ts';

/** A piece of a tool call; what is not said is ''. */
export type CallPiece = { readonly id: string; readonly name: string; readonly arguments: string };

/** The machine of one response. Each method gives the events it leads to, as text for the client. */
export type ResponseMachine = {
  readonly id: string;
  readonly hasBegun: () => boolean;
  /** The engine has spoken: the response is there. Only the first call says anything. */
  readonly begin: (model: string) => string;
  /** More text. Another `key` than before begins a new item of the same kind. */
  readonly say: (part: PartType, delta: string, key?: string) => string;
  /** More of a tool call; a `key` that was not seen before begins one. */
  readonly call: (key: string, piece: CallPiece) => string;
  /** The end of an answer that went well, or was cut short for the reason given. */
  readonly complete: (reason: FinishReason | null, metered: Metered) => string;
  /** The end of one that did not: what there is of it stays. */
  readonly fail: (error: GatewayError, metered: Metered | null) => string;
  /** The response as it stands. */
  readonly toObject: () => JsonObject;
};

/** OpenAI's own reasons why a response is incomplete. */
const INCOMPLETE_REASONS: Readonly<Record<FinishReason, string | null>> = {
  stop: null,
  tool_calls: null,
  length: 'max_output_tokens',
  content_filter: 'content_filter',
};

/** Creates the machine of one response. */
export function createResponseMachine(context: AnswerContext): ResponseMachine {
  const tail = context.requestId.replace(/^req_/, '');
  const items: OutputItem[] = [];
  const calls = new Map<string, CallItem>();
  const openCalls = new Set<CallItem>();
  const callIds = new Set(context.request.echo?.callIds);
  const state: ResponseState = {
    id: `resp_${tail}`,
    model: context.request.resolved.requestedModel,
    status: 'in_progress',
    completedAtMs: null,
    incompleteReason: null,
    error: null,
    metered: null,
  };
  let open: TextItem | null = null;
  let sequence = 0;
  let begun = false;

  const toObject = (): JsonObject => buildResponseObject(context, state, items.map(toItemObject));

  function write(...events: readonly ResponseEvent[]): string {
    return events
      .map(({ type, ...members }) => {
        const text = JSON.stringify({ type, sequence_number: sequence, ...members });
        sequence += 1;
        return `event: ${type}\ndata: ${text}\n\n`;
      })
      .join('');
  }

  function begin(model: string): string {
    if (begun) return '';
    begun = true;
    state.model = model;
    const response = toObject();
    return write({ type: 'response.created', response }, { type: 'response.in_progress', response });
  }

  function addItem(item: OutputItem): string {
    items.push(item);
    return write(buildItemAdded(item));
  }

  function buildId(type: OutputItem['type']): string {
    return `${ID_PREFIXES[type]}_${tail}_${items.length}`;
  }

  function closePart(item: TextItem): string {
    const part = item.parts.at(-1);
    return part === undefined ? '' : write(...buildPartDone(item, part));
  }

  function closeText(status: ItemStatus): string {
    if (open === null) return '';
    const item = open;
    open = null;
    const part = closePart(item);
    item.status = status;
    return part + write(buildItemDone(item));
  }

  /** Closes calls; while the engine speaks only whole ones: arguments of several calls may come in turns. */
  function closeCalls(status: ItemStatus | null): string {
    let text = '';
    for (const item of openCalls) {
      const isWhole = parseJsonObject(item.arguments) !== null;
      if (!isWhole && status === null) continue;
      item.status = isWhole || status === null ? 'completed' : status;
      openCalls.delete(item);
      text += write(buildArgumentsDone(item), buildItemDone(item));
    }
    return text;
  }

  function say(type: PartType, delta: string, key = ''): string {
    const kind = toItemType(type);
    if (delta === '' && open?.type === kind && open.key === key) return '';
    let text = begin(state.model);
    if (open === null || open.type !== kind || open.key !== key) {
      text += closeText('completed') + closeCalls(null);
      const item: TextItem = {
        type: kind,
        id: buildId(kind),
        index: items.length,
        key,
        status: 'in_progress',
        parts: [],
      };
      text += addItem(item);
      open = item;
    }
    let part = open.parts.at(-1);
    if (part?.type !== type) {
      text += closePart(open);
      part = { type, text: '' };
      open.parts.push(part);
      text += write(buildPartAdded(open, part));
    }
    part.text += delta;
    return delta === '' ? text : text + write(buildPartDelta(open, part, delta));
  }

  /** The engine's own id, unless it has none or it stands for another call already. */
  function chooseCallId(id: string): string {
    const minted = `call_${tail}_${items.length}`;
    const chosen = id === '' || callIds.has(id) ? minted : id;
    callIds.add(chosen);
    return chosen;
  }

  function call(key: string, piece: CallPiece): string {
    let text = begin(state.model);
    let item = calls.get(key);
    if (item === undefined) {
      text += closeText('completed') + closeCalls(null);
      item = {
        type: 'function_call',
        id: buildId('function_call'),
        index: items.length,
        key,
        status: 'in_progress',
        callId: chooseCallId(piece.id),
        name: piece.name,
        arguments: '',
      };
      calls.set(key, item);
      openCalls.add(item);
      text += addItem(item);
    }
    item.name ||= piece.name;
    // Nothing but space can follow arguments that were whole.
    if (piece.arguments === '' || item.status !== 'in_progress') return text;
    item.arguments += piece.arguments;
    return text + write(buildArgumentsDelta(item, piece.arguments));
  }

  return {
    id: state.id,
    hasBegun: () => begun,
    begin,
    say,
    call,
    toObject,
    complete(reason, metered) {
      const incompleteReason = reason === null ? null : INCOMPLETE_REASONS[reason];
      const status = incompleteReason === null ? 'completed' : 'incomplete';
      let text = begin(state.model);
      // Who reads an answer that went well finds a message or a call in it.
      if (items.length === 0 && status === 'completed') text += say('output_text', '');
      text += closeText(status) + closeCalls(status);
      Object.assign(state, { status, incompleteReason, metered });
      if (status === 'completed') state.completedAtMs = context.now();
      return text + write({ type: `response.${status}`, response: toObject() });
    },
    fail(error, metered) {
      const text = begin(state.model);
      for (const item of items) if (item.status === 'in_progress') item.status = 'incomplete';
      // OpenAI's codes for a response are a closed set; which of ours it was the receipt says.
      const { message } = toOpenAIError(error).body.error;
      Object.assign(state, { status: 'failed', error: { code: 'server_error', message }, metered });
      return text + write({ type: 'response.failed', response: toObject() });
    },
  };
}
