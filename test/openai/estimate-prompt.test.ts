// The estimate before any engine has counted: every input shape, and the bytes of any text (SPEC §5).

import { describe, expect, test } from 'vitest';
import { buildRequest } from './build-context.ts';

const tokens = (body: Readonly<Record<string, unknown>>): number => buildRequest(body).promptTokens;
const message = (rest: object): Readonly<Record<string, unknown>> => ({ messages: [{ role: 'user', ...rest }] });
const EMPTY = tokens({ ...message({ content: '' }) });

describe('estimateChatPrompt', () => {
  const text = 'word '.repeat(80);
  test.each<[string, Readonly<Record<string, unknown>>, number]>([
    ['content', message({ content: text }), 100],
    [
      'text parts',
      message({
        content: [
          { type: 'text', text },
          { type: 'text', text },
        ],
      }),
      200,
    ],
    ['an image', message({ content: [{ type: 'image_url', image_url: { url: `data:,${text}` } }] }), 1500],
    [
      'reasoning of an earlier turn',
      { messages: [{ role: 'assistant', content: '', reasoning: text, reasoning_content: text }] },
      100,
    ],
    [
      'a tool call',
      {
        messages: [
          {
            role: 'assistant',
            content: '',
            tool_calls: [{ id: 'a', type: 'function', function: { name: '', arguments: text } }],
          },
        ],
      },
      100,
    ],
    ['another script, by its bytes', message({ content: '日'.repeat(400) }), 300],
  ])('§5 %s counts', (_name, body, more) => {
    expect(tokens(body) - EMPTY).toBe(more);
  });

  test('§5 each message counts for its template, each tool for its definition', () => {
    const two = { messages: [0, 1].map(() => ({ role: 'user', content: '' })) };
    expect(tokens(two)).toBeGreaterThan(EMPTY);
    const tools = [{ type: 'function', function: { name: 'f', description: text } }];
    expect(tokens({ ...message({ content: '' }), tools }) - EMPTY).toBeGreaterThanOrEqual(100);
  });
});
