// The order of backends: weights over many draws, and what rendezvous hashing promises when one is lost.

import { describe, expect, it } from 'vitest';

import { hashToUnit, orderBackends } from '../../src/core/backend-order.ts';
import { type Backend } from '../../src/core/model-entry.ts';
import { createSeededRandom } from './seeded-random.ts';

const build = (binding: string, weight = 1): Backend => ({
  binding,
  weight,
  upstream_model: 'm',
  engine: 'vllm',
  developer_role: 'system',
});

const CALLS = 20_000;
const never = (): boolean => false;

function shareOfFirst(
  backends: readonly Backend[],
  choose: (call: number) => readonly Backend[],
): Record<string, number> {
  const counts = Object.fromEntries(backends.map(({ binding }) => [binding, 0]));
  for (let call = 0; call < CALLS; call += 1) counts[choose(call)[0]!.binding]! += 1;
  return Object.fromEntries(Object.entries(counts).map(([binding, count]) => [binding, count / CALLS]));
}

describe('§6 which backend is asked first', () => {
  const backends = [build('A', 1), build('B', 2), build('C', 5)];

  it('§6 a weighted choice, every backend once', () => {
    const random = createSeededRandom(1);
    const order = (): readonly Backend[] =>
      orderBackends({ backends, random: () => random.next(), affinity: null, isOpen: never });
    const shares = shareOfFirst(backends, order);
    expect(shares['A']).toBeCloseTo(1 / 8, 1.5);
    expect(shares['B']).toBeCloseTo(2 / 8, 1.5);
    expect(shares['C']).toBeCloseTo(5 / 8, 1.5);
    expect(
      order()
        .map(({ binding }) => binding)
        .toSorted(),
    ).toEqual(['A', 'B', 'C']);
  });

  it('§6 affinity: the same prefix goes to the same backend, prefixes spread by weight', () => {
    const order = (call: number): readonly Backend[] =>
      orderBackends({ backends, random: () => 0.5, affinity: `conversation ${call}`, isOpen: never });
    const shares = shareOfFirst(backends, order);
    expect(shares['A']).toBeCloseTo(1 / 8, 1.5);
    expect(shares['C']).toBeCloseTo(5 / 8, 1.5);
    expect(order(7)).toEqual(order(7));
  });

  it('§6 affinity: a lost backend moves only its own share', () => {
    const choose = (list: readonly Backend[], call: number): string =>
      orderBackends({ backends: list, random: () => 0.5, affinity: `c${call}`, isOpen: never })[0]!.binding;
    for (let call = 0; call < 2000; call += 1) {
      const before = choose(backends, call);
      if (before !== 'B') expect(choose([build('A', 1), build('C', 5)], call)).toBe(before);
    }
  });

  it('§6 affinity yields to health: an open breaker is asked last, not never', () => {
    const order = orderBackends({
      backends,
      random: () => 0.5,
      affinity: 'x',
      isOpen: ({ binding }) => binding !== 'A',
    });
    expect(order[0]?.binding).toBe('A');
    expect(order).toHaveLength(3);
  });

  it('hashes spread evenly from 0 up to 1', () => {
    const values = Array.from({ length: 10_000 }, (_, at) => hashToUnit(`text ${at}`));
    expect(Math.min(...values)).toBeGreaterThanOrEqual(0);
    expect(Math.max(...values)).toBeLessThan(1);
    for (let bucket = 0; bucket < 10; bucket += 1) {
      const share = values.filter((value) => Math.floor(value * 10) === bucket).length;
      expect(share).toBeGreaterThan(900);
      expect(share).toBeLessThan(1100);
    }
  });
});
