// Turns an engine's text into the client's, piece by piece, and says when the stream is over with it (SPEC §7): events
// are found, those like the one before are translated without being parsed, all others by the endpoint's translator.

import { parseJsonObject } from '../core/json-read.ts';
import { createSseParser, type SseEvent } from '../core/sse.ts';
import { type StreamTranslator } from '../openai/endpoint.ts';
import { type HeldBytes } from './byte-budget.ts';
import { buildUpstreamEnd, type RunEnd } from './run.ts';
import { type TextReader } from './text-reader.ts';

/** What a piece became. `heard`: it completed an event, be it one the client does not see. */
export type Translation = { readonly text: string; readonly end: RunEnd | null; readonly heard: boolean };

/** The translation of one stream. */
export type StreamTranslation = {
  readonly translator: StreamTranslator;
  /** Translates the next piece of text. After an end nothing more may be pushed. */
  readonly push: (text: string) => Translation;
  /** Translates what the engine's end leaves: a last event without its blank line, if it is whole. */
  readonly close: (rest: string, broken: boolean) => Translation & { readonly end: RunEnd };
};

/**
 * Creates the translation of one stream.
 *
 * @param eventBytesMax Bytes one event may have.
 */
export function createStreamTranslation(
  translator: StreamTranslator,
  eventBytesMax: number,
  held: HeldBytes,
): StreamTranslation {
  const parser = createSseParser(eventBytesMax);
  let pending = 0;

  function pushEvents(events: readonly SseEvent[]): Translation {
    let text = '';
    for (const event of events) {
      const translated = translator.push(event);
      if (translated.type === 'done') {
        return { text: text + translated.text, end: { type: 'finished' }, heard: true };
      }
      if (translated.type === 'fault') {
        return { text, end: { type: 'failed', error: translated.error, detail: translated.detail }, heard: true };
      }
      text += translated.text;
    }
    return { text, end: null, heard: events.length > 0 };
  }

  function push(piece: string): Translation {
    let text = '';
    let from = 0;
    let heard = false;
    while (from < piece.length) {
      const like = parser.isBetweenEvents() ? translator.pushAlike(piece, from) : null;
      // One event at a time: those behind it may be like it.
      const to = like?.end ?? readEventEnd(piece, from);
      const next = like === null ? parse(piece.slice(from, to)) : { text: like.text, end: null, heard: true };
      text += next.text;
      heard ||= next.heard;
      if (next.end !== null) return { text, end: next.end, heard };
      from = to;
    }
    return { text, end: null, heard };
  }

  function parse(piece: string): Translation {
    const { events, overflow } = parser.push(piece);
    count(parser.pending());
    const pushed = pushEvents(events);
    if (pushed.end !== null || !overflow) return pushed;
    return { ...pushed, end: buildUpstreamEnd('upstream_error', 'an event is too large') };
  }

  function count(nowPending: number): void {
    if (nowPending > pending) held.add(nowPending - pending);
    else if (nowPending < pending) held.drop(pending - nowPending);
    pending = nowPending;
  }

  function close(rest: string, broken: boolean): Translation & { readonly end: RunEnd } {
    const { events } = parser.push(rest);
    const last = keepIfWhole(parser.end());
    const translated = pushEvents(last === null ? events : [...events, last]);
    if (translated.end !== null) return { ...translated, end: translated.end };
    if (!broken && translator.isComplete()) return { ...translated, end: { type: 'finished' } };
    const detail = broken ? 'the connection broke' : 'an end without [DONE]';
    return { ...translated, end: buildUpstreamEnd('upstream_disconnected', detail) };
  }

  return { translator, push, close };
}

/** Where the event that begins at `from` is over, if its lines end in LF; else the end of the piece, which is never wrong. */
function readEventEnd(piece: string, from: number): number {
  const at = piece.indexOf('\n\n', from);
  return at === -1 ? piece.length : at + 2;
}

/** Reads on until an event is complete or the stream is over; comments are no events. */
export async function readTranslated(
  reader: Pick<TextReader, 'read'>,
  translation: StreamTranslation,
): Promise<Translation> {
  for (;;) {
    const piece = await reader.read();
    if (piece.type === 'end') return translation.close(piece.text, piece.broken);
    const translated = translation.push(piece.text);
    if (translated.heard || translated.end !== null) return translated;
  }
}

/** The last text of a stream, by how it ended; nothing for a client that left. */
export function buildLastText(end: RunEnd, translator: StreamTranslator): string {
  if (end.type === 'finished') return translator.finish();
  return end.type === 'failed' ? translator.fail(end.error) : '';
}

/** Once the client has seen text, an engine's refusal of the request is a failure of the engine. */
export function toMidstreamEnd(end: RunEnd): RunEnd {
  if (end.type !== 'failed' || end.error.kind === 'upstream') return end;
  return buildUpstreamEnd('upstream_error', end.detail);
}

/** A half event is dropped (SPEC §7): JSON that was cut does not parse. */
function keepIfWhole(event: SseEvent | null): SseEvent | null {
  if (event === null) return null;
  return event.data.trim() === '[DONE]' || parseJsonObject(event.data) !== null ? event : null;
}
