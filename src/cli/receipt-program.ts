// The command line of `turnpike receipts …`: what its commands take. What they do is receipt-commands.ts.

import { type Command, InvalidArgumentError, Option } from 'commander';
import { parseLimit, parseTime } from './command-result.ts';
import type { Row } from './operator-store.ts';
import type { Place, ProgramPorts, Runner } from './program-ports.ts';
import {
  exportReceipts,
  type ExportOptions,
  replayReceipts,
  type ReplayOptions,
  tailReceipts,
  writeReceiptLine,
} from './receipt-commands.ts';

const LINES_MAX = 1000;

/** Adds `receipts …`. */
export function addReceipts(program: Command, ports: ProgramPorts, run: Runner): void {
  const receipts = program.command('receipts').description('the record of every request');
  receipts
    .command('tail')
    .description('the newest receipts in D1')
    .option('--workspace <id>', 'those of one workspace')
    .addOption(new Option('--lines <n>', 'how many').argParser(parseLines).default(20))
    .option('--follow', 'wait for more', false)
    .action(async (options: { workspace?: string; lines: number; follow: boolean }, command: Command) => {
      const place = command.optsWithGlobals<Place>();
      const store = await ports.openStore(place);
      try {
        const print = (row: Row): void => ports.print(place.json ? JSON.stringify(row) : writeReceiptLine(row));
        await tailReceipts(store, options, print, ports.stopped);
      } finally {
        await store.close();
      }
    });
  receipts
    .command('export')
    .description('all receipts of a time, to a file or to stdout')
    .option('--workspace <id>', 'those of one workspace')
    .addOption(new Option('--from <time>', 'from then on').argParser(parseTime))
    .addOption(new Option('--to <time>', 'before then').argParser(parseTime))
    .addOption(new Option('--format <kind>', 'JSON lines or CSV').choices(['jsonl', 'csv']).default('jsonl'))
    .option('--output <file>', 'a file that is not there yet')
    .action(async (options: ExportOptions, command: Command) => {
      const place = command.optsWithGlobals<Place>();
      const store = await ports.openStore(place);
      try {
        const { data, text } = await exportReceipts(store, options, ports.stdout, ports.progress());
        ports.note(place.json ? JSON.stringify(data) : text);
      } finally {
        await store.close();
      }
    });
  receipts
    .command('replay')
    .description('have ledgers carry to D1 again what they keep of the last seven days: after D1 was restored')
    .option('--workspace <id>', 'one workspace; else all')
    .addOption(new Option('--since <time>', 'what was closed from then on').argParser(parseTime))
    .option('--wait', 'wait until the ledgers were asked', false)
    .action(async (options: ReplayOptions, command: Command) => {
      await run(command, (store) => replayReceipts(store, options, ports.now(), ports.progress()));
    });
}

function parseLines(text: string): number {
  const lines = parseLimit(text);
  if (lines === null || lines < 1 || lines > LINES_MAX) {
    throw new InvalidArgumentError(`expected a whole number from 1 to ${LINES_MAX}`);
  }
  return lines;
}
