// The quirks table against the facts of WIRE §4a and §4b.

import { describe, expect, test } from 'vitest';
import { ENGINES } from '../../src/core/model-entry.ts';
import { ENGINE_QUIRKS } from '../../src/openai/engine-quirks.ts';

describe('the table', () => {
  test('§2 has every engine the catalog can name, and no other', () => {
    expect(Object.keys(ENGINE_QUIRKS).toSorted()).toEqual([...ENGINES].toSorted());
  });

  /** The engines of which each quirk holds. */
  test.each([
    ['truncatesSilently', ['llamacpp', 'ollama']],
    ['singleChoice', ['ollama', 'tgi']],
    ['countsPerTask', ['llamacpp']],
    ['repeatsIds', ['ollama', 'tgi']],
  ] as const)('WIRE §4a: %s holds of %j', (quirk, engines) => {
    expect(ENGINES.filter((engine) => ENGINE_QUIRKS[engine][quirk])).toEqual(engines);
  });

  test('WIRE §4a, §4b: how each is asked for running counts, and the name under which it reads reasoning', () => {
    const rows = ENGINES.map((engine) => [
      engine,
      ENGINE_QUIRKS[engine].runningCounts,
      ENGINE_QUIRKS[engine].reasoningIn,
    ]);
    expect(rows).toEqual([
      ['vllm', 'continuous_usage_stats', 'reasoning'],
      ['sglang', 'continuous_usage_stats', 'reasoning_content'],
      ['llamacpp', 'timings_per_token', 'reasoning_content'],
      ['ollama', null, 'reasoning'],
      ['tgi', null, null],
      ['openai', null, null],
    ]);
  });
});
