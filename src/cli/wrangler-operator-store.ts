// The stores of a deployment, through the wrangler of this repository and whatever account it is logged in to. Every call is
// one run of wrangler; its arguments are all there is to it.

import { execFile } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';

import * as z from 'zod';

import { SILENT_ENV } from './local-config.ts';
import { fillStatement, type Namespace, type OperatorStore, rowsSchema } from './operator-store.ts';
import { StartError } from './start-error.ts';
import { WRANGLER_PATH } from './wrangler-path.ts';

/** The D1 binding of wrangler.toml. */
const DATABASE = 'DB';
const DEADLINE_MS = 120_000;
/** Runs of wrangler at a time: each is a process. */
const PARALLEL = 4;
/** A page of receipts as JSON. */
const OUTPUT_BYTES_MAX = 256 * 1024 * 1024;

const namesSchema = z.array(z.object({ name: z.string() }));
const answersSchema = z.array(z.object({ results: rowsSchema }));
const saidSchema = z.object({ stdout: z.string(), stderr: z.string() });
const faultSchema = z.object({ error: z.object({ text: z.string() }) });

/** Runs wrangler and resolves to what it printed; rejects with a StartError that says what it complained of. */
export type RunWrangler = (args: readonly string[]) => Promise<string>;

/**
 * Opens the stores that wrangler knows.
 *
 * @param where Arguments that say which: `--remote`, or `--local --persist-to DIR`; and `--env NAME` where one is meant.
 */
export function openWranglerStore(where: readonly string[], run: RunWrangler): OperatorStore {
  const askKv = (args: readonly string[], binding: string): Promise<string> =>
    run(['kv', 'key', ...args, '--binding', binding, ...where]);
  // Wrangler ends the text with a line end of its own.
  const getEntry = async (namespace: Namespace, name: string): Promise<string> => {
    return (await askKv(['get', name, '--text'], namespace)).replace(/\n$/, '');
  };
  const listEntries: OperatorStore['listEntries'] = async (namespace, prefix) => {
    const listed = await askKv(['list', '--prefix', prefix], namespace);
    return namesSchema.parse(JSON.parse(listed)).map(({ name }) => name);
  };
  return {
    listEntries,
    async readEntry(namespace, name) {
      // What wrangler says of an entry that is missing differs from place to place.
      if (!(await listEntries(namespace, name)).includes(name)) return null;
      return getEntry(namespace, name);
    },
    async readEntries(namespace, prefix) {
      const entries = new Map<string, string>();
      const names = await listEntries(namespace, prefix);
      for (let at = 0; at < names.length; at += PARALLEL) {
        const some = names.slice(at, at + PARALLEL);
        const texts = await Promise.all(some.map((name) => getEntry(namespace, name)));
        for (const [index, name] of some.entries()) entries.set(name, texts[index] ?? '');
      }
      return entries;
    },
    async writeEntry(namespace, name, text) {
      // In a file: arguments can be seen by everybody on the machine.
      const dir = mkdtempSync(join(tmpdir(), 'turnpike-entry-'));
      try {
        const path = join(dir, 'entry');
        writeFileSync(path, text, { mode: 0o600 });
        await askKv(['put', name, '--path', path], namespace);
      } finally {
        rmSync(dir, { recursive: true, force: true });
      }
    },
    async query(sql, ...values) {
      const command = fillStatement(sql, values);
      const answer = await run(['d1', 'execute', DATABASE, '--json', '--yes', '--command', command, ...where]);
      return answersSchema.parse(JSON.parse(answer)).flatMap(({ results }) => results);
    },
    close: () => Promise.resolve(),
  };
}

/** Runs the wrangler of this repository from its root. */
export function createWranglerRunner(root: string): RunWrangler {
  const runFile = promisify(execFile);
  return async (args) => {
    try {
      const options = {
        cwd: root,
        env: { ...SILENT_ENV, ...process.env },
        timeout: DEADLINE_MS,
        maxBuffer: OUTPUT_BYTES_MAX,
      };
      const { stdout } = await runFile(process.execPath, ['--no-warnings', WRANGLER_PATH, ...args], options);
      return stdout;
    } catch (error) {
      throw new StartError(`wrangler ${args.slice(0, 3).join(' ')}: ${readComplaint(error)}`);
    }
  };
}

/** What wrangler said went wrong: JSON where it was asked for, else the lines on stderr. */
function readComplaint(error: unknown): string {
  const said = saidSchema.safeParse(error);
  const { stdout, stderr } = said.success ? said.data : { stdout: '', stderr: '' };
  try {
    return faultSchema.parse(JSON.parse(stdout)).error.text;
  } catch {
    const line = `${stderr}\n${stdout}`.split('\n').find((text) => /error|✘/i.test(text));
    return line?.trim() ?? String(error);
  }
}
