// The length of text in UTF-8, against the platform's encoder.

import { expect, test } from 'vitest';
import { countUtf8Bytes } from '../../src/core/utf8.ts';
import { createSeededRandom } from './seeded-random.ts';

test('§5 bytes of 2,000 random texts, lone surrogates among them, are those TextEncoder makes', () => {
  const random = createSeededRandom(5);
  const parts = [
    'a',
    '\u007f',
    '\u0080',
    'é',
    '\u07ff',
    '\u0800',
    '日',
    '\uffff',
    '🙂',
    '\ud800',
    '\udc00',
    '\udbff',
    '\0',
  ];
  for (let round = 0; round < 2000; round += 1) {
    const text = Array.from({ length: random.int(0, 8) }, () => random.pick(parts)).join('');
    expect(countUtf8Bytes(text), JSON.stringify(text)).toBe(new TextEncoder().encode(text).length);
  }
});
