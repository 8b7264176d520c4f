// Brings a JSON Schema into one piece: a local `$ref` is followed, `allOf` is merged. Pure.

import type { Schema } from './invent-scalar.ts';

// References may lead in a circle, and several at once would make it a tree.
const hopsMax = 16;

/**
 * The schema without `$ref` and `allOf` at its top.
 *
 * @param spend Counts one step; false when there has been enough work.
 */
export function flattenSchema(schema: unknown, root: unknown, spend: () => boolean, hops = 0): Schema {
  if (!isSchema(schema)) return {};
  if (hops >= hopsMax || !spend()) return schema;
  const { $ref: reference, allOf, ...own } = schema;
  const parts: unknown[] = Array.isArray(allOf) ? [...allOf] : [];
  if (typeof reference === 'string') parts.unshift(lookUp(root, reference));
  return parts.reduceRight<Schema>((sum, part) => mergeSchemas(flattenSchema(part, root, spend, hops + 1), sum), own);
}

/** Both schemas at once; where they speak of the same keyword the second is heard. */
export function mergeSchemas(first: Schema, second: Schema): Schema {
  const merged: Record<string, unknown> = { ...first, ...second };
  const [properties, added] = [first['properties'], second['properties']];
  if (isSchema(properties) && isSchema(added)) merged['properties'] = { ...properties, ...added };
  const [required, more] = [first['required'], second['required']];
  if (Array.isArray(required) && Array.isArray(more)) merged['required'] = [...required, ...more];
  return merged;
}

/** Whether a value is a schema that says something; `true` and `false` are none. */
export function isSchema(value: unknown): value is Schema {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** What a reference such as `#/$defs/Step` points at. */
function lookUp(root: unknown, reference: string): unknown {
  const [start, ...path] = reference.split('/');
  if (start !== '#') return undefined;
  const names = path.map((name) => name.replaceAll('~1', '/').replaceAll('~0', '~'));
  return names.reduce<unknown>(
    (at, name) =>
      typeof at === 'object' && at !== null && Object.hasOwn(at, name) ? Reflect.get(at, name) : undefined,
    root,
  );
}
