// The second branch of a teed body whose first is piped natively: it holds what passed by, is emptied in steps, and
// tells silence from a slow client. When the engine falls silent the stream is read on from here. Positions are counted
// in characters, which come out the same here and in the pipe whatever the bytes are.

import { sleep } from './deadline.ts';
import { type HeldBytes } from './byte-budget.ts';
import { type TextReader } from './text-reader.ts';

/** The copy of a stream that passes by elsewhere. */
export type StreamCopy = {
  /** So many characters more have passed by. */
  readonly note: (length: number) => void;
  /** Whether nothing comes that has not passed by. False: there is more, and the client does not take it. */
  readonly isSilent: () => Promise<boolean>;
  /** Reads on behind what passed by. The branch it came from must be at its end or given up. */
  readonly readOn: () => TextReader;
  readonly cancel: () => Promise<void>;
};

/** Characters that may pass before the copy is emptied of them. */
const STEP = 16 * 1024;
const CHUNK_BYTES = 16 * 1024;
/** What has arrived is handed over at once: a read that takes longer waits for the engine. */
const SILENT_MS = 20;

/** Creates the copy of a body from where the pipe begins. */
export function createStreamCopy(body: ReadableStream<Uint8Array>, held: HeldBytes): StreamCopy {
  const reader = body.getReader({ mode: 'byob' });
  const decoder = new TextDecoder('utf-8', { fatal: false, ignoreBOM: true });
  let passed = 0;
  let counted = 0;
  let taken = 0;
  /** The last text read: what of it has not passed by is not lost. */
  let latest = '';
  let end: 'closed' | 'broken' | null = null;
  let reading: Promise<void> | null = null;

  /** Reads at most `bytes` once; one read at a time. */
  function read(bytes: number): Promise<void> {
    reading ??= readOnce(bytes).finally(() => {
      reading = null;
    });
    return reading;
  }

  async function readOnce(bytes: number): Promise<void> {
    try {
      const { done, value } = await reader.read(new Uint8Array(bytes));
      latest = done ? decoder.decode() : decoder.decode(value, { stream: true });
      if (done) end = 'closed';
    } catch {
      latest = decoder.decode();
      end = 'broken';
    }
    taken += latest.length;
    count(passed - taken);
  }

  /** Counts what is held of the isolate's bytes. */
  function count(length: number): void {
    const more = Math.max(0, length) - counted;
    counted += more;
    if (more > 0) held.add(more);
    else held.drop(-more);
  }

  /** Takes what has passed by, which is all there: a character has at least a byte, so no read asks for more. */
  async function catchUp(): Promise<void> {
    const behind = passed - taken;
    if (behind <= 0 || end !== null) return;
    await read(behind);
    await catchUp();
  }

  return {
    note(length) {
      passed += length;
      count(passed - taken);
      if (passed - taken >= STEP && end === null) void read(passed - taken);
    },
    async isSilent() {
      await catchUp();
      if (taken > passed || end !== null) return false;
      const more = read(CHUNK_BYTES).then(() => false);
      return Promise.race([more, sleep(SILENT_MS).then(() => true)]);
    },
    readOn: () => ({
      async read() {
        await catchUp();
        if (taken <= passed && end === null) await read(CHUNK_BYTES);
        const text = taken > passed ? latest.slice(passed - taken) : '';
        passed = taken;
        return end === null ? { type: 'text', text } : { type: 'end', text, broken: end === 'broken' };
      },
      async cancel() {
        await reader.cancel().catch(() => undefined);
      },
      split: () => null,
    }),
    async cancel() {
      await reader.cancel().catch(() => undefined);
    },
  };
}
