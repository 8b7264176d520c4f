// Query parameters of the reads: what is accepted, and the error of everything else.

import { describe, expect, test } from 'vitest';
import {
  parseQuery,
  type Query,
  readInteger,
  readOneOf,
  readText,
  readTimeSpan,
  readWholeTimeSpan,
} from '../../src/gateway/read-query.ts';

const of = (text: string): Query => new Map(new URLSearchParams(text));
const BOUNDS = { min: 1, max: 100, fallback: 20 };

test('§3 a parameter that is unknown, or there twice, is refused by name', () => {
  const parse = (text: string): unknown => parseQuery(new URLSearchParams(text), ['limit', 'from']);
  expect(parse('limit=1&from=2')).toMatchObject({ ok: true });
  expect(parse('limits=1')).toMatchObject({ ok: false, error: { code: 'unknown_parameter', param: 'limits' } });
  expect(parse('limit=1&limit=1')).toMatchObject({ ok: false, error: { code: 'invalid_value', param: 'limit' } });
  expect(parse('__proto__=1')).toMatchObject({ ok: false, error: { code: 'unknown_parameter' } });
});

test.each([
  ['', 20],
  ['limit=1', 1],
  ['limit=100', 100],
  ['limit=007', 7],
  ['limit=0', 'integer_below_min_value'],
  ['limit=-3', 'integer_below_min_value'],
  ['limit=101', 'integer_above_max_value'],
  ['limit=99999999999999999999', 'integer_above_max_value'],
  ['limit=', 'invalid_type'],
  ['limit=ten', 'invalid_type'],
  ['limit=1.5', 'invalid_type'],
  ['limit=1e1', 'invalid_type'],
  ['limit=null', 'invalid_type'],
])('§3 a whole number: "%s" is %s', (text, expected) => {
  const read = readInteger(of(text), 'limit', BOUNDS);
  expect(read).toMatchObject(
    typeof expected === 'number' ? { ok: true, value: expected } : { error: { code: expected, param: 'limit' } },
  );
});

test('§3 one of several values, and a text of a form', () => {
  expect(readOneOf(of('by=day'), 'by', ['day', 'hour'], null)).toMatchObject({ value: 'day' });
  expect(readOneOf(of(''), 'by', ['day', 'hour'], null)).toMatchObject({ value: null });
  const bad = readOneOf(of('by=Day'), 'by', ['day', 'hour'], null);
  const message = "Invalid value: 'Day'. Supported values are: 'day', 'hour'.";
  expect(bad).toMatchObject({ error: { code: 'invalid_value', param: 'by', message } });
  expect(readText(of('key=a-1'), 'key', /^[a-z0-9-]+$/, 'an id')).toMatchObject({ value: 'a-1' });
  expect(readText(of(''), 'key', /^[a-z0-9-]+$/, 'an id')).toMatchObject({ value: null });
  const wrong = readText(of('key=A!'), 'key', /^[a-z0-9-]+$/, 'an id');
  expect(wrong).toMatchObject({
    error: { code: 'invalid_value', param: 'key', message: "Invalid 'key': 'A!'. Expected an id." },
  });
});

describe('§9 from and to', () => {
  test.each([
    ['2026-12-01', '2026-12-01T00:00:00.000Z'],
    ['2026-12-01T10:00Z', '2026-12-01T10:00:00.000Z'],
    ['2026-12-01T10:00:00.5Z', '2026-12-01T10:00:00.500Z'],
    ['2026-12-01T10:00:00%2B02:00', '2026-12-01T08:00:00.000Z'],
    ['2026-12-01T10:00:00+02:00', '2026-12-01T08:00:00.000Z'],
    ['2028-02-29', '2028-02-29T00:00:00.000Z'],
    ['1764547200', '2025-12-01T00:00:00.000Z'],
    ['0', '1970-01-01T00:00:00.000Z'],
  ])('§9 %s is a time', (text, expected) => {
    const span = readTimeSpan(of(`from=${text}`));
    expect(span).toEqual({ ok: true, value: { fromMs: Date.parse(expected), toMs: null } });
  });

  test.each(['', 'yesterday', '2026-12', '2026-13-01', '2026-02-29', '2026-12-01T10:00:00', '2026-12-01T25:00:00Z'])(
    '§3 "%s" is none',
    (text) => {
      for (const name of ['from', 'to']) {
        const span = readTimeSpan(of(`${name}=${text}`));
        expect(span).toMatchObject({ ok: false, error: { code: 'invalid_value', param: name } });
      }
    },
  );

  test('§3 to comes after from', () => {
    const error = { code: 'invalid_value', param: 'to' };
    expect(readTimeSpan(of('from=2026-12-02&to=2026-12-01'))).toMatchObject({ ok: false, error });
    expect(readTimeSpan(of('from=2026-12-01&to=2026-12-01'))).toMatchObject({ ok: false, error });
    expect(readTimeSpan(of('from=2026-12-01&to=2026-12-02'))).toMatchObject({ ok: true });
  });

  test('§3 both, where both are required', () => {
    const missing = (param: string): object => ({ error: { code: 'missing_required_parameter', param } });
    expect(readWholeTimeSpan(of('to=2026-12-01'))).toMatchObject(missing('from'));
    expect(readWholeTimeSpan(of('from=2026-12-01'))).toMatchObject(missing('to'));
    expect(readWholeTimeSpan(of('from=0&to=1'))).toEqual({ ok: true, value: { fromMs: 0, toMs: 1000 } });
  });
});
