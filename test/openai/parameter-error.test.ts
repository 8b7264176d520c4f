// A failed parse in OpenAI's words: code, path and message of WIRE §1b.

import * as z from 'zod';
import { describe, expect, test } from 'vitest';
import { parameterError, toParamPath, toParameterError } from '../../src/openai/parameter-error.ts';

function explain(schema: z.ZodType, input: unknown): unknown {
  const parsed = schema.safeParse(input);
  if (parsed.success) throw new Error('it passed');
  return toParameterError(parsed.error, input);
}

describe('toParameterError', () => {
  test.each<[string, z.ZodType, unknown, string, string, string]>([
    [
      'missing',
      z.object({ model: z.string() }),
      {},
      'missing_required_parameter',
      'model',
      "Missing required parameter: 'model'.",
    ],
    [
      'null',
      z.object({ model: z.string() }),
      { model: null },
      'missing_required_parameter',
      'model',
      "Missing required parameter: 'model'.",
    ],
    [
      'wrong type',
      z.object({ temperature: z.number() }),
      { temperature: 'x' },
      'invalid_type',
      'temperature',
      "Invalid type for 'temperature': expected a number, but got a string instead.",
    ],
    [
      'a decimal for an integer',
      z.object({ n: z.int() }),
      { n: 1.5 },
      'invalid_type',
      'n',
      "Invalid type for 'n': expected an integer, but got a decimal instead.",
    ],
    [
      'an array for an object',
      z.object({ a: z.looseObject({}) }),
      { a: [] },
      'invalid_type',
      'a',
      "Invalid type for 'a': expected an object, but got an array instead.",
    ],
    [
      'an object for an array',
      z.object({ a: z.array(z.string()) }),
      { a: {} },
      'invalid_type',
      'a',
      "Invalid type for 'a': expected an array, but got an object instead.",
    ],
    [
      'integer below',
      z.object({ max_tokens: z.int().min(1) }),
      { max_tokens: 0 },
      'integer_below_min_value',
      'max_tokens',
      "Invalid 'max_tokens': integer below minimum value. Expected a value >= 1, but got 0 instead.",
    ],
    [
      'integer above',
      z.object({ top_logprobs: z.int().max(20) }),
      { top_logprobs: 21 },
      'integer_above_max_value',
      'top_logprobs',
      "Invalid 'top_logprobs': integer above maximum value. Expected a value <= 20, but got 21 instead.",
    ],
    [
      'decimal below, exclusive',
      z.object({ top_p: z.number().gt(0) }),
      { top_p: 0 },
      'decimal_below_min_value',
      'top_p',
      "Invalid 'top_p': decimal below minimum value. Expected a value > 0, but got 0 instead.",
    ],
    [
      'decimal above',
      z.object({ temperature: z.number().max(2) }),
      { temperature: 3 },
      'decimal_above_max_value',
      'temperature',
      "Invalid 'temperature': decimal above maximum value. Expected a value <= 2, but got 3 instead.",
    ],
    [
      'empty array',
      z.object({ messages: z.array(z.string()).min(1) }),
      { messages: [] },
      'empty_array',
      'messages',
      "Invalid 'messages': empty array. Expected at least 1 element.",
    ],
    [
      'long array',
      z.object({ a: z.array(z.string()).max(1) }),
      { a: ['', ''] },
      'array_above_max_length',
      'a',
      "Invalid 'a': array too long. Expected at most 1 elements.",
    ],
    [
      'long string',
      z.object({ a: z.string().max(1) }),
      { a: 'xx' },
      'string_above_max_length',
      'a',
      "Invalid 'a': string too long. Expected at most 1 characters.",
    ],
    [
      'enum',
      z.object({ role: z.enum(['a', 'b']) }),
      { role: 'c' },
      'invalid_value',
      'role',
      "Invalid value: 'c'. Supported values are: 'a', 'b'.",
    ],
    [
      'enum of a wrong type',
      z.object({ role: z.enum(['a', 'b']) }),
      { role: 5 },
      'invalid_type',
      'role',
      "Invalid type for 'role': expected a string, but got an integer instead.",
    ],
    [
      'a path',
      z.object({ a: z.array(z.object({ b: z.object({ c: z.string() }) })) }),
      { a: [{ b: { c: '' } }, { b: {} }] },
      'missing_required_parameter',
      'a[1].b.c',
      "Missing required parameter: 'a[1].b.c'.",
    ],
  ])('§3 %s', (_name, schema, input, code, param, message) => {
    expect(explain(schema, input)).toEqual({ kind: 'invalid_parameter', code, param, message });
  });

  const choice = z.object({ c: z.union([z.enum(['a', 'b']), z.object({ f: z.object({ name: z.string() }) })]) });
  test.each<[string, unknown, string, string]>([
    ['a string of none of them', { c: 'x' }, 'invalid_value', 'c'],
    ['a number', { c: 5 }, 'invalid_type', 'c'],
    ['an object that lacks something', { c: { f: {} } }, 'missing_required_parameter', 'c.f.name'],
    ['absent', {}, 'missing_required_parameter', 'c'],
  ])('§3 of a union the branch that fits best explains: %s', (_name, input, code, param) => {
    expect(explain(choice, input)).toMatchObject({ code, param });
  });

  test('§3 a value is quoted at most 64 characters long', () => {
    const error = explain(z.object({ role: z.enum(['a']) }), { role: 'x'.repeat(1000) });
    expect(error).toMatchObject({ message: expect.stringMatching(/^.{0,150}$/) });
  });
});

test.each<[readonly PropertyKey[], string]>([
  [[], ''],
  [['a'], 'a'],
  [['a', 0], 'a[0]'],
  [['a', 0, 'b', 1, 2], 'a[0].b[1][2]'],
])('§3 the path %j is written %s', (path, text) => {
  expect(toParamPath(path)).toBe(text);
});

test('§3 built by hand', () => {
  expect(parameterError('invalid_value', 'a', 'm')).toEqual({
    kind: 'invalid_parameter',
    code: 'invalid_value',
    param: 'a',
    message: 'm',
  });
});
