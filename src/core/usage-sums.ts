// Usage summed by day or hour (UTC) and by model or key: receipts into sums, sums into one another, and the objects of
// GET /v1/usage (SPEC §9). Pure, and in integers without a ceiling: sums of many receipts outgrow a double's 53 bits.

import { toUsd } from './money.ts';
import { type Receipt } from './receipt.ts';
import { type Usage } from './usage.ts';

/** How receipts are grouped: by the UTC day or hour they were created in, and by what. */
export type UsageGrouping = { readonly width: '1h' | '1d'; readonly by: 'model' | 'key' };

/** What is summed. `cost_nano_usd` is nano-USD. */
export type UsageCounts = Readonly<Record<'requests' | keyof Usage | 'cost_nano_usd', bigint>>;

/** The counts of one group. `start` is the beginning of its day or hour in ISO 8601. */
export type UsageSum = { readonly start: string; readonly name: string; readonly counts: UsageCounts };

/** Sums under way. */
export type UsageSums = {
  readonly add: (sum: UsageSum) => void;
  /** By start, then by name. */
  readonly list: () => readonly UsageSum[];
};

/** How much of an ISO 8601 time says its day or hour. */
export const START_LENGTH: Readonly<Record<UsageGrouping['width'], number>> = { '1h': 13, '1d': 10 };

/** The start of a day or hour, from as much of a time as says which it is. */
export function toStart(prefix: string, width: UsageGrouping['width']): string {
  return width === '1h' ? `${prefix}:00:00.000Z` : `${prefix}T00:00:00.000Z`;
}

/** One receipt as a sum. */
export function toUsageSum(receipt: Receipt, { width, by }: UsageGrouping): UsageSum {
  const { usage } = receipt;
  return {
    start: toStart(receipt.created_at.slice(0, START_LENGTH[width]), width),
    name: by === 'key' ? receipt.key : receipt.requested_model,
    counts: {
      requests: 1n,
      input_tokens: BigInt(usage.input_tokens),
      cached_input_tokens: BigInt(usage.cached_input_tokens),
      cache_write_tokens: BigInt(usage.cache_write_tokens),
      output_tokens: BigInt(usage.output_tokens),
      reasoning_tokens: BigInt(usage.reasoning_tokens),
      cost_nano_usd: BigInt(receipt.cost_nano_usd),
    },
  };
}

/** Creates empty sums. */
export function createUsageSums(): UsageSums {
  const groups = new Map<string, UsageSum>();
  return {
    add(sum) {
      const group = `${sum.start} ${sum.name}`;
      const before = groups.get(group);
      groups.set(group, before === undefined ? sum : { ...sum, counts: addCounts(before.counts, sum.counts) });
    },
    list: () => [...groups.entries()].toSorted(([left], [right]) => (left < right ? -1 : 1)).map(([, sum]) => sum),
  };
}

/** A sum as the API shows it. */
export function toUsageObject({ start, name, counts }: UsageSum, by: UsageGrouping['by']): Record<string, unknown> {
  return {
    start,
    [by]: name,
    requests: Number(counts.requests),
    input_tokens: Number(counts.input_tokens),
    cached_input_tokens: Number(counts.cached_input_tokens),
    cache_write_tokens: Number(counts.cache_write_tokens),
    output_tokens: Number(counts.output_tokens),
    reasoning_tokens: Number(counts.reasoning_tokens),
    cost_usd: toUsd(counts.cost_nano_usd),
  };
}

function addCounts(left: UsageCounts, right: UsageCounts): UsageCounts {
  return {
    requests: left.requests + right.requests,
    input_tokens: left.input_tokens + right.input_tokens,
    cached_input_tokens: left.cached_input_tokens + right.cached_input_tokens,
    cache_write_tokens: left.cache_write_tokens + right.cache_write_tokens,
    output_tokens: left.output_tokens + right.output_tokens,
    reasoning_tokens: left.reasoning_tokens + right.reasoning_tokens,
    cost_nano_usd: left.cost_nano_usd + right.cost_nano_usd,
  };
}
