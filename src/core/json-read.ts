// Picking typed values out of JSON an engine sent. Nothing here throws.

/** A JSON object, read-only. */
export type JsonObject = Readonly<Record<string, unknown>>;

/** Whether a value is an object and not an array or null. */
export function isObject(value: unknown): value is JsonObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** The value if it is an object, else an empty one. */
export function readObject(value: unknown): JsonObject {
  return isObject(value) ? value : {};
}

/** The value if it is a string, else ''. */
export function readText(value: unknown): string {
  return typeof value === 'string' ? value : '';
}

/** The value if it is a whole number from 0, else null. */
export function readCount(value: unknown): number | null {
  return typeof value === 'number' && Number.isSafeInteger(value) && value >= 0 ? value : null;
}

/** Parses a text that should be a JSON object; null when it is not. */
export function parseJsonObject(text: string): JsonObject | null {
  try {
    const value: unknown = JSON.parse(text);
    return isObject(value) ? value : null;
  } catch {
    return null;
  }
}
