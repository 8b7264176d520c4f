// Usage sums: which day or hour a receipt falls into, sums in any order, and amounts beyond a double's integers.

import { describe, expect, test } from 'vitest';
import { toUsd } from '../../src/core/money.ts';
import { type Receipt } from '../../src/core/receipt.ts';
import { buildUsage } from '../../src/core/usage.ts';
import { createUsageSums, toUsageObject, toUsageSum, type UsageSum } from '../../src/core/usage-sums.ts';
import { buildReservation } from './build-reservation.ts';
import { createSeededRandom } from './seeded-random.ts';

function build(createdAt: string, more: Partial<Receipt> = {}): Receipt {
  return { ...buildReservation({ status: 'completed' }).receipt, created_at: createdAt, ...more };
}

function sumUp(sums: readonly UsageSum[]): readonly UsageSum[] {
  const all = createUsageSums();
  for (const sum of sums) all.add(sum);
  return all.list();
}

describe('§9 usage sums', () => {
  test.each([
    ['2026-12-01T00:00:00.000Z', '2026-12-01T00:00:00.000Z', '2026-12-01T00:00:00.000Z'],
    ['2026-12-01T23:59:59.999Z', '2026-12-01T00:00:00.000Z', '2026-12-01T23:00:00.000Z'],
    ['2028-02-29T12:30:00.000Z', '2028-02-29T00:00:00.000Z', '2028-02-29T12:00:00.000Z'],
  ])('§9 a receipt of %s belongs to its UTC day and hour', (createdAt, day, hour) => {
    expect(toUsageSum(build(createdAt), { width: '1d', by: 'model' }).start).toBe(day);
    expect(toUsageSum(build(createdAt), { width: '1h', by: 'model' }).start).toBe(hour);
  });

  test('§9 the object, member by member and in its order, by model and by key', () => {
    const usage = buildUsage({ input: 10, cached: 4, cacheWrite: 3, output: 8, reasoning: 2 });
    const receipt = build('2026-12-01T10:00:00.000Z', { usage, cost_nano_usd: 6600, key: 'k', requested_model: 'm' });
    const counts =
      '"requests":1,"input_tokens":10,"cached_input_tokens":4,"cache_write_tokens":3,"output_tokens":8,' +
      '"reasoning_tokens":2,"cost_usd":"0.000006600"}';
    for (const [by, name] of [
      ['model', 'm'],
      ['key', 'k'],
    ] as const) {
      const shown = toUsageObject(toUsageSum(receipt, { width: '1d', by }), by);
      expect(JSON.stringify(shown)).toBe(`{"start":"2026-12-01T00:00:00.000Z","${by}":"${name}",${counts}`);
    }
  });

  test('§9 by start, then by name; the order in which they were added does not matter', () => {
    const random = createSeededRandom(3);
    const sums = Array.from({ length: 300 }, () => {
      const createdAt = new Date(Date.parse('2026-12-01T00:00:00Z') + random.int(0, 72) * 3_600_000).toISOString();
      const more = { requested_model: random.pick(['a', 'b', 'B', 'a b']), cost_nano_usd: random.int(0, 1e9) };
      return toUsageSum(build(createdAt, more), { width: '1d', by: 'model' });
    });
    const listed = sumUp(sums);
    expect(listed).toEqual(sumUp(sums.toReversed()));
    const order = listed.map(({ start, name }) => `${start} ${name}`);
    expect(order).toEqual([...new Set(order)].toSorted());
    expect(listed.reduce((total, { counts }) => total + counts.requests, 0n)).toBe(300n);
  });

  test('§9 money is summed exactly beyond 2^53 nano-USD', () => {
    const most = build('2026-12-01T00:00:00.000Z', { cost_nano_usd: Number.MAX_SAFE_INTEGER });
    const one = build('2026-12-01T00:00:00.000Z', { cost_nano_usd: 1 });
    const sums = sumUp([most, most, one].map((receipt) => toUsageSum(receipt, { width: '1d', by: 'model' })));
    expect(sums.map((sum) => toUsageObject(sum, 'model')['cost_usd'])).toEqual(['18014398.509481983']);
    expect([toUsd(-5n), toUsd(0n), toUsd(-1_500_000_000)]).toEqual(['-0.000000005', '0.000000000', '-1.500000000']);
  });
});
