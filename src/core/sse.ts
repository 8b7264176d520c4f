// Server-sent events in, whatever the framing: LF, CRLF or CR, split anywhere, comments, multi-line data, no space after
// the colon, a last event without its blank line (WHATWG HTML §9.2.6). Only `data` and `event` are kept. Incremental and
// bounded: time is linear in the text, memory in the largest event. Bytes become text, and a BOM vanishes, elsewhere.

import { countUtf8Bytes } from './utf8.ts';

/** One event. `type` is the `event:` field, '' when absent. */
export type SseEvent = { readonly type: string; readonly data: string };

/** The events completed by a piece of text. `overflow`: the one behind them is too large, and the parser has given up. */
export type SseBatch = { readonly events: readonly SseEvent[]; readonly overflow: boolean };

/** An incremental parser of one stream. */
export type SseParser = {
  /** Feeds text and returns the events it completes. */
  readonly push: (text: string) => SseBatch;
  /** Whether what comes next begins an event: nothing of one has been seen, nor half a line end. */
  readonly isBetweenEvents: () => boolean;
  /** Characters of the event that is not complete yet. */
  readonly pending: () => number;
  /**
   * The end of the stream: the event that lacks its blank line, if any. It may be whole (engines that close at once
   * leave the last line breaks out) or cut; whether its data parses tells.
   */
  readonly end: () => SseEvent | null;
};

/**
 * Creates a parser.
 *
 * @param eventBytesMax UTF-8 bytes that the lines of one event may have together, line ends left out.
 */
export function createSseParser(eventBytesMax: number): SseParser {
  const size = createEventSize(eventBytesMax);
  let partialLine: string[] = [];
  let endedInCr = false;
  let data: string[] = [];
  let type = '';
  let events: SseEvent[] = [];

  function endLine(line: string): void {
    if (line === '') {
      if (data.length > 0) events.push({ type, data: data.length === 1 ? (data[0] ?? '') : data.join('\n') });
      data = [];
      type = '';
      size.reset();
      return;
    }
    const colon = line.indexOf(':');
    if (colon === 0) return;
    const field = colon === -1 ? line : line.slice(0, colon);
    const value = colon === -1 ? '' : line.slice(line.charCodeAt(colon + 1) === 0x20 ? colon + 2 : colon + 1);
    if (field === 'data') data.push(value);
    else if (field === 'event') type = value;
  }

  function takeLine(rest: string): void {
    size.add(rest);
    if (partialLine.length === 0) return endLine(rest);
    partialLine.push(rest);
    const line = partialLine.join('');
    partialLine = [];
    endLine(line);
  }

  function feed(text: string): void {
    let from = 0;
    if (endedInCr && text !== '') {
      if (text.charCodeAt(0) === 0x0a) from = 1;
      endedInCr = false;
    }
    let nextCr = text.indexOf('\r', from);
    let nextLf = text.indexOf('\n', from);
    for (;;) {
      // Each is looked for again only once it is passed: to look for both at every line would be quadratic.
      if (nextCr !== -1 && nextCr < from) nextCr = text.indexOf('\r', from);
      if (nextLf !== -1 && nextLf < from) nextLf = text.indexOf('\n', from);
      const at = nextCr === -1 ? nextLf : nextLf === -1 ? nextCr : Math.min(nextLf, nextCr);
      if (at === -1) break;
      takeLine(text.slice(from, at));
      if (size.isTooLarge()) return;
      from = at + 1;
      if (at !== nextCr) continue;
      if (from === text.length) endedInCr = true;
      else if (text.charCodeAt(from) === 0x0a) from += 1;
    }
    if (from >= text.length) return;
    const rest = text.slice(from);
    size.add(rest);
    partialLine.push(rest);
  }

  function drain(): readonly SseEvent[] {
    const batch = events;
    events = [];
    return batch;
  }

  return {
    push(text) {
      if (!size.isTooLarge()) feed(text);
      return { events: drain(), overflow: size.isTooLarge() };
    },
    isBetweenEvents: () => size.length() === 0 && !endedInCr,
    pending: () => size.length(),
    end() {
      if (partialLine.length > 0) takeLine('');
      endLine('');
      return drain()[0] ?? null;
    },
  };
}

/** The size of one event while it comes. */
type EventSize = {
  readonly add: (text: string) => void;
  readonly reset: () => void;
  /** Characters added. */
  readonly length: () => number;
  readonly isTooLarge: () => boolean;
};

/** A character is at most three bytes in UTF-8, as JavaScript counts characters. */
const BYTES_PER_CHARACTER_MAX = 3;

function createEventSize(bytesMax: number): EventSize {
  let length = 0;
  /** Counted only where it can matter, each piece once. */
  let bytes = 0;
  let uncounted: string[] = [];
  return {
    add(text) {
      length += text.length;
      uncounted.push(text);
      if (length * BYTES_PER_CHARACTER_MAX <= bytesMax) return;
      bytes = uncounted.reduce((sum, piece) => sum + countUtf8Bytes(piece), bytes);
      uncounted = [];
    },
    reset() {
      // What is too large stays so.
      if (bytes > bytesMax) return;
      length = 0;
      bytes = 0;
      uncounted = [];
    },
    length: () => length,
    isTooLarge: () => bytes > bytesMax,
  };
}
