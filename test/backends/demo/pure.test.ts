// The demo engine's pure parts: tokenizer, prose, stop strings, decoding, pacing.

import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { decodeChoices } from '../../../src/backends/demo/decode.ts';
import { createPacer, parseTokensPerSecond, wait } from '../../../src/backends/demo/pacer.ts';
import { createStopMatcher } from '../../../src/backends/demo/stop-matcher.ts';
import { tokenize } from '../../../src/backends/demo/tokenize.ts';
import { writeProse } from '../../../src/backends/demo/write-prose.ts';

/** Feeds pieces to a matcher as the decoder does. */
const run = (pieces: readonly string[], stops: readonly string[]) => {
  const matcher = createStopMatcher(stops);
  const out: string[] = [];
  for (const piece of pieces) {
    const step = matcher.push(piece);
    out.push(step.text);
    if (step.matched !== null) return { out, matched: step.matched };
  }
  return { out: [...out, matcher.flush()], matched: null };
};

const decode = (sources: readonly string[][], maxTokens: number, stops: readonly string[] = []) =>
  [...decodeChoices(sources, { maxTokens, stops })].map((steps) =>
    steps.map(({ index, text, tokens, finish }) => [index, text, tokens, finish?.reason ?? null]),
  );

describe('§6 demo: its own tokenizer', () => {
  it.each([
    ['', []],
    ['Hello, big world.', ['Hello', ',', ' big', ' world', '.']],
    ["Turnpike's  road\n", ["Turnpike's", ' ', ' road', '\n']],
    ['abcdefghijklmnop', ['abcdefghijkl', 'mnop']],
    ['“é” 日本 👍🏽', ['“', 'é', '”', ' 日本', ' 👍', '🏽']],
    ['a \ud800b', ['a', ' \ud800', 'b']],
  ])('splits %j', (text, expected) => {
    expect(tokenize(text)).toEqual(expected);
  });

  it('loses nothing: the tokens joined are the text', () => {
    const alphabet = [
      'a',
      '1',
      '_',
      "'",
      '’',
      ' ',
      '.',
      '\n',
      '“',
      'é',
      '日',
      '👍',
      '\ud800',
      '\udc00',
      '\u0301',
      '\u00a0',
      '\u2028',
      '\0',
    ];
    for (let round = 0; round < 500; round += 1) {
      const text = Array.from({ length: 40 }, (_, i) => alphabet[(round * 31 + i * i * (round + 7)) % alphabet.length]);
      expect(tokenize(text.join('')).join('')).toBe(text.join(''));
    }
  });
});

describe('§6 demo: deterministic with a seed, honest about what it is', () => {
  const base = { prompt: 'user: hi\nassistant:', question: 'hi', seed: 7, choiceIndex: 0, endless: false };
  const write = (changes: Partial<Parameters<typeof writeProse>[0]> = {}) => [...writeProse({ ...base, ...changes })];

  it('says first that it is the demo engine and that no model is running, then echoes', () => {
    expect(write().join('')).toMatch(
      /^This is Turnpike's demo engine: no model is running\. You asked: “hi”\. [A-Z].*\.$/,
    );
  });

  it('the same input gives the same tokens; another seed, prompt or choice gives others', () => {
    expect(write()).toEqual(write());
    expect(write({ seed: 8 })).not.toEqual(write());
    expect(write({ choiceIndex: 1 })).not.toEqual(write());
    expect(write({ seed: null })).toEqual(write({ seed: null }));
    expect(write({ seed: null, prompt: 'other' })).not.toEqual(write({ seed: null }));
  });

  it('a hundred seeds give a hundred texts of 40 to 120 tokens, each the tokenizer’s own split', () => {
    const texts = new Set<string>();
    for (let seed = 0; seed < 100; seed += 1) {
      const tokens = write({ seed, question: 'word '.repeat(30) });
      expect(tokens.length).toBeGreaterThanOrEqual(40);
      expect(tokens.length).toBeLessThanOrEqual(120);
      expect(tokenize(tokens.join(''))).toEqual(tokens);
      texts.add(tokens.join(''));
    }
    expect(texts.size).toBe(100);
  });

  it.each([
    ['', 'You asked nothing in words.'],
    ['  a\n\nb ', 'You asked: “a b”.'],
    ['w '.repeat(99), `You asked: “${Array(16).fill('w').join(' ')}…”.`],
  ])('echoes %j briefly', (question, expected) => {
    expect(write({ question }).join('')).toContain(expected);
  });

  it('an endless one goes on lazily', () => {
    let count = 0;
    for (const token of writeProse({ ...base, endless: true })) {
      expect(token).not.toBe('');
      count += 1;
      if (count === 5000) break;
    }
    expect(count).toBe(5000);
  });
});

