// Effort: two client forms, one precedence, and what every other value means (SPEC §4).

import { describe, expect, test } from 'vitest';
import { readEffort, toEngineReasoning } from '../../src/openai/reasoning.ts';
import { type Effort } from '../../src/openai/endpoint.ts';
import { buildResolved } from './build-context.ts';

type Fields = Readonly<Record<string, unknown>>;

describe('readEffort', () => {
  test.each<[Fields, Effort | null]>([
    [{}, null],
    [{ reasoning_effort: null }, null],
    [{ reasoning: null }, null],
    [{ reasoning: {} }, null],
    [{ reasoning: { effort: null } }, null],
    [{ reasoning: 'high' }, null],
    [{ reasoning_effort: 'none' }, 'none'],
    [{ reasoning_effort: 'low' }, 'low'],
    [{ reasoning_effort: 'medium' }, 'medium'],
    [{ reasoning_effort: 'high' }, 'high'],
    [{ reasoning: { effort: 'high', summary: 'auto' } }, 'high'],
    [{ reasoning: { effort: 'high' }, reasoning_effort: 'low' }, 'low'],
    [{ reasoning: { effort: 'high' }, reasoning_effort: null }, 'high'],
    [{ reasoning: { effort: 'high' }, reasoning_effort: 'banana' }, 'none'],
    [{ reasoning_effort: 'banana' }, 'none'],
    [{ reasoning_effort: 'HIGH' }, 'none'],
    [{ reasoning_effort: 'minimal' }, 'none'],
    [{ reasoning_effort: '' }, 'none'],
    [{ reasoning_effort: 5 }, 'none'],
    [{ reasoning_effort: false }, 'none'],
    [{ reasoning_effort: ['high'] }, 'none'],
    [{ reasoning_effort: 'constructor' }, 'none'],
    [{ reasoning: { effort: { a: 1 } } }, 'none'],
  ])('WIRE 29, §4 %j is %s; where nothing is asked, Springboards means none', (body, effort) => {
    expect(readEffort(body, buildResolved().model)).toBe(effort);
    expect(readEffort(body, buildResolved({ preset: 'springboards' }).model)).toBe(effort ?? 'none');
  });
});

describe('toEngineReasoning', () => {
  const to = (reasoning: object | undefined, effort: Effort | null, body: Fields = {}): unknown =>
    toEngineReasoning(body, buildResolved({ entry: { reasoning } }).model, effort);
  const kwargs = { control: 'chat_template_kwargs' };
  const nothing = { form: 'nothing' };
  test.each<[string, object | undefined, Effort | null, unknown, Fields?]>([
    ['a model without reasoning', undefined, 'high', nothing],
    ['control none', { control: 'none' }, 'none', nothing],
    ['nothing asked', kwargs, null, nothing],
    ['kwarg for none', kwargs, 'none', { form: 'kwarg', name: 'enable_thinking', on: false }],
    ['kwarg for low', kwargs, 'low', { form: 'kwarg', name: 'enable_thinking', on: true }],
    ['kwarg by another name', { ...kwargs, kwarg: 'thinking' }, 'high', { form: 'kwarg', name: 'thinking', on: true }],
    ['kwarg the caller set', kwargs, 'none', nothing, { chat_template_kwargs: { enable_thinking: true } }],
    [
      'kwarg named as a prototype’s',
      { ...kwargs, kwarg: 'toString' },
      'none',
      { form: 'kwarg', name: 'toString', on: false },
      { chat_template_kwargs: {} },
    ],
    ['field', { control: 'reasoning_effort' }, 'medium', { form: 'field', effort: 'medium' }],
    ['field without that level', { control: 'reasoning_effort', levels: ['low'] }, 'medium', nothing],
  ])('§4 %s', (_name, reasoning, effort, expected, body = {}) => {
    expect(to(reasoning, effort, body)).toEqual(expected);
  });
});
