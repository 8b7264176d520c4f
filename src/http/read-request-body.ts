// Reads a request body under its rules: content type, encoding, and a size counted while reading, after decoding
// (SPEC §3, §10). A gzip bomb is dropped as soon as it shows itself.

import { type GatewayError } from '../core/errors.ts';
import { type HeldBytes } from '../gateway/byte-budget.ts';
import { discardRest } from './discard-body.ts';
import { err, ok, type Result } from '../core/result.ts';

/** The largest body taken; exactly this size passes. */
export const BODY_BYTES_MAX = 5 * 1024 * 1024;

const RATIO_MAX = 100;
const RATIO_FREE_BYTES = 1024 * 1024;

/** The decoded bytes of a JSON request body, counted against the isolate's budget as they come. Never rejects. */
export async function readRequestBody(request: Request, held: HeldBytes): Promise<Result<Uint8Array, GatewayError>> {
  const contentType = request.headers.get('content-type') ?? '';
  if (!isJsonType(contentType)) return err({ kind: 'unsupported_content_type', contentType: contentType.slice(0, 64) });
  const contentEncoding = (request.headers.get('content-encoding') ?? 'identity').trim().toLowerCase();
  if (contentEncoding !== 'identity' && contentEncoding !== 'gzip' && contentEncoding !== 'deflate') {
    return err({ kind: 'unsupported_content_encoding', contentEncoding: contentEncoding.slice(0, 64) });
  }
  const announced = Number(request.headers.get('content-length') ?? '0');
  if (announced > BODY_BYTES_MAX) return tooLarge();
  const { body } = request;
  if (body === null) return ok(new Uint8Array());
  return contentEncoding === 'identity' ? readBytes(body, held) : readDecoded(body, held, contentEncoding);
}

/** Missing, `application/json` with any parameters, and `*+json` pass. */
function isJsonType(contentType: string): boolean {
  const essence = (contentType.split(';')[0] ?? '').trim().toLowerCase();
  return essence === '' || essence === 'application/json' || /^[a-z0-9.+-]+\/[a-z0-9.+-]+\+json$/.test(essence);
}

async function readDecoded(
  body: ReadableStream<Uint8Array>,
  held: HeldBytes,
  encoding: 'gzip' | 'deflate',
): Promise<Result<Uint8Array, GatewayError>> {
  let encodedBytes = 0;
  const counter = new TransformStream<Uint8Array, Uint8Array>({
    transform(chunk, controller) {
      encodedBytes += chunk.byteLength;
      controller.enqueue(chunk);
    },
  });
  const decoded = body.pipeThrough(counter).pipeThrough(new DecompressionStream(encoding));
  return readBytes(decoded, held, (bytes) => bytes > RATIO_FREE_BYTES && bytes > encodedBytes * RATIO_MAX);
}

async function readBytes(
  body: ReadableStream<Uint8Array>,
  held: HeldBytes,
  isBomb: (bytes: number) => boolean = () => false,
): Promise<Result<Uint8Array, GatewayError>> {
  const reader = body.getReader();
  const chunks: Uint8Array[] = [];
  let bytes = 0;
  try {
    for (;;) {
      const { done, value } = await reader.read();
      if (done) return ok(joinBytes(chunks, bytes));
      bytes += value.byteLength;
      if (bytes > BODY_BYTES_MAX || isBomb(bytes)) {
        await discardRest(reader);
        return tooLarge();
      }
      if (!held.add(value.byteLength)) {
        await discardRest(reader);
        return err({ kind: 'upstream', failure: 'server_is_overloaded' });
      }
      chunks.push(value);
    }
  } catch {
    return err({ kind: 'invalid_json', reason: 'The body of your request broke off or could not be decoded.' });
  }
}

function joinBytes(chunks: readonly Uint8Array[], bytes: number): Uint8Array {
  const [only] = chunks;
  if (chunks.length === 1 && only !== undefined) return only;
  const joined = new Uint8Array(bytes);
  let at = 0;
  for (const chunk of chunks) {
    joined.set(chunk, at);
    at += chunk.byteLength;
  }
  return joined;
}

function tooLarge(): Result<never, GatewayError> {
  return err({ kind: 'request_too_large', bodyBytesMax: BODY_BYTES_MAX });
}
