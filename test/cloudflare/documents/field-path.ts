// Values in JSON by the path that an error names: `messages[1].tool_calls[0].function.arguments`.

import { type Fields } from './call.ts';

/** What a path leads to where there is nothing. */
export const ABSENT = '(absent)';

/** The value at a path. */
export function readAt(fields: Fields, path: string): unknown {
  let value: unknown = fields;
  for (const key of toKeys(path)) {
    if (typeof value !== 'object' || value === null || !Object.hasOwn(value, key)) return ABSENT;
    value = Reflect.get(value, key);
  }
  return value;
}

/** A copy with the value at a path set; {@link ABSENT} removes it. Everything above the last step must be there. */
export function putAt(fields: Fields, path: string, value: unknown): Fields {
  const copy = structuredClone(fields);
  const keys = toKeys(path);
  const last = keys.pop() ?? '';
  let holder: unknown = copy;
  for (const key of keys) holder = typeof holder === 'object' && holder !== null ? Reflect.get(holder, key) : undefined;
  if (typeof holder !== 'object' || holder === null) throw new Error(`no place for ${path}`);
  if (value === ABSENT) Reflect.deleteProperty(holder, last);
  else Reflect.set(holder, last, value);
  return copy;
}

function toKeys(path: string): string[] {
  return path.replaceAll(/\[(\d+)\]/g, '.$1').split('.');
}
