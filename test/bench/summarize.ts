// From cells to rows: the slope of CPU per event over the two lengths of a load, the fixed cost of a request beside it,
// the ratios to bare. Each from the medians of the rounds, with what single rounds would have said. Pure.

import type { Cell } from './measure.ts';
import type { Load } from './loads.ts';
import type { GoalName } from './variants.ts';

/** A figure from the medians of all rounds, and between what it lies in single rounds. */
export type Spread = { readonly value: number; readonly min: number; readonly max: number };

export type Row = {
  readonly load: string;
  readonly variant: string;
  readonly goal: GoalName | null;
  readonly usPerEvent: Spread | null;
  /** Of the slopes, to bare's. */
  readonly ratio: Spread | null;
  readonly fixedUs: Spread | null;
  /** CPU of one whole request, per length. */
  readonly usPerRequest: readonly number[];
  readonly ttftP50Ms: number;
  readonly ttftP99Ms: number;
  readonly addedP50Ms: number;
  readonly addedP99Ms: number;
  readonly streamsPerSecond: readonly number[];
  readonly rssBytesMax: number;
  readonly faults: readonly string[];
};

type Fit = { readonly usPerEvent: number; readonly fixedUs: number };
type Named = { readonly name: string; readonly goal: GoalName | null };

/** One row per load and variant; the first variant is the one the others are compared with. */
export function summarize(cells: readonly Cell[], loads: readonly Load[], variants: readonly Named[]): readonly Row[] {
  const [bare] = variants;
  return loads.flatMap((load) => {
    const pick = (name: string): readonly Cell[] =>
      cells.filter((cell) => cell.load === load.name && cell.variant === name);
    const base = pick(bare?.name ?? '');
    return variants.map(({ name, goal }) => ({ variant: name, goal, ...buildRow(load, pick(name), base) }));
  });
}

function buildRow(load: Load, own: readonly Cell[], base: readonly Cell[]): Omit<Row, 'variant' | 'goal'> {
  const fit = fitAll(load, own);
  const baseFit = fitAll(load, base);
  const fits = fitRounds(load, own);
  const baseFits = fitRounds(load, base);
  const ratios = fits.map(({ usPerEvent }, round) => usPerEvent / (baseFits[round]?.usPerEvent ?? NaN));
  const ttft = own.flatMap(({ ttftMs }) => ttftMs);
  const baseTtft = base.flatMap(({ ttftMs }) => ttftMs);
  const perLength = (read: (cell: Cell) => number): number[] =>
    load.lengths.map((events) => toQuantile(own.filter((cell) => cell.events === events).map(read), 0.5));
  const quantiles = { ttftP50Ms: toQuantile(ttft, 0.5), ttftP99Ms: toQuantile(ttft, 0.99) };
  return {
    load: load.name,
    usPerEvent: toSpread(
      fit?.usPerEvent,
      fits.map((each) => each.usPerEvent),
    ),
    ratio: toSpread(fit && baseFit && fit.usPerEvent / baseFit.usPerEvent, ratios),
    fixedUs: toSpread(
      fit?.fixedUs,
      fits.map((each) => each.fixedUs),
    ),
    usPerRequest: perLength((cell) => cell.cpuUs / cell.requests),
    ...quantiles,
    addedP50Ms: quantiles.ttftP50Ms - toQuantile(baseTtft, 0.5),
    addedP99Ms: quantiles.ttftP99Ms - toQuantile(baseTtft, 0.99),
    streamsPerSecond: perLength((cell) => (cell.requests / cell.wallMs) * 1000),
    rssBytesMax: Math.max(...own.map(({ rssBytes }) => rssBytes)),
    faults: own.flatMap(({ faults }) => faults),
  };
}

/** One fit per round. */
function fitRounds(load: Load, cells: readonly Cell[]): readonly Fit[] {
  const rounds = [...new Set(cells.map(({ round }) => round))].toSorted((a, b) => a - b);
  return rounds.flatMap((round) => {
    const fit = fitAll(
      load,
      cells.filter((cell) => cell.round === round),
    );
    return fit === undefined ? [] : [fit];
  });
}

/** The line through the median costs of both lengths; none for a load of one length. */
function fitAll(load: Load, cells: readonly Cell[]): Fit | undefined {
  const [short, long] = load.lengths;
  if (short === undefined || long === undefined) return undefined;
  const toCost = (events: number): number =>
    toQuantile(
      cells.filter((cell) => cell.events === events).map((cell) => cell.cpuUs / cell.requests),
      0.5,
    );
  const usPerEvent = (toCost(long) - toCost(short)) / (long - short);
  return { usPerEvent, fixedUs: toCost(short) - usPerEvent * short };
}

function toSpread(value: number | undefined, rounds: readonly number[]): Spread | null {
  return value === undefined ? null : { value, min: Math.min(...rounds), max: Math.max(...rounds) };
}

/** By linear interpolation; NaN of nothing. */
export function toQuantile(values: readonly number[], q: number): number {
  const sorted = values.toSorted((a, b) => a - b);
  const at = (sorted.length - 1) * q;
  const low = sorted[Math.floor(at)] ?? NaN;
  const high = sorted[Math.ceil(at)] ?? NaN;
  return low + (high - low) * (at - Math.floor(at));
}
