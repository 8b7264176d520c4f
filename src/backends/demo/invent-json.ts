// Invents a JSON value for a JSON Schema: seeded, bounded, and valid for the common keywords (type, properties, required,
// enum, const, items, anyOf, oneOf, minimum, minItems, minLength). What it does not know it lets pass.

/** Draws whole numbers from 0 to below a limit. */
type Random = (limit: number) => number;
type Schema = Readonly<Record<string, unknown>>;

const depthMax = 8;
const itemsMax = 3;
const propertiesMax = 64;
const words = ['road', 'toll', 'bridge', 'gate', 'market', 'river', 'lamp', 'mule'];

/** A value for a schema; without one, a small object that says what it is. */
export function inventJson(schema: unknown, random: Random, depth = 0): unknown {
  if (!isSchema(schema)) return { answer: pick(words, random), engine: 'demo' };
  if ('const' in schema) return schema['const'];
  const options = [schema['enum'], schema['anyOf'], schema['oneOf']].find(Array.isArray);
  if (Array.isArray(options) && options.length > 0) {
    const chosen: unknown = options[random(options.length)];
    return options === schema['enum'] ? chosen : inventJson(chosen, random, depth);
  }
  return inventTyped(readType(schema), schema, random, depth);
}

function inventTyped(type: string, schema: Schema, random: Random, depth: number): unknown {
  switch (type) {
    case 'object':
      return inventObject(schema, random, depth);
    case 'array':
      return inventArray(schema, random, depth);
    case 'integer':
      return Math.ceil(readNumber(schema, 'minimum', 0)) + random(Math.max(1, Math.min(100, readRange(schema))));
    case 'number':
      return readNumber(schema, 'minimum', 0) + random(Math.max(1, Math.min(100, readRange(schema)))) * 0.5;
    case 'boolean':
      return random(2) === 1;
    case 'null':
      return null;
    default:
      return pick(words, random)
        .padEnd(readNumber(schema, 'minLength', 0), '.')
        .slice(0, readNumber(schema, 'maxLength', 200));
  }
}

function inventObject(schema: Schema, random: Random, depth: number): unknown {
  const properties = isSchema(schema['properties']) ? Object.entries(schema['properties']) : [];
  const required = new Set(Array.isArray(schema['required']) ? schema['required'] : []);
  // Deep down only what must be there, so that a schema that holds itself comes to an end.
  const wanted = properties.slice(0, propertiesMax).filter(([name]) => depth < 3 || required.has(name));
  if (depth >= depthMax) return {};
  return Object.fromEntries(wanted.map(([name, inner]) => [name, inventJson(inner, random, depth + 1)]));
}

function inventArray(schema: Schema, random: Random, depth: number): unknown {
  const least = Math.min(readNumber(schema, 'minItems', 1), 100);
  const count = depth >= depthMax ? 0 : Math.max(least, 1 + random(itemsMax));
  const most = Math.min(count, readNumber(schema, 'maxItems', count));
  return Array.from({ length: most }, () => inventJson(schema['items'] ?? { type: 'string' }, random, depth + 1));
}

function readType(schema: Schema): string {
  const type = schema['type'];
  const first: unknown = Array.isArray(type) ? type.find((name) => name !== 'null') : type;
  if (typeof first === 'string') return first;
  return 'properties' in schema ? 'object' : 'items' in schema ? 'array' : 'string';
}

/** How many whole steps lie between the bounds. */
function readRange(schema: Schema): number {
  return Math.floor(readNumber(schema, 'maximum', Infinity) - Math.ceil(readNumber(schema, 'minimum', 0))) + 1;
}

function readNumber(schema: Schema, name: string, fallback: number): number {
  const value = schema[name];
  return typeof value === 'number' && Number.isFinite(value) ? value : fallback;
}

function pick(stock: readonly string[], random: Random): string {
  return stock[random(stock.length)] ?? '';
}

function isSchema(value: unknown): value is Schema {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
