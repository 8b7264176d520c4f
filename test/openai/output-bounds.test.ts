// What a prepaid request may use at most, and the limit that goes up for it (SPEC §5).

import { describe, expect, test } from 'vitest';
import { type Engine } from '../../src/core/model-entry.ts';
import { buildCreditTerms, limitOutput } from '../../src/openai/output-bounds.ts';
import { textCompletions } from '../../src/openai/text-completions.ts';
import { buildRequest, buildResolved, type ContextOptions, parseBody } from './build-context.ts';

const PRICED = { context_length: 1000, pricing: { input: '1', output: '1' } };
const priced: ContextOptions = { entry: PRICED };
const say = (content: unknown): Readonly<Record<string, unknown>> => ({ messages: [{ role: 'user', content }] });

describe('§5 input is at most bytes + 8 a message + images, or the context', () => {
  const tools = [{ type: 'function', function: { name: 'f' } }];
  const toolBytes = JSON.stringify(tools).length;
  test.each<[string, Readonly<Record<string, unknown>>, ContextOptions, number]>([
    ['bytes, not characters', say('日本'), priced, 6 + 8],
    ['each message', { messages: [say('a'), say('b')].flatMap(({ messages }) => messages) }, priced, 2 + 16],
    ['the context', say('x'.repeat(5000)), priced, 1000],
    [
      'an image',
      say([{ type: 'image_url', image_url: { url: 'data:,x' } }]),
      { entry: { ...PRICED, context_length: 9000 } },
      8 + 1500,
    ],
    ['tools', { ...say('a'), tools }, priced, 1 + 8 + toolBytes],
    ['tools that a policy leaves unread', { ...say('a'), tools }, { ...priced, preset: 'springboards' }, 9 + toolBytes],
    ['documents that a template may render', { ...say('a'), documents: ['abc'] }, priced, 9 + '["abc"]'.length],
  ])('§5 %s', (_name, body, options, expected) => {
    expect(buildCreditTerms(buildRequest(body, options)).inputTokensMax).toBe(expected);
  });

  test('§5 text prompts add up, each at most a context', () => {
    const read = (prompt: unknown): number => {
      const body = parseBody(JSON.stringify({ model: 'support', prompt, n: 2 }));
      const parsed = textCompletions.parseRequest(body, buildResolved({ ...priced, policy: { max_n: 4 } }));
      if (!parsed.ok) throw new Error(JSON.stringify(parsed.error));
      return buildCreditTerms(parsed.value).inputTokensMax;
    };
    expect(read('abc')).toBe(4);
    expect(read(['abc', 'abcdef'])).toBe(4 + 7);
    expect(read(['x'.repeat(5000), 'x'.repeat(5000)])).toBe(2000);
  });
});

test.each([
  [{ max_tokens: 7 }, {}, 7],
  [{}, { max_output_tokens: 50 }, 50],
  [{}, {}, 1000],
])('§5 output is at most its limit, else the context: %j %j → %i', (body, entry, expected) => {
  expect(buildCreditTerms(buildRequest(body, { entry: { ...PRICED, ...entry } })).outputTokensMax).toBe(expected);
});

test.each<[string, Readonly<Record<string, unknown>>, number | null, Engine, number | null]>([
  ['a limit is cut to what the balance buys', { max_tokens: 90 }, 7, 'vllm', 7],
  ['a limit that is paid for stays', { max_tokens: 90 }, null, 'vllm', 90],
  ['without a limit, what the balance buys', {}, 7, 'vllm', 7],
  ['never so much that the engine would refuse prompt + limit', say('x'.repeat(92)), 999, 'vllm', 1000 - 92 - 8],
  ['a prompt of more bytes than context: half of what should fit', say('x'.repeat(1600)), 999, 'vllm', 298],
  ['a prompt that should not fit at all', say('x'.repeat(9000)), 999, 'vllm', 1],
  ['no limit where all is paid for and the engine stops by itself', {}, null, 'vllm', null],
  ['the context where the engine would go on for ever', {}, null, 'llamacpp', 1000],
  ['and no more than bought there', {}, 30, 'llamacpp', 30],
])('§5 %s', (_name, body, bought, engine, expected) => {
  expect(limitOutput(buildRequest(body, { ...priced, engine }), bought).outputLimit).toBe(expected);
});

test('§5 a model without a price is left as it is', () => {
  const entry = { context_length: 1000 };
  expect(limitOutput(buildRequest({}, { entry, engine: 'llamacpp' }), null).outputLimit).toBeNull();
});
