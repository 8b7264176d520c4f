// Invents a string or a number within the bounds of a JSON Schema. Seeded; a `pattern` is not understood.

/** Draws whole numbers from 0 to below a limit. */
export type Random = (limit: number) => number;
export type Schema = Readonly<Record<string, unknown>>;

const lengthMax = 1000;
const spreadMax = 100;
const words = ['road', 'toll', 'bridge', 'gate', 'market', 'river', 'lamp', 'mule'];

// The formats that callers' validators check.
const samples: ReadonlyMap<unknown, string> = new Map([
  ['date-time', '2026-12-01T07:30:00Z'],
  ['date', '2026-12-01'],
  ['time', '07:30:00Z'],
  ['duration', 'P1D'],
  ['email', 'toll@example.com'],
  ['hostname', 'example.com'],
  ['ipv4', '192.0.2.1'],
  ['ipv6', '2001:db8::1'],
  ['uuid', '7c9e6679-7425-40de-944b-e07fc1f90ae7'],
  ['uri', 'https://example.com/road'],
]);

/** A word of the stock. */
export function inventWord(random: Random): string {
  return words[random(words.length)] ?? '';
}

/** A string: of the schema's format, or a word brought to its length. */
export function inventString(schema: Schema, random: Random): string {
  const least = Math.min(readNumber(schema, 'minLength', 0), lengthMax);
  const word = samples.get(schema['format']) ?? inventWord(random);
  return word.padEnd(least, '.').slice(0, readNumber(schema, 'maxLength', lengthMax));
}

/** A number: a multiple of its step between its bounds. */
export function inventNumber(schema: Schema, random: Random, whole: boolean): number {
  const multipleOf = readNumber(schema, 'multipleOf', 0);
  const step = multipleOf > 0 ? multipleOf : whole ? 1 : 0.5;
  const lows = [readNumber(schema, 'minimum', -Infinity), readNumber(schema, 'exclusiveMinimum', -Infinity)] as const;
  const highs = [readNumber(schema, 'maximum', Infinity), readNumber(schema, 'exclusiveMaximum', Infinity)] as const;
  const highest = Math.min(Math.floor(highs[0] / step), Math.ceil(highs[1] / step) - 1);
  const least = Math.max(Math.ceil(lows[0] / step), Math.floor(lows[1] / step) + 1);
  const lowest = least === -Infinity ? Math.min(0, highest) : least;
  // Between bounds narrower than a step there still is room for a fraction.
  if (highest < lowest && !whole && multipleOf <= 0) return (Math.max(...lows) + Math.min(...highs)) / 2;
  const value = (lowest + random(Math.max(1, Math.min(spreadMax, highest - lowest + 1)))) * step;
  return Number.isInteger(step) ? value : Number(value.toPrecision(12));
}

/** A finite number of a schema. */
export function readNumber(schema: Schema, name: string, fallback: number): number {
  const value = schema[name];
  return typeof value === 'number' && Number.isFinite(value) ? value : fallback;
}
