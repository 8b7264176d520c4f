// Counts what an answer used: the engine's own numbers where it gives any, wherever it puts them, else the deltas that
// were delivered. Numbers of an engine are cumulative: the last one counts. Engines that count each choice for itself
// (vLLM while it runs, llama.cpp at the end too) are added up, their common prompt once (SPEC §7, WIRE §4a).

import { type JsonObject, readCount, readObject } from '../core/json-read.ts';
import { buildUsage, readUsage, toTotalTokens, type Usage, type UsageSource } from '../core/usage.ts';

/** What is known of an answer's usage. `reported` is the engine's own object, for its details. */
export type Metered = { readonly usage: Usage; readonly source: UsageSource; readonly reported: unknown };

/** The meter of one answer. */
export type UsageMeter = {
  /** Reads a chunk or a whole answer. `finished`: every choice seen has ended. */
  readonly read: (value: JsonObject, finished: boolean) => void;
  /** The usage so far; `deltas` stands in for output tokens where the engine reports none. */
  readonly total: (deltas: number) => Metered;
};

/**
 * Creates a meter.
 *
 * @param promptTokens The estimate used where the engine counts nothing.
 * @param countsPerTask The engine's closing numbers are of one choice each, so several of them add up.
 */
export function createUsageMeter(promptTokens: number, countsPerTask: boolean): UsageMeter {
  const parts = new Map<string, Usage>();
  let whole: Usage | null = null;
  let reported: unknown = null;
  let isFinal = false;
  return {
    read(value, finished) {
      const usage = readUsage(value['usage']) ?? readTimings(value['timings']);
      // {0,0,0} on every chunk is how Ollama says that it has not counted yet.
      if (usage === null || (toTotalTokens(usage) === 0 && !finished)) return;
      reported = value['usage'] ?? reported;
      isFinal = finished;
      const index = readOnlyIndex(value['choices']);
      if (index !== null) parts.set(`choice ${index}`, usage);
      else if (countsPerTask) parts.set(`task ${parts.size}`, usage);
      else whole = usage;
    },
    total(deltas) {
      const known = whole ?? addParts(parts);
      if (known !== null) return { usage: known, source: isFinal ? 'engine' : 'engine_running', reported };
      if (deltas === 0) return { usage: buildUsage({ input: 0, output: 0 }), source: 'none', reported: null };
      return { usage: buildUsage({ input: promptTokens, output: deltas }), source: 'estimated', reported: null };
    },
  };
}

/** The counts of single choices as one; where a choice was counted as it ran and at its end, the end holds. */
function addParts(parts: ReadonlyMap<string, Usage>): Usage | null {
  const tasks = [...parts].filter(([name]) => name.startsWith('task ')).map(([, usage]) => usage);
  const counted = tasks.length > 0 ? tasks : [...parts.values()];
  if (counted.length === 0) return null;
  return buildUsage({
    input: Math.max(...counted.map((usage) => usage.input_tokens)),
    cached: Math.max(...counted.map((usage) => usage.cached_input_tokens)),
    cacheWrite: Math.max(...counted.map((usage) => usage.cache_write_tokens)),
    output: counted.reduce((sum, usage) => sum + usage.output_tokens, 0),
    reasoning: counted.reduce((sum, usage) => sum + usage.reasoning_tokens, 0),
  });
}

/** The index of a chunk's choice when it has exactly one that is a delta; null for a whole answer or none. */
function readOnlyIndex(value: unknown): number | null {
  if (!Array.isArray(value) || value.length !== 1) return null;
  const choice = readObject(value[0]);
  return 'message' in choice ? null : (readCount(choice['index']) ?? 0);
}

/** llama.cpp's running counts, asked for with `timings_per_token`. */
function readTimings(value: unknown): Usage | null {
  const timings = readObject(value);
  const fresh = readCount(timings['prompt_n']);
  const output = readCount(timings['predicted_n']);
  if (fresh === null || output === null) return null;
  const cached = readCount(timings['cache_n']) ?? 0;
  return buildUsage({ input: fresh + cached, output, cached });
}
