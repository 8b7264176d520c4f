// The engine's error bodies: vLLM's nested form, whose `code` is the status as a number.
// They are meant for the gateway, which maps them; no caller sees them as they are.

/** An error answer in vLLM's form. */
export function toEngineError(status: number, type: string, message: string, param: string | null = null): Response {
  return Response.json({ error: { message, type, param, code: status } }, { status });
}

/** What the engine does not serve, and everything at the default export. */
export function toNotFound(): Response {
  return toEngineError(404, 'NotFoundError', 'Not Found');
}
