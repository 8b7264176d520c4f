// Reads an upstream's whole body as text, up to a bound. The body is given up at the bound, never held beyond it.

import { type HeldBytes } from './byte-budget.ts';

/** The text of a response; null when it broke off or has more than `bytesMax` bytes. */
export async function readBodyText(response: Response, bytesMax: number, held: HeldBytes): Promise<string | null> {
  const { body } = response;
  if (body === null) return '';
  const reader: ReadableStreamDefaultReader<Uint8Array> = body.getReader();
  const decoder = new TextDecoder();
  let text = '';
  let bytes = 0;
  try {
    for (;;) {
      const { done, value } = await reader.read();
      if (done) return text + decoder.decode();
      bytes += value.byteLength;
      held.add(value.byteLength);
      if (bytes > bytesMax) {
        await reader.cancel();
        return null;
      }
      text += decoder.decode(value, { stream: true });
    }
  } catch {
    return null;
  }
}
