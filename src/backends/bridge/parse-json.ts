// JSON from an engine, which may be anything. It checks no shape.

/** The value of a JSON text; null when it is none, or was not read. */
export function parseJson(text: string | null): unknown {
  try {
    return text === null ? null : JSON.parse(text);
  } catch {
    return null;
  }
}
