// `npm run turnpike -- …`: the operator's command line. Joins the program with the stores, the files and this terminal; exit
// code 2 is for usage, 1 for what went wrong or was found wrong.

import { existsSync, readFileSync } from 'node:fs';
import { resolve } from 'node:path';

import cliProgress from 'cli-progress';
import { CommanderError } from 'commander';

import { readMigrations } from './apply-migrations.ts';
import { checkBindings, checkShared } from './check-config.ts';
import { checkGateway } from './check-gateway.ts';
import { checkCrons, checkKeys, checkMigrations, checkMoney, checkStoredCatalog } from './check-stores.ts';
import type { CommandResult } from './command-result.ts';
import { runDoctor as runChecks } from './doctor.ts';
import { DEMO_BINDING } from './local-catalog.ts';
import { readLocalConfig, toConfigPath } from './local-config.ts';
import { openLocalStore } from './local-operator-store.ts';
import type { OperatorStore } from './operator-store.ts';
import { readEnvironments } from './read-environments.ts';
import type { Progress } from './receipt-commands.ts';
import { StartError, toReason } from './start-error.ts';
import { readBoundBackends } from './state-folder.ts';
import { onStopRequest } from './stop-request.ts';
import type { DoctorOptions, Place } from './program-ports.ts';
import { buildProgram } from './turnpike-program.ts';
import { createWranglerRunner, openWranglerStore } from './wrangler-operator-store.ts';

const ROOT = resolve(import.meta.dirname, '../..');
/** The exit code of a command that was stopped, and how long it may take to end in order. */
const STOPPED = 130;
const STOPPING_MS = 1000;
/** Fewer are done before a bar would be seen. */
const PROGRESS_MIN = 2000;

await main();

async function main(): Promise<void> {
  const stopping = new AbortController();
  onStopRequest(() => {
    stopping.abort();
    // A command that follows ends by itself; the others are ended, whatever they wait for.
    setTimeout(() => process.exit(STOPPED), STOPPING_MS).unref();
  });
  const program = buildProgram(
    {
      openStore,
      readBindings: listBindings,
      readFile: readText,
      runDoctor,
      print: (text) => console.log(text),
      note: (text) => console.error(text),
      stdout: process.stdout,
      progress: createProgress,
      now: Date.now,
      stopped: stopping.signal,
    },
    (code) => (process.exitCode = code),
  );
  // Each command is a program of its own to commander.
  const all = [program, ...program.commands, ...program.commands.flatMap(({ commands }) => commands)];
  for (const command of all) command.exitOverride();
  try {
    await program.parseAsync();
  } catch (error) {
    // commander has said already what was mistyped; help and version are no mistake.
    if (error instanceof CommanderError) process.exitCode = error.exitCode === 0 ? 0 : 2;
    else if (error instanceof StartError) {
      console.error(`turnpike: ${error.message}`);
      process.exitCode = error.exitCode;
    } else throw error;
  }
}

function openStore({ remote, state, env }: Place): Promise<OperatorStore> {
  if (!remote) {
    if (env !== undefined) throw new StartError('--env goes with --remote', 2);
    return openLocalStore(ROOT, state);
  }
  const where = ['--remote', ...(env === undefined ? [] : ['--env', env])];
  return Promise.resolve(openWranglerStore(where, createWranglerRunner(ROOT)));
}

/** The backends a catalog may name: locally those that `npm start` bound last, else those of wrangler.toml. */
async function listBindings({ remote, env, state }: Place): Promise<ReadonlySet<string>> {
  const bound = remote ? null : readBoundBackends(state);
  if (bound !== null) return new Set(bound);
  const environments = await readEnvironments(toConfigPath(ROOT, 'gateway'));
  const found = environments.find(({ environment }) => environment === (env ?? null));
  if (found === undefined) throw new StartError(`wrangler.toml has no environment ${env}`, 2);
  return new Set([...found.services, ...(remote ? [] : [DEMO_BINDING])]);
}

async function runDoctor(store: OperatorStore, place: Place, options: DoctorOptions): Promise<CommandResult> {
  const { url, model } = options;
  const key = options.key ?? process.env['TURNPIKE_KEY'];
  if (url !== undefined && key === undefined) throw new StartError('--url needs a --key, or TURNPIKE_KEY', 2);
  const environments = await readEnvironments(toConfigPath(ROOT, 'gateway'));
  const config = await readLocalConfig(ROOT);
  const names = readMigrations(config.d1.migrationsDir).map(({ name }) => name);
  const migrate = place.remote ? 'npx wrangler d1 migrations apply DB --remote' : 'npm start applies them';
  const access =
    url === undefined || key === undefined ? null : { url, key, ...(model === undefined ? {} : { model }) };
  return runChecks([
    { name: 'wrangler.toml', look: async () => [...checkBindings(environments), ...checkShared(environments)] },
    { name: 'D1', look: () => checkMigrations(store, names, config.d1.migrationsTable, migrate) },
    { name: 'catalog', look: async () => checkStoredCatalog(store, await listBindings(place)) },
    { name: 'keys', look: () => checkKeys(store, place.remote) },
    { name: 'credits', look: () => checkMoney(store) },
    { name: 'crons', look: () => checkCrons(store) },
    ...(access === null ? [] : [{ name: 'gateway', look: () => checkGateway(store, access) }]),
  ]);
}

function readText(path: string): string {
  if (!existsSync(path)) throw new StartError(`there is no file ${path}`);
  try {
    return readFileSync(path, 'utf8');
  } catch (error) {
    throw new StartError(`cannot read ${path} (${toReason(error)})`);
  }
}

/** A bar on stderr, for a person who would otherwise wonder. */
function createProgress(): Progress {
  const bar = new cliProgress.SingleBar(
    { clearOnComplete: true, stream: process.stderr },
    cliProgress.Presets.shades_classic,
  );
  let isShown = false;
  return {
    start(total) {
      isShown = process.stderr.isTTY && total >= PROGRESS_MIN;
      if (isShown) bar.start(total, 0);
    },
    at: (done) => void (isShown && bar.update(done)),
    stop: () => void (isShown && bar.stop()),
  };
}
