// Counts what an answer used: the engine's own numbers where it gives any, wherever it puts them, else the deltas that
// were delivered. Numbers of an engine are cumulative: the last one counts. Engines that count each choice for itself
// (vLLM while it runs, llama.cpp at the end too) are added up, their common prompt once (SPEC §7, WIRE §4a).

import { type JsonObject, parseJsonObject, readCount, readObject } from '../core/json-read.ts';
import { type CountsName } from './delta-template.ts';
import { type AnswerContext } from './endpoint.ts';
import { ENGINE_QUIRKS } from './engine-quirks.ts';
import { buildUsage, readUsage, toTotalTokens, type Usage, type UsageSource } from '../core/usage.ts';

/** What is known of an answer's usage. `reported` is the engine's own object, for its details. */
export type Metered = { readonly usage: Usage; readonly source: UsageSource; readonly reported: unknown };

/** The meter of one answer. */
export type UsageMeter = {
  /** Reads a chunk or a whole answer. `finished`: every choice seen has ended. */
  readonly read: (value: JsonObject, finished: boolean) => void;
  /** Keeps counts of a choice that is not finished, as text; they are read when they matter. The last ones count. */
  readonly note: (index: number, name: CountsName, text: string) => void;
  /** The usage so far; `deltas` stands in for output tokens where the engine reports none. */
  readonly total: (deltas: number) => Metered;
};

/** Creates the meter of one answer. The request's own estimate stands in where the engine counts nothing. */
export function createUsageMeter({ request, backend }: AnswerContext): UsageMeter {
  const { countsPerTask } = ENGINE_QUIRKS[backend.engine];
  const parts: Parts = { choices: new Map(), tasks: [] };
  let whole: Usage | null = null;
  let reported: unknown = null;
  let isFinal = false;
  const noted = new Map<number, { readonly name: CountsName; text: string }>();
  /** The index noted last: it is the last of the map. */
  let lastNoted = -1;

  function read(value: JsonObject, finished: boolean): void {
    const usage = readUsage(value['usage']) ?? readTimings(value['timings']);
    // {0,0,0} on every chunk is how Ollama says that it has not counted yet.
    if (usage === null || (toTotalTokens(usage) === 0 && !finished)) return;
    reported = value['usage'] ?? reported;
    isFinal = finished;
    const index = readOnlyIndex(value['choices']);
    if (index !== null) parts.choices.set(index, usage);
    else if (countsPerTask) parts.tasks.push(usage);
    else whole = usage;
  }

  /** Numbers and digits only were checked when they were noted; what still is no JSON counts as never said. */
  function readNoted(): void {
    for (const [index, { name, text }] of noted) read({ [name]: parseJsonObject(text), choices: [{ index }] }, false);
    noted.clear();
    lastNoted = -1;
  }

  return {
    read(value, finished) {
      readNoted();
      read(value, finished);
    },
    note(index, name, text) {
      const last = lastNoted === index ? noted.get(index) : undefined;
      if (last?.name === name) {
        last.text = text;
        return;
      }
      // Behind all others: the last counts are the ones whose details are shown.
      noted.delete(index);
      noted.set(index, { name, text });
      lastNoted = index;
    },
    total(deltas) {
      readNoted();
      const known = whole ?? addParts(parts, request.choicesPerPrompt);
      if (known !== null) {
        // An upstream that is a gateway itself says where it had to estimate.
        const source = readObject(reported)['estimated'] === true ? 'estimated' : isFinal ? 'engine' : 'engine_running';
        return { usage: known, source, reported };
      }
      if (deltas === 0) return { usage: buildUsage({ input: 0, output: 0 }), source: 'none', reported: null };
      return {
        usage: buildUsage({ input: request.promptTokens, output: deltas }),
        source: 'estimated',
        reported: null,
      };
    },
  };
}

/** Counts of single choices; where an engine closes each with counts of its own, those hold. */
type Parts = { readonly choices: Map<number, Usage>; readonly tasks: Usage[] };

/** The counts of single choices as one: outputs add up, a prompt counts once for all its choices. */
function addParts({ choices, tasks }: Parts, choicesPerPrompt: number): Usage | null {
  // Closing counts hold where every choice has them; llama-server closes several choices with those of one (b10573).
  const counted = tasks.length >= Math.max(1, choices.size) ? tasks.map((usage) => [0, usage] as const) : [...choices];
  if (counted.length === 0) return null;
  const prompts = new Map<number, Usage>();
  for (const [index, usage] of counted) {
    const prompt = Math.floor(index / choicesPerPrompt);
    const before = prompts.get(prompt);
    if (before === undefined || before.input_tokens <= usage.input_tokens) prompts.set(prompt, usage);
  }
  const outputs = counted.map(([, usage]) => usage);
  return buildUsage({
    input: sum(prompts.values(), 'input_tokens'),
    cached: sum(prompts.values(), 'cached_input_tokens'),
    cacheWrite: sum(prompts.values(), 'cache_write_tokens'),
    output: sum(outputs, 'output_tokens'),
    reasoning: sum(outputs, 'reasoning_tokens'),
  });
}

function sum(usages: Iterable<Usage>, field: keyof Usage): number {
  return [...usages].reduce((total, usage) => total + usage[field], 0);
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
