// Reads an upstream body as batches of server-sent events, one batch per chunk that completes any. How a body ends is
// told apart here: at its own end, or broken off.

import { parseJsonObject } from '../core/json-read.ts';
import { type HeldBytes } from './byte-budget.ts';
import { createSseParser, type SseEvent } from '../core/sse.ts';

/** Events, or the end: `leftover` is an event without its blank line, `broken` says that the connection failed. */
export type Batch =
  | { readonly type: 'events'; readonly events: readonly SseEvent[] }
  | { readonly type: 'end'; readonly leftover: SseEvent | null; readonly broken: boolean }
  | { readonly type: 'overflow' };

/** A reader of one body. */
export type EventReader = {
  /** The next batch; waits until bytes complete at least one event. Never rejects. */
  readonly read: () => Promise<Batch>;
  /** Gives the body up; the upstream is closed. */
  readonly cancel: () => Promise<void>;
};

/** Creates a reader that gives up (`overflow`) when one event has more than `eventBytesMax` characters. */
export function createEventReader(
  body: ReadableStream<Uint8Array>,
  eventBytesMax: number,
  held: HeldBytes,
): EventReader {
  const reader = body.getReader();
  const parser = createSseParser(eventBytesMax);
  let pending = 0;
  return {
    async read() {
      for (;;) {
        const chunk = await readChunk(reader);
        if (chunk === 'broken' || chunk === 'done') {
          return { type: 'end', leftover: keepIfWhole(parser.end()), broken: chunk === 'broken' };
        }
        const { events, overflow } = parser.push(chunk);
        const nowPending = parser.pending();
        if (nowPending > pending) held.add(nowPending - pending);
        else if (nowPending < pending) held.drop(pending - nowPending);
        pending = nowPending;
        if (overflow) return { type: 'overflow' };
        if (events.length > 0) return { type: 'events', events };
      }
    },
    async cancel() {
      // A body that is already broken rejects its own cancellation: there is nothing left to close.
      await reader.cancel().catch(() => undefined);
    },
  };
}

/** A half event is dropped (SPEC §7): JSON that was cut does not parse. */
function keepIfWhole(event: SseEvent | null): SseEvent | null {
  if (event === null) return null;
  return event.data.trim() === '[DONE]' || parseJsonObject(event.data) !== null ? event : null;
}

async function readChunk(reader: ReadableStreamDefaultReader<Uint8Array>): Promise<Uint8Array | 'done' | 'broken'> {
  try {
    const { done, value } = await reader.read();
    return done ? 'done' : value;
  } catch {
    return 'broken';
  }
}
