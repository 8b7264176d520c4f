// Invents a JSON value for a JSON Schema: seeded, bounded, and valid for the common keywords (type, properties, required,
// enum, const, anyOf, oneOf, allOf, local $ref, items, prefixItems, the bounds of numbers, lengths and counts, format).
// What it does not know (pattern, not, dependencies) it lets pass.

import { flattenSchema, isSchema, mergeSchemas } from './flatten-schema.ts';
import { inventNumber, inventString, inventWord, readNumber, type Random, type Schema } from './invent-scalar.ts';

// From here on only what must be there, so that a schema that holds itself comes to an end.
const shallowDepth = 3;
const depthMax = 32;
const itemsMax = 3;
/** All values and followed references of one document. */
const workMax = 2000;

interface Work {
  readonly root: unknown;
  readonly random: Random;
  readonly spend: () => boolean;
}

/** A value for a schema; without one, a small object that says what it is. */
export function inventJson(schema: unknown, random: Random): unknown {
  let left = workMax;
  return inventValue({ root: schema, random, spend: () => (left -= 1) >= 0 }, schema, 0);
}

function inventValue(work: Work, schema: unknown, depth: number): unknown {
  const { random } = work;
  if (!isSchema(schema)) return { answer: inventWord(random), engine: 'demo' };
  const plain = flattenSchema(schema, work.root, work.spend);
  if ('const' in plain) return plain['const'];
  const listed = plain['enum'];
  if (Array.isArray(listed) && listed.length > 0) return listed[random(listed.length)];
  const { anyOf, oneOf, ...own } = plain;
  const options: unknown = anyOf ?? oneOf;
  if (!Array.isArray(options) || options.length === 0 || depth >= depthMax) return inventTyped(work, own, depth);
  const chosen = mergeSchemas(own, chooseOption(work, options, depth));
  // One level down: options may lead back to themselves.
  return inventValue(work, chosen, depth + 1);
}

/** One of several schemas; deep down one that ends there, if there is one. */
function chooseOption({ root, random, spend }: Work, options: readonly unknown[], depth: number): Schema {
  const schemas = options.map((option) => flattenSchema(option, root, spend));
  const ending =
    depth < shallowDepth ? [] : schemas.filter((schema) => !['object', 'array'].includes(readType(schema)));
  const stock = ending.length > 0 ? ending : schemas;
  return stock[random(stock.length)] ?? {};
}

function inventTyped(work: Work, schema: Schema, depth: number): unknown {
  const { random } = work;
  switch (readType(schema, depth >= shallowDepth)) {
    case 'object':
      return inventObject(work, schema, depth);
    case 'array':
      return inventArray(work, schema, depth);
    case 'integer':
      return inventNumber(schema, random, true);
    case 'number':
      return inventNumber(schema, random, false);
    case 'boolean':
      return random(2) === 1;
    case 'null':
      return null;
    default:
      return inventString(schema, random);
  }
}

function inventObject(work: Work, schema: Schema, depth: number): unknown {
  const properties = isSchema(schema['properties']) ? schema['properties'] : {};
  const required = readNames(schema['required']);
  const others = isSchema(schema['additionalProperties']) ? schema['additionalProperties'] : { type: 'string' };
  const known = new Map(Object.entries(properties));
  const wanted = new Set([...(depth < shallowDepth ? known.keys() : []), ...required]);
  const entries: [string, unknown][] = [];
  if (depth >= depthMax) return {};
  for (const name of wanted) {
    if (!work.spend()) break;
    entries.push([name, inventValue(work, known.get(name) ?? others, depth + 1)]);
  }
  return Object.fromEntries(entries);
}

function inventArray(work: Work, schema: Schema, depth: number): unknown {
  const heads: readonly unknown[] = Array.isArray(schema['prefixItems']) ? schema['prefixItems'] : [];
  const tail = schema['items'] ?? { type: 'string' };
  const usual = depth < shallowDepth ? Math.max(heads.length, 1 + work.random(itemsMax)) : 0;
  const most = Math.min(readNumber(schema, 'maxItems', Infinity), tail === false ? heads.length : Infinity);
  const count = depth >= depthMax ? 0 : Math.min(most, Math.max(readNumber(schema, 'minItems', 0), usual));
  const values = new Map<unknown, unknown>();
  for (let tries = 0; values.size < count && work.spend(); tries += 1) {
    const value = inventValue(work, heads[values.size] ?? tail, depth + 1);
    const key = schema['uniqueItems'] === true ? JSON.stringify(value) : tries;
    values.set(key, value);
  }
  return [...values.values()];
}

/** The one type to take; `brief` prefers null where it is allowed. */
function readType(schema: Schema, brief = false): string {
  const { type } = schema;
  if (Array.isArray(type)) {
    const names = readNames(type);
    const first = names.find((name) => name !== 'null');
    return first === undefined || (brief && names.includes('null')) ? 'null' : first;
  }
  if (typeof type === 'string') return type;
  if ('properties' in schema || 'required' in schema || 'additionalProperties' in schema) return 'object';
  return 'items' in schema || 'prefixItems' in schema ? 'array' : 'string';
}

function readNames(value: unknown): readonly string[] {
  return Array.isArray(value) ? value.filter((name) => typeof name === 'string') : [];
}
