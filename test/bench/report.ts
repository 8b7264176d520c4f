// The bench's rows as text: what machine, what may be trusted, one table per load, the goals beside. Pure but for the
// machine's own description.

import { cpus } from 'node:os';

import { ADDED_TTFT_GOAL_MS, type Load, SLOPE_GOALS } from './loads.ts';
import type { Row, Spread } from './summarize.ts';

const HEADINGS = [
  'variant',
  'µs/event',
  'ratio to bare (min–max)',
  'goal',
  'fixed µs/request',
  'TTFT p50',
  'p99 ms',
  'added p50',
  'p99 ms',
  'streams/s',
  'RSS MiB',
  'broken',
] as const;

const MEBIBYTE = 1024 * 1024;

/** What ran where. */
export function writeMachine(rounds: number, seconds: number): string {
  const [cpu] = cpus();
  const model = cpu?.model.trim() ?? 'unknown';
  return [
    `Turnpike bench, ${new Date().toISOString().slice(0, 16)}Z, ${model}, ${cpus().length} cores, Node ${process.version}`,
    `${rounds} rounds, interleaved, ${seconds.toFixed(0)} s. The production bundle in workerd, no proxy before it.`,
  ].join('\n');
}

/** The lines above the tables. */
export function writeHeader(rounds: number, seconds: number): string {
  return [
    writeMachine(rounds, seconds),
    'CPU is user + system of workerd: gateway, bridge and, for the gateway, its stores. Figures are from the medians of the',
    'rounds; in brackets, what single rounds say. Only the ratios carry to another machine or another day: the other',
    'columns depend on what else ran here. Each stream was checked to be whole, each receipt to be there.',
  ].join('\n');
}

/** The table of one load. */
export function writeTable(load: Load, rows: readonly Row[]): string {
  const lengths = load.lengths.join(' and ');
  const pace = load.paceMs === 0 ? 'as fast as they come' : `every ${load.paceMs} ms`;
  const lines = [HEADINGS, ...rows.map((row) => writeRow(load, row))];
  const widths = HEADINGS.map((_, at) => Math.max(...lines.map((line) => line[at]?.length ?? 0)));
  const table = lines.map((line) =>
    line.map((text, at) => (at === 0 ? text.padEnd(widths[at] ?? 0) : text.padStart(widths[at] ?? 0))).join('  '),
  );
  return [`${load.streams} ${load.streams === 1 ? 'stream' : 'streams'}, ${lengths} events ${pace}`, ...table].join(
    '\n',
  );
}

function writeRow(load: Load, row: Row): readonly string[] {
  const mean = row.usPerRequest.map((us) => us.toFixed(0)).join(' / ');
  return [
    row.variant,
    writeSpread(row.usPerEvent, 1),
    row.ratio === null ? '–' : `${writeSpread(row.ratio, 2)} (${row.ratio.min.toFixed(2)}–${row.ratio.max.toFixed(2)})`,
    writeGoal(load, row),
    row.fixedUs === null ? `${mean} in all` : writeSpread(row.fixedUs, 0),
    row.ttftP50Ms.toFixed(1),
    row.ttftP99Ms.toFixed(1),
    writeAdded(load, row.addedP50Ms, ADDED_TTFT_GOAL_MS.p50),
    writeAdded(load, row.addedP99Ms, ADDED_TTFT_GOAL_MS.p99),
    row.streamsPerSecond.map((count) => count.toFixed(0)).join(' / '),
    (row.rssBytesMax / MEBIBYTE).toFixed(0),
    String(row.faults.length),
  ];
}

function writeGoal(load: Load, { goal, ratio }: Row): string {
  if (goal === null || ratio === null || (load.goal !== 'fast' && load.goal !== 'paced')) return '–';
  const most = SLOPE_GOALS[load.goal][goal];
  // What `plain` costs is no goal but what there is to beat.
  if (goal === 'plain') return `(${most.toFixed(1)})`;
  return `≤ ${most.toFixed(1)} ${ratio.value <= most ? 'met' : 'missed'}`;
}

function writeAdded(load: Load, addedMs: number, mostMs: number): string {
  const text = addedMs.toFixed(1);
  return load.goal === 'ttft' || load.goal === 'fast' ? `${text} (≤ ${mostMs})` : text;
}

function writeSpread(spread: Spread | null, digits: number): string {
  return spread === null ? '–' : spread.value.toFixed(digits);
}
