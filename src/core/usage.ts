// Token counts: reading them out of whatever an engine reports, and writing them as OpenAI's `usage`.
// Counts are never negative, parts never exceed their whole, and only what is absent is missing: zero is zero.

import { isObject, readCount, readObject } from './json-read.ts';

/** What a request used, in the receipt's words (SPEC §9). Cached and cache-write are part of input, reasoning of output. */
export type Usage = {
  readonly input_tokens: number;
  readonly cached_input_tokens: number;
  readonly cache_write_tokens: number;
  readonly output_tokens: number;
  readonly reasoning_tokens: number;
};

/** Where the counts of a receipt come from. */
export type UsageSource = 'engine' | 'engine_running' | 'estimated' | 'none';

/** Nothing used. */
export const NO_USAGE: Usage = {
  input_tokens: 0,
  cached_input_tokens: 0,
  cache_write_tokens: 0,
  output_tokens: 0,
  reasoning_tokens: 0,
};

/**
 * Reads an engine's `usage` object (chat and completions shape; cache counters under each name engines use).
 *
 * @returns null when neither a prompt nor a completion count is there.
 */
export function readUsage(value: unknown): Usage | null {
  if (!isObject(value)) return null;
  const prompt = readCount(value['prompt_tokens']);
  const completion = readCount(value['completion_tokens']);
  const total = readCount(value['total_tokens']);
  if (prompt === null && completion === null) return null;
  const input = prompt ?? Math.max(0, (total ?? 0) - (completion ?? 0));
  const output = completion ?? Math.max(0, (total ?? 0) - input);
  const promptDetails = readObject(value['prompt_tokens_details']);
  const outputDetails = readObject(value['completion_tokens_details']);
  return buildUsage({
    input,
    output,
    cached: readCount(promptDetails['cached_tokens']) ?? 0,
    cacheWrite: readCount(promptDetails['created_cache_tokens']) ?? readCount(promptDetails['cache_write_tokens']) ?? 0,
    reasoning: readCount(outputDetails['reasoning_tokens']) ?? readCount(value['reasoning_tokens']) ?? 0,
  });
}

/** Builds a usage with every part clamped into its whole. */
export function buildUsage(counts: {
  readonly input: number;
  readonly output: number;
  readonly cached?: number;
  readonly cacheWrite?: number;
  readonly reasoning?: number;
}): Usage {
  const cached = Math.min(counts.cached ?? 0, counts.input);
  return {
    input_tokens: counts.input,
    cached_input_tokens: cached,
    cache_write_tokens: Math.min(counts.cacheWrite ?? 0, counts.input - cached),
    output_tokens: counts.output,
    reasoning_tokens: Math.min(counts.reasoning ?? 0, counts.output),
  };
}

/**
 * OpenAI's `usage` object for chat and completions.
 *
 * @param reported The engine's own object, if any: details that it counts are shown, a zero included.
 */
export function toCompletionUsage(usage: Usage, reported: unknown, estimated: boolean): Record<string, unknown> {
  const source = readObject(reported);
  const promptDetails = readObject(source['prompt_tokens_details']);
  const outputDetails = readObject(source['completion_tokens_details']);
  const wroteCache =
    readCount(promptDetails['created_cache_tokens'] ?? promptDetails['cache_write_tokens']) !== null ||
    usage.cache_write_tokens > 0;
  const readCache = readCount(promptDetails['cached_tokens']) !== null || usage.cached_input_tokens > 0;
  return {
    prompt_tokens: usage.input_tokens,
    completion_tokens: usage.output_tokens,
    total_tokens: usage.input_tokens + usage.output_tokens,
    ...(readCache || wroteCache
      ? {
          prompt_tokens_details: {
            cached_tokens: usage.cached_input_tokens,
            ...(wroteCache ? { created_cache_tokens: usage.cache_write_tokens } : {}),
          },
        }
      : {}),
    ...(readCount(outputDetails['reasoning_tokens']) !== null || usage.reasoning_tokens > 0
      ? { completion_tokens_details: { reasoning_tokens: usage.reasoning_tokens } }
      : {}),
    ...(estimated ? { estimated: true } : {}),
  };
}

/** Tokens that count against a token bucket. */
export function toTotalTokens(usage: Usage): number {
  return usage.input_tokens + usage.output_tokens;
}
