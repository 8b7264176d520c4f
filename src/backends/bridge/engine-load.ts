// Where each engine tells how busy it is, as a table: one row per engine, with the paths below the server's root and how to
// read what they answer. Which engine it is need not be told: the names in its answer say so. Pure; it sends nothing.

import * as z from 'zod';
import { parseJson } from './parse-json.ts';
import { readGauge } from './read-gauge.ts';

/** How busy an engine says it is; null for what it does not tell. */
export type EngineLoad = {
  /** Requests being computed. */
  readonly running: number | null;
  /** Requests that wait for their turn. */
  readonly waiting: number | null;
  /** Models held in memory, where the engine loads them on demand. */
  readonly loaded_models: readonly string[] | null;
};

/** A load, and the engine that was known by its answer. */
export type FoundLoad = { readonly engine: string; readonly load: EngineLoad };

type Read = (text: string) => EngineLoad | null;

const ENGINES: readonly { readonly engine: string; readonly sources: Readonly<Record<string, Read>> }[] = [
  { engine: 'vllm', sources: { '/metrics': readGauges('vllm:num_requests_running', 'vllm:num_requests_waiting') } },
  {
    engine: 'sglang',
    sources: {
      // Only with --enable-metrics; with priorities, one series per priority stands beside the whole.
      '/metrics': readGauges('sglang:num_running_reqs', 'sglang:num_queue_reqs', /[{,]priority="[^"]/),
      '/v1/loads': readLoads,
      // Versions before /v1/loads.
      '/get_load': readOldLoads,
    },
  },
  {
    engine: 'llamacpp',
    sources: {
      // Only with --metrics.
      '/metrics': readGauges('llamacpp:requests_processing', 'llamacpp:requests_deferred'),
      '/slots': readSlots,
    },
  },
  { engine: 'tgi', sources: { '/metrics': readGauges('tgi_batch_current_size', 'tgi_queue_size') } },
  // Ollama counts no requests; it tells which models are in memory.
  { engine: 'ollama', sources: { '/api/ps': readLoadedModels } },
];

/** The paths to ask, in rounds: the next round only when the one before told nothing. */
export const LOAD_PATHS: readonly (readonly string[])[] = [
  ['/metrics'],
  ['/v1/loads', '/get_load', '/slots', '/api/ps'],
];

/** The first engine whose own words are found among the answers, by path. */
export function findLoad(answers: ReadonlyMap<string, string>): FoundLoad | null {
  for (const { engine, sources } of ENGINES) {
    for (const [path, read] of Object.entries(sources)) {
      const text = answers.get(path);
      const load = text === undefined ? null : read(text);
      if (load !== null) return { engine, load };
    }
  }
  return null;
}

function readGauges(runningName: string, waitingName: string, part?: RegExp): Read {
  return (text) => {
    const running = readGauge(text, runningName, part);
    const waiting = readGauge(text, waitingName, part);
    return running === null && waiting === null ? null : { running, waiting, loaded_models: null };
  };
}

const count = z.int().nonnegative();
// One entry per data-parallel rank.
const loadsSchema = z.object({
  loads: z.array(z.object({ num_running_reqs: count, num_waiting_reqs: count })).nonempty(),
});
const oldLoadsSchema = z.array(z.object({ num_reqs: count, num_waiting_reqs: count })).nonempty();
const slotsSchema = z.array(z.object({ is_processing: z.boolean() })).nonempty();
const loadedSchema = z.object({ models: z.array(z.object({ name: z.string(), size_vram: z.number() })) });

function readLoads(text: string): EngineLoad | null {
  const parsed = loadsSchema.safeParse(parseJson(text));
  if (!parsed.success) return null;
  const { loads } = parsed.data;
  return {
    running: sum(loads.map(({ num_running_reqs }) => num_running_reqs)),
    waiting: sum(loads.map(({ num_waiting_reqs }) => num_waiting_reqs)),
    loaded_models: null,
  };
}

/** Here `num_reqs` counts those that wait too. */
function readOldLoads(text: string): EngineLoad | null {
  const parsed = oldLoadsSchema.safeParse(parseJson(text));
  if (!parsed.success) return null;
  const waiting = sum(parsed.data.map(({ num_waiting_reqs }) => num_waiting_reqs));
  const all = sum(parsed.data.map(({ num_reqs }) => num_reqs));
  return { running: Math.max(0, all - waiting), waiting, loaded_models: null };
}

/** Slots tell what runs; what waits for a slot is told by /metrics alone. */
function readSlots(text: string): EngineLoad | null {
  const parsed = slotsSchema.safeParse(parseJson(text));
  if (!parsed.success) return null;
  return { running: parsed.data.filter((slot) => slot.is_processing).length, waiting: null, loaded_models: null };
}

function readLoadedModels(text: string): EngineLoad | null {
  const parsed = loadedSchema.safeParse(parseJson(text));
  if (!parsed.success) return null;
  return { running: null, waiting: null, loaded_models: parsed.data.models.map(({ name }) => name) };
}

function sum(numbers: readonly number[]): number {
  return numbers.reduce((total, number) => total + number, 0);
}
