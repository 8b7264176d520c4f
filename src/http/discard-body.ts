// Reads a request body that nobody wants to its end. An answer that leaves while the client still sends breaks the
// connection under it: the client then sees a reset and not the error that was meant for it.

import { withDeadline } from '../gateway/deadline.ts';

const DISCARDED_BYTES_MAX = 32 * 1024 * 1024;
const DISCARDING_MS_MAX = 5000;

/** Discards what is left of a body that no one has begun to read; bounded in bytes and time. Never rejects. */
export async function discardBody({ body, bodyUsed }: Request): Promise<void> {
  if (body === null || bodyUsed || body.locked) return;
  await discardRest(body.getReader());
}

/** Discards what a reader has not read yet; bounded in bytes and time. Never rejects. */
export async function discardRest(reader: ReadableStreamDefaultReader<Uint8Array>): Promise<void> {
  const discarding = readToEnd(reader);
  // At the bound the reader is given up; cancelling a body that broke off in the meantime is no one's concern.
  const giveUp = (): void => void reader.cancel().catch(() => undefined);
  await withDeadline(discarding, DISCARDING_MS_MAX, giveUp);
}

async function readToEnd(reader: ReadableStreamDefaultReader<Uint8Array>): Promise<void> {
  let bytes = 0;
  try {
    while (bytes <= DISCARDED_BYTES_MAX) {
      const { done, value } = await reader.read();
      if (done) return;
      bytes += value.byteLength;
    }
    await reader.cancel();
  } catch {
    // The client broke off: there is nothing left to read.
  }
}
