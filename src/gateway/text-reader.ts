// Reads an upstream body as text, one piece per chunk, whatever bytes a character is split between. How a body ends is
// told apart here: at its own end, or broken off.

/** Text, or the end with what was left of a character. `broken`: the connection failed. */
export type TextPiece =
  | { readonly type: 'text'; readonly text: string }
  | { readonly type: 'end'; readonly text: string; readonly broken: boolean };

/** A reader of one body. */
export type TextReader = {
  /** The next piece, which may be empty. Never rejects; not called again after the end. */
  readonly read: () => Promise<TextPiece>;
  /** Gives the body up; the upstream is closed. */
  readonly cancel: () => Promise<void>;
  /**
   * What has not been read of the body, twice; the reader is of no use afterwards. Null where it must be read on here: in
   * the middle of a character, and when the body is already broken.
   */
  readonly split: () => readonly [ReadableStream<Uint8Array>, ReadableStream<Uint8Array>] | null;
};

/** Creates a reader of a body that nobody else reads. */
export function createTextReader(body: ReadableStream<Uint8Array>): TextReader {
  const reader = body.getReader();
  const decoder = new TextDecoder();
  let endsInAscii = true;
  let isBroken = false;
  return {
    async read() {
      if (isBroken) return { type: 'end', text: '', broken: true };
      try {
        const { done, value } = await reader.read();
        if (done) return { type: 'end', text: decoder.decode(), broken: false };
        endsInAscii = (value.at(-1) ?? 0) < 0x80;
        return { type: 'text', text: decoder.decode(value, { stream: true }) };
      } catch {
        return { type: 'end', text: decoder.decode(), broken: true };
      }
    },
    async cancel() {
      // A body that is already broken rejects its own cancellation: there is nothing left to close.
      await reader.cancel().catch(() => undefined);
    },
    split() {
      if (!endsInAscii) return null;
      reader.releaseLock();
      try {
        return body.tee();
      } catch {
        // workerd refuses to tee a body whose fetch was aborted, and leaves it locked.
        isBroken = true;
        return null;
      }
    },
  };
}
