// Token counts as engines report them: absent is missing, zero is zero, parts stay within their whole.

import { describe, expect, test } from 'vitest';
import { buildUsage, readUsage, toCompletionUsage, toTotalTokens } from '../../src/core/usage.ts';

/** input, cached, cache write, output, reasoning */
type Counts = readonly [number, number, number, number, number];

describe('readUsage', () => {
  test.each<[string, unknown, Counts | null]>([
    ['absent', undefined, null],
    ['null', null, null],
    ['an array', [1], null],
    ['a string', '3', null],
    ['empty', {}, null],
    ['a total alone', { total_tokens: 5 }, null],
    ['zero is zero', { prompt_tokens: 0, completion_tokens: 0 }, [0, 0, 0, 0, 0]],
    ['both', { prompt_tokens: 3, completion_tokens: 2, total_tokens: 5 }, [3, 0, 0, 2, 0]],
    ['prompt and total', { prompt_tokens: 3, total_tokens: 5 }, [3, 0, 0, 2, 0]],
    ['completion and total', { completion_tokens: 2, total_tokens: 5 }, [3, 0, 0, 2, 0]],
    ['prompt alone', { prompt_tokens: 3 }, [3, 0, 0, 0, 0]],
    ['a total below its parts', { completion_tokens: 9, total_tokens: 5 }, [0, 0, 0, 9, 0]],
    ['negative is missing', { prompt_tokens: -3, completion_tokens: 2, total_tokens: 5 }, [3, 0, 0, 2, 0]],
    ['a fraction is missing', { prompt_tokens: 1.5, completion_tokens: -1 }, null],
    ['a string count is missing', { prompt_tokens: '3' }, null],
    ['beyond 2^53 is missing', { prompt_tokens: 1e300, completion_tokens: 1 }, [0, 0, 0, 1, 0]],
    [
      'cached',
      { prompt_tokens: 9, completion_tokens: 1, prompt_tokens_details: { cached_tokens: 4 } },
      [9, 4, 0, 1, 0],
    ],
    [
      'cached above the prompt is cut to it',
      { prompt_tokens: 3, completion_tokens: 1, prompt_tokens_details: { cached_tokens: 8 } },
      [3, 3, 0, 1, 0],
    ],
    ['details null', { prompt_tokens: 3, completion_tokens: 1, prompt_tokens_details: null }, [3, 0, 0, 1, 0]],
    [
      'created_cache_tokens',
      { prompt_tokens: 9, completion_tokens: 1, prompt_tokens_details: { created_cache_tokens: 2 } },
      [9, 0, 2, 1, 0],
    ],
    [
      'cache_write_tokens',
      { prompt_tokens: 9, completion_tokens: 1, prompt_tokens_details: { cache_write_tokens: 2 } },
      [9, 0, 2, 1, 0],
    ],
    [
      'cached and written overlap',
      { prompt_tokens: 9, completion_tokens: 1, prompt_tokens_details: { cached_tokens: 7, cache_write_tokens: 5 } },
      [9, 7, 2, 1, 0],
    ],
    [
      'reasoning in the details',
      { prompt_tokens: 1, completion_tokens: 9, completion_tokens_details: { reasoning_tokens: 4 } },
      [1, 0, 0, 9, 4],
    ],
    ['reasoning at the top (SGLang)', { prompt_tokens: 1, completion_tokens: 9, reasoning_tokens: 4 }, [1, 0, 0, 9, 4]],
    [
      'reasoning above the output is cut to it',
      { prompt_tokens: 1, completion_tokens: 2, reasoning_tokens: 4 },
      [1, 0, 0, 2, 2],
    ],
  ])('§9 %s', (_name, reported, counts) => {
    const usage = readUsage(reported);
    if (counts === null) return expect(usage).toBeNull();
    const [input_tokens, cached_input_tokens, cache_write_tokens, output_tokens, reasoning_tokens] = counts;
    expect(usage).toEqual({ input_tokens, cached_input_tokens, cache_write_tokens, output_tokens, reasoning_tokens });
  });
});

describe('toCompletionUsage', () => {
  const usage = buildUsage({ input: 9, cached: 4, cacheWrite: 2, output: 3, reasoning: 1 });
  const plain = { prompt_tokens: 9, completion_tokens: 3, total_tokens: 12 };

  test('§4 total_tokens is summed; details are shown under the documented names when the engine has them', () => {
    const reported = {
      prompt_tokens_details: { cached_tokens: 4, cache_write_tokens: 2 },
      completion_tokens_details: { reasoning_tokens: 1 },
    };
    expect(toCompletionUsage(usage, reported, false)).toEqual({
      ...plain,
      prompt_tokens_details: { cached_tokens: 4, created_cache_tokens: 2 },
      completion_tokens_details: { reasoning_tokens: 1 },
    });
  });

  test('§9 a detail of zero that the engine reports is shown, one that it does not report is not made up', () => {
    const none = buildUsage({ input: 9, output: 3 });
    const reported = {
      prompt_tokens_details: { cached_tokens: 0 },
      completion_tokens_details: { reasoning_tokens: 0 },
    };
    expect(toCompletionUsage(none, reported, false)).toEqual({
      ...plain,
      prompt_tokens_details: { cached_tokens: 0 },
      completion_tokens_details: { reasoning_tokens: 0 },
    });
    expect(toCompletionUsage(none, { prompt_tokens_details: null }, false)).toEqual(plain);
    expect(toCompletionUsage(none, { prompt_tokens_details: { cached_tokens: null } }, false)).toEqual(plain);
  });

  test('§4 cached tokens known from elsewhere (llama.cpp timings) are shown too', () => {
    const cached = buildUsage({ input: 9, cached: 4, output: 3 });
    expect(toCompletionUsage(cached, null, false)).toEqual({ ...plain, prompt_tokens_details: { cached_tokens: 4 } });
  });

  test('§7 the gateway’s own count says so; an engine’s does not carry the word', () => {
    const none = buildUsage({ input: 9, output: 3 });
    expect(toCompletionUsage(none, null, true)).toEqual({ ...plain, estimated: true });
    expect(toCompletionUsage(none, null, false)).not.toHaveProperty('estimated');
  });
});

test('§9 the token bucket counts input and output; cached and reasoning are inside and not added', () => {
  expect(toTotalTokens(buildUsage({ input: 9, cached: 4, cacheWrite: 2, output: 3, reasoning: 1 }))).toBe(12);
});
