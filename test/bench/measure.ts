// Runs the loads over the variants in interleaved rounds, so that what disturbs the machine disturbs all alike. Measures
// only; what the figures say is summarize.ts.

import type { Child } from './child-process.ts';
import { loadResultSchema, type LoadOrder } from './load-order.ts';
import { type Load, WARM_UP } from './loads.ts';
import { readCpuUs, readRssBytes } from './process-cost.ts';
import type { Variant } from './variants.ts';

/** One variant under one load of one length, once. */
export type Cell = {
  readonly variant: string;
  readonly load: string;
  readonly round: number;
  readonly events: number;
  readonly requests: number;
  readonly cpuUs: number;
  readonly wallMs: number;
  readonly rssBytes: number;
  readonly ttftMs: readonly number[];
  readonly faults: readonly string[];
};

export type MeasureOptions = {
  readonly variants: readonly Variant[];
  readonly loads: readonly Load[];
  readonly rounds: number;
  readonly generator: Child;
  readonly onProgress: (text: string) => void;
};

/** A settlement is saved some 20 ms after the stream. */
const AFTER_MS = 100;

/** Measures; returns the cells and, per variant, what was wrong beyond its streams. */
export async function measure(options: MeasureOptions): Promise<{ cells: readonly Cell[]; faults: readonly string[] }> {
  const { variants, loads, rounds, generator, onProgress } = options;
  const cells: Cell[] = [];
  const sent = new Map<Variant, number>();
  // What a variant does behind its streams, such as carrying receipts, is done while the others run. It belongs to the
  // cell before, so a cell is closed when the variant's next one begins.
  const open = new Map<Variant, { readonly cell: Omit<Cell, 'cpuUs'>; readonly fromUs: number }>();
  const close = (variant: Variant): number => {
    const nowUs = readCpuUs(variant.pid);
    const last = open.get(variant);
    if (last !== undefined) cells.push({ ...last.cell, cpuUs: nowUs - last.fromUs });
    return nowUs;
  };
  const run = async (variant: Variant, load: Load, events: number, round: number): Promise<void> => {
    const fromUs = close(variant);
    const result = loadResultSchema.parse(await generator.ask(buildOrder(variant, load, events)));
    const requests = result.ttftMs.length + result.faults.length;
    await pause(AFTER_MS);
    sent.set(variant, (sent.get(variant) ?? 0) + requests);
    const place = { variant: variant.name, load: load.name, round, events, requests };
    open.set(variant, { cell: { ...place, ...result, rssBytes: readRssBytes(variant.pid) }, fromUs });
  };
  const runAll = async (load: Load, round: number): Promise<void> => {
    for (const events of load.lengths) {
      for (const variant of rotate(variants, round)) await run(variant, load, events, round);
    }
  };

  onProgress('warming up');
  await runAll(WARM_UP, WARM_UP_ROUND);
  for (let round = 0; round < rounds; round += 1) {
    for (const load of loads) {
      onProgress(`round ${round + 1} of ${rounds}: ${load.name}`);
      await runAll(load, round);
    }
  }
  onProgress('waiting for the last receipts');
  const faults = await Promise.all(variants.map((variant) => variant.findFault(sent.get(variant) ?? 0)));
  for (const variant of variants) close(variant);
  return {
    cells: cells.filter(({ round }) => round !== WARM_UP_ROUND),
    faults: faults.flatMap((fault, at) => (fault === null ? [] : [`${variants[at]?.name}: ${fault}`])),
  };
}

const WARM_UP_ROUND = -1;

function buildOrder(variant: Variant, load: Load, events: number): LoadOrder {
  const body = variant.buildBody(events, load.paceMs);
  const call = { url: variant.url, headers: { ...variant.headers }, body, events };
  return { call, streams: load.streams, forMs: load.forMs, spreadMs: load.spreadMs };
}

/** Nobody is always first. */
function rotate<T>(list: readonly T[], by: number): readonly T[] {
  const at = Math.max(0, by) % list.length;
  return [...list.slice(at), ...list.slice(0, at)];
}

function pause(durationMs: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, durationMs));
}
