// Reads a request's body by a schema and says what is wrong with it as an engine does: shortly. The caller's good errors
// are made in the gateway, before a body comes here.

import type * as z from 'zod';

/** What the engine cannot read. */
export interface ParseFault {
  readonly ok: false;
  readonly message: string;
  readonly param: string | null;
}

interface StreamFields {
  readonly stream?: boolean | null | undefined;
  readonly stream_options?: object | null | undefined;
}

/** Parses the text of a body. */
export function parseBody<T extends StreamFields>(
  schema: z.ZodType<T>,
  text: string,
): { readonly ok: true; readonly body: T } | ParseFault {
  const json = parseJson(text);
  if (!json.ok) return { ok: false, message: 'The body is not JSON.', param: null };
  const parsed = schema.safeParse(json.value);
  if (!parsed.success) {
    const issue = parsed.error.issues[0];
    return { ok: false, message: issue?.message ?? 'Invalid request.', param: issue?.path.join('.') || null };
  }
  const body = parsed.data;
  if (body.stream_options && body.stream !== true) {
    return { ok: false, message: 'Stream options can only be set when stream is true.', param: 'stream_options' };
  }
  return { ok: true, body };
}

function parseJson(text: string): { readonly ok: true; readonly value: unknown } | { readonly ok: false } {
  try {
    return { ok: true, value: JSON.parse(text) };
  } catch {
    return { ok: false };
  }
}
