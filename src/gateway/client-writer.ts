// The client's side of a stream: writes queue in order and wait for the reader; a write that fails is its last. A body
// can be piped to it natively in between.

import { type Halt } from './halt.ts';
import { type RunEnd } from './run.ts';

/** The client of one stream. */
export type ClientWriter = {
  /** Writes text; false when the client is gone. */
  readonly write: (text: string) => Promise<boolean>;
  /** Writes the last bytes and closes, or drops a client that left. Tells the end that really came about. */
  readonly finish: (end: RunEnd, lastText: string) => Promise<RunEnd>;
  /** Drops a client that does not take what is written. */
  readonly giveUp: () => void;
  /**
   * Has the runtime pipe a body into the writable until its end, its break or the signal. Nothing may be written
   * meanwhile; how it ended is told when that may be done again.
   */
  readonly pipe: (body: ReadableStream<Uint8Array>, signal: AbortSignal) => Promise<'closed' | 'broken'>;
  /** Resolves when nothing can be written any more. */
  readonly closed: () => Promise<void>;
  /** Whether a write waits for the client, or nothing may be written any more. */
  readonly isBusy: () => boolean;
  readonly lastWriteMs: () => number;
};

/**
 * Creates the client of a writable. A client that leaves halts the request.
 *
 * @param onWrite Is told of each text before it is written.
 */
export function createClientWriter(
  writable: WritableStream<Uint8Array>,
  halt: Halt,
  now: () => number,
  onWrite: (text: string) => void,
): ClientWriter {
  const encoder = new TextEncoder();
  let writer: WritableStreamDefaultWriter<Uint8Array> | null = openWriter();
  let pending = 0;
  let lastWriteMs = now();

  function openWriter(): WritableStreamDefaultWriter<Uint8Array> {
    const opened = writable.getWriter();
    // The writable fails as soon as the runtime has seen that the client left; so does a writer that let go of it.
    opened.closed.catch(() => {
      if (opened === writer) halt.halt({ type: 'client_gone' });
    });
    return opened;
  }

  async function write(text: string): Promise<boolean> {
    if (writer === null) return false;
    pending += 1;
    try {
      onWrite(text);
      await writer.write(encoder.encode(text));
      return true;
    } catch {
      halt.halt({ type: 'client_gone' });
      return false;
    } finally {
      pending -= 1;
      lastWriteMs = now();
    }
  }

  return {
    write,
    async finish(end, lastText) {
      if (end.type === 'client_gone') {
        await writer?.abort().catch(() => undefined);
        return end;
      }
      pending += 1;
      if (lastText !== '' && !(await write(lastText))) return { type: 'client_gone' };
      await writer?.close().catch(() => undefined);
      return end;
    },
    giveUp() {
      lastWriteMs = Infinity;
      void writer?.abort().catch(() => undefined);
    },
    async pipe(body, signal) {
      const lent = writer;
      writer = null;
      lent?.releaseLock();
      const how = await body.pipeTo(writable, { signal, preventClose: true, preventAbort: true }).then(
        () => 'closed' as const,
        () => 'broken' as const,
      );
      lastWriteMs = now();
      writer = openWriter();
      return how;
    },
    async closed() {
      await writer?.closed.catch(() => undefined);
    },
    isBusy: () => pending > 0,
    lastWriteMs: () => lastWriteMs,
  };
}
