// `npm run bench [-- --quick] [--rounds N] [--json FILE]`: what the gateway costs beside a bare Worker (SPEC §7), in one run;
// with `--ledger` instead what its ledger and D1 bear. Tables go to stdout, progress to stderr; the exit code is 1 when any
// stream, receipt or call was not right.

import { writeFileSync } from 'node:fs';
import { performance } from 'node:perf_hooks';
import { parseArgs } from 'node:util';

import { startChild } from './child-process.ts';
import { benchLedger } from './ledger-bench.ts';
import { enginePortSchema } from './load-order.ts';
import { listLoads } from './loads.ts';
import { measure } from './measure.ts';
import { writeHeader, writeMachine, writeTable } from './report.ts';
import { summarize } from './summarize.ts';
import { startVariants, stopVariants, type Variant } from './variants.ts';

const ROUNDS = { quick: 2, whole: 5 } as const;

process.exitCode = await main();

async function main(): Promise<number> {
  const { values } = parseArgs({
    options: {
      quick: { type: 'boolean', default: false },
      ledger: { type: 'boolean', default: false },
      rounds: { type: 'string' },
      json: { type: 'string' },
    },
  });
  const rounds = Number(values.rounds ?? (values.quick ? ROUNDS.quick : ROUNDS.whole));
  if (!Number.isInteger(rounds) || rounds < 1) throw new RangeError('--rounds takes a whole number from 1');
  return values.ledger ? runLedger(rounds, values.json) : runStreams(values.quick, rounds, values.json);
}

async function runLedger(rounds: number, json: string | undefined): Promise<number> {
  const startMs = performance.now();
  const { text, faults, rounds: measured } = await benchLedger(rounds, note);
  const header = writeMachine(rounds, (performance.now() - startMs) / 1000);
  process.stdout.write(`${header}\n\n${text}\n`);
  if (json !== undefined) writeFileSync(json, JSON.stringify({ header, faults, rounds: measured }, null, 1));
  return tellFaults(faults);
}

async function runStreams(isQuick: boolean, rounds: number, json: string | undefined): Promise<number> {
  const loads = listLoads(isQuick);
  const startMs = performance.now();
  const engine = startChild('engine.ts');
  const generator = startChild('load-generator.ts');
  let variants: readonly Variant[] = [];
  try {
    const { port } = enginePortSchema.parse(await engine.ask());
    note('bundling and starting the Workers');
    variants = await startVariants(`http://127.0.0.1:${port}/v1`);
    const { cells, faults } = await measure({ variants, loads, rounds, generator, onProgress: note });
    const rows = summarize(cells, loads, variants);
    const header = writeHeader(rounds, (performance.now() - startMs) / 1000);
    const tables = loads.map((load) =>
      writeTable(
        load,
        rows.filter((row) => row.load === load.name),
      ),
    );
    process.stdout.write(`${[header, ...tables].join('\n\n')}\n`);
    if (json !== undefined) writeFileSync(json, JSON.stringify({ header, rows, faults, cells }, null, 1));
    const broken = [...rows.flatMap((row) => row.faults.map((fault) => `${row.variant}: ${fault}`)), ...faults];
    return tellFaults(broken);
  } finally {
    await stopVariants(variants);
    engine.stop();
    generator.stop();
  }
}

function tellFaults(faults: readonly string[]): number {
  for (const fault of new Set(faults)) process.stderr.write(`broken: ${fault}\n`);
  return faults.length === 0 ? 0 : 1;
}

function note(text: string): void {
  process.stderr.write(`bench: ${text}\n`);
}
