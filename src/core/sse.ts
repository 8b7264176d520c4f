// Server-sent events in, whatever the framing: LF, CRLF or CR, split anywhere, comments, multi-line data, no space after
// the colon, a last event without its blank line (WHATWG HTML §9.2.6). Only `data` and `event` are kept. Incremental and
// bounded: time is linear in the text, memory in the largest event. Bytes become text, and a BOM vanishes, elsewhere.

/** One event. `type` is the `event:` field, '' when absent. */
export type SseEvent = { readonly type: string; readonly data: string };

/** The events completed by a piece of text, or the reason to stop. */
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
 * @param eventLengthMax Characters one event may have before the parser gives up with `overflow`.
 */
export function createSseParser(eventLengthMax: number): SseParser {
  let partialLine: string[] = [];
  let partialLength = 0;
  let endedInCr = false;
  let data: string[] = [];
  let dataLength = 0;
  let type = '';
  let events: SseEvent[] = [];

  function endLine(line: string): void {
    if (line === '') {
      if (data.length > 0) events.push({ type, data: data.length === 1 ? (data[0] ?? '') : data.join('\n') });
      data = [];
      dataLength = 0;
      type = '';
      return;
    }
    const colon = line.indexOf(':');
    if (colon === 0) return;
    const field = colon === -1 ? line : line.slice(0, colon);
    const value = colon === -1 ? '' : line.slice(line.charCodeAt(colon + 1) === 0x20 ? colon + 2 : colon + 1);
    if (field === 'data') {
      data.push(value);
      dataLength += value.length;
    } else if (field === 'event') type = value;
  }

  function takeLine(rest: string): void {
    if (partialLine.length === 0) return endLine(rest);
    partialLine.push(rest);
    const line = partialLine.join('');
    partialLine = [];
    partialLength = 0;
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
      from = at + 1;
      if (at !== nextCr) continue;
      if (from === text.length) endedInCr = true;
      else if (text.charCodeAt(from) === 0x0a) from += 1;
    }
    if (from >= text.length) return;
    partialLine.push(text.slice(from));
    partialLength += text.length - from;
  }

  function drain(): readonly SseEvent[] {
    const batch = events;
    events = [];
    return batch;
  }

  return {
    push(text) {
      feed(text);
      return { events: drain(), overflow: partialLength + dataLength > eventLengthMax };
    },
    isBetweenEvents: () => partialLength === 0 && data.length === 0 && type === '' && !endedInCr,
    pending: () => partialLength + dataLength,
    end() {
      if (partialLine.length > 0) takeLine('');
      endLine('');
      return drain()[0] ?? null;
    },
  };
}
