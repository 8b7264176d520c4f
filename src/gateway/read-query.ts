// The parameters of a read's query string, one by one, with the errors of SPEC §3. A parameter that nobody knows is
// refused: a misspelt filter would otherwise answer with everything.

import { type GatewayError } from '../core/errors.ts';
import { err, ok, type Result } from '../core/result.ts';
import { invalidType, missingParameter, parameterError } from '../openai/parameter-error.ts';

/** A query whose parameters are all known, each given at most once. */
export type Query = ReadonlyMap<string, string>;

/** Parses a query string. */
export function parseQuery(search: URLSearchParams, known: readonly string[]): Result<Query, GatewayError> {
  const query = new Map<string, string>();
  for (const [name, value] of search) {
    const param = name.slice(0, 64);
    if (!known.includes(name)) {
      return err(parameterError('unknown_parameter', param, `Unknown parameter: '${param}'.`));
    }
    if (query.has(name)) return err(parameterError('invalid_value', name, `Invalid '${name}': given more than once.`));
    query.set(name, value);
  }
  return ok(query);
}

/** A whole number within bounds; `fallback` when it is not given. */
export function readInteger(
  query: Query,
  name: string,
  { min, max, fallback }: { readonly min: number; readonly max: number; readonly fallback: number },
): Result<number, GatewayError> {
  const text = query.get(name);
  if (text === undefined) return ok(fallback);
  if (!/^-?\d+$/.test(text)) return err(invalidType(name, 'an integer', text));
  const value = Number(text);
  if (value >= min && value <= max) return ok(value);
  const below = value < min;
  const message =
    `Invalid '${name}': integer ${below ? 'below minimum' : 'above maximum'} value. ` +
    `Expected a value ${below ? `>= ${min}` : `<= ${max}`}, but got ${text.slice(0, 64)} instead.`;
  return err(parameterError(below ? 'integer_below_min_value' : 'integer_above_max_value', name, message));
}

/** One of the allowed values; `fallback` when it is not given. */
export function readOneOf<const T extends string, const F extends T | null>(
  query: Query,
  name: string,
  allowed: readonly T[],
  fallback: F,
): Result<T | F, GatewayError> {
  const text = query.get(name);
  if (text === undefined) return ok(fallback);
  const value = allowed.find((candidate) => candidate === text);
  if (value !== undefined) return ok(value);
  const wanted = allowed.map((candidate) => `'${candidate}'`).join(', ');
  const message = `Invalid value: '${text.slice(0, 64)}'. Supported values are: ${wanted}.`;
  return err(parameterError('invalid_value', name, message));
}

/** A text of a given form; null when it is not given. `expected` completes "Expected …". */
export function readText(
  query: Query,
  name: string,
  form: RegExp,
  expected: string,
): Result<string | null, GatewayError> {
  const text = query.get(name);
  if (text === undefined) return ok(null);
  if (form.test(text)) return ok(text);
  return err(parameterError('invalid_value', name, `Invalid '${name}': '${text.slice(0, 64)}'. Expected ${expected}.`));
}

const TIME = /^(\d{4})-(\d{2})-(\d{2})(?:T\d{2}:\d{2}(?::\d{2}(?:\.\d{1,9})?)?(?:Z|[+-]\d{2}:\d{2}))?$/i;

/** A span of time in Unix milliseconds: from it on, up to but without its end. What is not given is null. */
export type TimeSpan = { readonly fromMs: number | null; readonly toMs: number | null };

/** Reads `from` and `to`: ISO 8601 (a date is its midnight in UTC) or Unix seconds; `to` must be the later. */
export function readTimeSpan(query: Query): Result<TimeSpan, GatewayError> {
  const from = readTimeMs(query, 'from');
  if (!from.ok) return from;
  const to = readTimeMs(query, 'to');
  if (!to.ok) return to;
  if (from.value !== null && to.value !== null && to.value <= from.value) {
    return err(parameterError('invalid_value', 'to', "Invalid 'to': expected a time after 'from'."));
  }
  return ok({ fromMs: from.value, toMs: to.value });
}

/** Reads `from` and `to`, both of which must be there. */
export function readWholeTimeSpan(query: Query): Result<{ fromMs: number; toMs: number }, GatewayError> {
  const span = readTimeSpan(query);
  if (!span.ok) return span;
  const { fromMs, toMs } = span.value;
  if (fromMs === null || toMs === null) return err(missingParameter(fromMs === null ? 'from' : 'to'));
  return ok({ fromMs, toMs });
}

function readTimeMs(query: Query, name: string): Result<number | null, GatewayError> {
  const text = query.get(name);
  if (text === undefined) return ok(null);
  if (/^\d{1,11}$/.test(text)) return ok(Number(text) * 1000);
  // A plus sign that was not encoded arrives as a space.
  const iso = text.replace(' ', '+');
  const [, year, month, day] = TIME.exec(iso) ?? [];
  const timeMs = isDay(Number(year), Number(month), Number(day)) ? Date.parse(iso) : NaN;
  if (!Number.isNaN(timeMs)) return ok(timeMs);
  const message =
    `Invalid '${name}': '${text.slice(0, 64)}'. ` +
    "Expected a time in ISO 8601 such as '2026-12-01' or '2026-12-01T10:00:00Z', or Unix seconds.";
  return err(parameterError('invalid_value', name, message));
}

/** Whether the day exists; `Date.parse` would take the 31st of February for a day in March. */
function isDay(year: number, month: number, day: number): boolean {
  return month >= 1 && month <= 12 && day >= 1 && day <= new Date(Date.UTC(year, month, 0)).getUTCDate();
}