describe('§6 demo: stop strings across token borders', () => {
  it.each([
    ['inside one piece', ['a STOP b'], ['STOP'], ['a '], 'STOP'],
    ['across three pieces', ['a S', 'TO', 'P b'], ['STOP'], ['a ', '', ''], 'STOP'],
    ['a false start is let go', ['a ST', 'x'], ['STOP'], ['a ', 'STx', ''], null],
    ['a false start inside a true one', ['aa', 'ab'], ['aab'], ['', 'a'], 'aab'],
    ['held at the end is flushed', ['a ST'], ['STOP'], ['a ', 'ST'], null],
    ['the earliest wins, not the first named', ['xyz'], ['z', 'y'], ['x'], 'y'],
    ['of two at one place the first named', ['xyz'], ['yz', 'y'], ['x'], 'yz'],
    ['the longest beginning is held', ['ab'], ['bc', 'abd'], ['', 'ab'], null],
    ['nothing to stop at', ['a', 'b'], [], ['a', 'b', ''], null],
    ['at the very start', ['ab'], ['a'], [''], 'a'],
  ])('%s', (_title, pieces, stops, out, matched) => {
    expect(run(pieces, stops)).toEqual({ out, matched });
  });

  it('however the text is split, what comes out is what stands before the first stop', () => {
    const text = 'abacabadabacabaeabacabadabacaba';
    for (const stops of [['badab'], ['abacabae', 'dab'], ['zz'], ['eab', 'aea'], ['a']]) {
      const ends = stops.map((stop) => text.indexOf(stop)).filter((at) => at >= 0);
      const expected = text.slice(0, Math.min(text.length, ...ends));
      for (let size = 1; size <= text.length; size += 1) {
        const pieces = text.match(new RegExp(`.{1,${size}}`, 'g')) ?? [];
        expect(run(pieces, stops).out.join('')).toBe(expected);
      }
    }
  });
});

describe('§6 demo: decoding, limits and ends', () => {
  it('a natural end is a step of its own and adds no token', () => {
    expect(decode([['a', 'b']], 9)).toEqual([[[0, 'a', 1, null]], [[0, 'b', 2, null]], [[0, '', 2, 'stop']]]);
  });

  it('the limit ends with length at exactly that many tokens, held text let go', () => {
    expect(decode([['a', 'ST']], 2, ['STOP'])).toEqual([[[0, 'a', 1, null]], [[0, 'ST', 2, 'length']]]);
  });

  it('the token that completes a stop string counts, its text does not come out', () => {
    expect(decode([['a', 'S', 'T', 'x']], 9, ['ST'])).toEqual([
      [[0, 'a', 1, null]],
      [[0, '', 2, null]],
      [[0, '', 3, 'stop']],
    ]);
  });

  it('choices advance together and end each at their own time', () => {
    expect(decode([['a'], ['b', 'c']], 9)).toEqual([
      [
        [0, 'a', 1, null],
        [1, 'b', 1, null],
      ],
      [
        [0, '', 1, 'stop'],
        [1, 'c', 2, null],
      ],
      [[1, '', 2, 'stop']],
    ]);
  });

  it('makes a token only when it is asked for one', () => {
    let made = 0;
    const source = (function* () {
      while (true) yield String((made += 1));
    })();
    const steps = decodeChoices([source], { maxTokens: 100, stops: [] });
    expect(made).toBe(0);
    steps.next();
    expect(made).toBe(1);
  });
});

describe('§6 demo: speed', () => {
  beforeEach(() => void vi.useFakeTimers());
  afterEach(() => void vi.useRealTimers());
  const clock = { nowMs: () => Date.now(), wait };

  it.each([
    [undefined, 40],
    ['', 40],
    ['0', 0],
    ['12.5', 12.5],
    [80, 80],
    ['fast', null],
    ['-1', null],
    ['Infinity', null],
  ])('TOKENS_PER_SECOND %j is %j', (value, expected) => {
    expect(parseTokensPerSecond(value)).toBe(expected);
  });

  it('lets a token through each 1/speed seconds', async () => {
    const turn = createPacer(40, clock, new AbortController().signal);
    let count = 0;
    const running = (async () => {
      for (; count < 40; count += 1) await turn();
    })();
    await vi.advanceTimersByTimeAsync(510);
    expect(count).toBe(20);
    await vi.advanceTimersByTimeAsync(490);
    await running;
    expect(count).toBe(40);
  });

  it('makes up for a late timer, not for a reader who was away', async () => {
    const turn = createPacer(10, clock, new AbortController().signal);
    vi.setSystemTime(Date.now() + 60_000);
    for (let burst = 0; burst < 3; burst += 1) await turn();
    expect(vi.getTimerCount()).toBe(0);
    void turn();
    expect(vi.getTimerCount()).toBe(1);
    await vi.runAllTimersAsync();
  });

  it('an abort ends a wait at once and leaves no timer', async () => {
    const leaving = new AbortController();
    const turn = createPacer(0.01, clock, leaving.signal);
    const waiting = turn();
    expect(vi.getTimerCount()).toBe(1);
    leaving.abort(new Error('gone'));
    await expect(waiting).rejects.toThrow('gone');
    expect(vi.getTimerCount()).toBe(0);
    await expect(turn()).rejects.toThrow('gone');
    await wait(1000, leaving.signal);
    expect(vi.getTimerCount()).toBe(0);
  });

  it('at full speed an abort is still heard', async () => {
    const leaving = new AbortController();
    const turn = createPacer(0, clock, leaving.signal);
    setTimeout(() => leaving.abort(new Error('gone')), 0);
    const running = (async () => {
      while (true) await turn();
    })();
    const refused = expect(running).rejects.toThrow('gone');
    await vi.runAllTimersAsync();
    await refused;
  });
});
