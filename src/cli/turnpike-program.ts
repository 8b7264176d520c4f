// The command line of `npm run turnpike`: which commands there are and what they take. Every command gets the stores it
// names; what it says is printed here, as text or as JSON.

import { Argument, Command, Option } from 'commander';
import { checkCatalog, diffCatalog, putCatalog } from './catalog-commands.ts';
import { parseLimit, parseList, parseSpan, parseTime } from './command-result.ts';
import { grantCredits, listCredits } from './credit-commands.ts';
import { createKey, type CreateKeyOptions, listKeys, revokeKey, rotateKey, showKey } from './key-commands.ts';
import type { DoctorOptions, Place, ProgramPorts, Run, Runner } from './program-ports.ts';
import { addReceipts } from './receipt-program.ts';
import { listWorkspaces, putWorkspace, type PutWorkspaceOptions, showWorkspace } from './workspace-commands.ts';

/** Builds the program. `setExitCode` is called with 1 when a command found something wrong. */
export function buildProgram(ports: ProgramPorts, setExitCode: (code: number) => void): Command {
  const program = new Command('turnpike');
  program
    .description('Keys, workspaces, catalog, credits and receipts of a Turnpike gateway.')
    .addOption(new Option('--local', 'the stores of npm start (the default)').conflicts('remote'))
    .addOption(new Option('--remote', 'the deployment that wrangler is logged in to').default(false, 'off'))
    .option('--state <dir>', 'the state folder of npm start', '.turnpike')
    .option('--env <name>', 'an environment of wrangler.toml, with --remote')
    .option('--json', 'say it as JSON', false)
    .configureHelp({ showGlobalOptions: true });

  const run = async (command: Command, does: Run): Promise<void> => {
    const place = command.optsWithGlobals<Place>();
    const store = await ports.openStore(place);
    try {
      const { data, text, failed = false } = await does(store, place);
      ports.print(place.json ? JSON.stringify(data, null, 2) : text);
      if (failed) setExitCode(1);
    } finally {
      await store.close();
    }
  };

  addKeys(program, ports, run);
  addWorkspaces(program, run);
  addCatalog(program, ports, run, setExitCode);
  addCredits(program, run);
  addReceipts(program, ports, run);
  program
    .command('doctor')
    .description('look at the whole setup; with --url and --key at a running gateway too')
    .option('--url <url>', 'where the gateway answers')
    .option('--key <token>', 'a key for a test request (or TURNPIKE_KEY in the environment)')
    .option('--model <id>', 'the model to ask; else the first that the key may call')
    .action(async (options: DoctorOptions, command: Command) => {
      await run(command, (store, place) => ports.runDoctor(store, place, options));
    });
  return program;
}

function limitOption(flag: string, what: string): Option {
  return new Option(`--${flag} <n>`, `${what}; \`unlimited\` lifts it`).argParser(parseLimit);
}

function addLimits(command: Command): Command {
  return command
    .addOption(limitOption('rpm', 'requests a minute'))
    .addOption(limitOption('tpm', 'tokens a minute'))
    .addOption(limitOption('concurrency', 'requests at a time'));
}

function addKeys(program: Command, ports: ProgramPorts, run: Runner): void {
  const keys = program.command('keys').description('make, list, show, rotate and revoke keys');
  addLimits(
    keys
      .command('create')
      .description('make a key; its token is shown once')
      .requiredOption('--workspace <id>', 'whose key it is')
      .option('--id <id>', 'a legible id; else one is drawn')
      .option('--name <text>', 'what it is for')
      .addOption(new Option('--scopes <list>', 'inference:write,models:read,receipts:read').argParser(parseList))
      .addOption(new Option('--models <list>', 'the models it may call; else all').argParser(parseList))
      .addOption(new Option('--expires <time>', 'when it ends').argParser(parseTime)),
  ).action(async (options: CreateKeyOptions, command: Command) => {
    await run(command, (store) => createKey(store, options));
  });
  keys
    .command('list')
    .description('all keys and their state')
    .option('--workspace <id>', 'those of one workspace')
    .action(async (options: { workspace?: string }, command: Command) => {
      await run(command, (store) => listKeys(store, options.workspace, ports.now()));
    });
  keys
    .command('show')
    .description("one key's entry")
    .argument('<id>')
    .action(async (id: string, _: object, command: Command) => {
      await run(command, (store) => showKey(store, id, ports.now()));
    });
  keys
    .command('rotate')
    .description('a new token; the old one stays good for a while')
    .argument('<id>')
    .addOption(new Option('--grace <span>', 'how long').argParser(parseSpan).default(24 * 3_600_000, '24h'))
    .action(async (id: string, options: { grace: number }, command: Command) => {
      await run(command, (store) => rotateKey(store, id, options.grace, ports.now()));
    });
  keys
    .command('revoke')
    .description('stop a key within ten seconds, streams under way included')
    .argument('<id>')
    .action(async (id: string, _: object, command: Command) => {
      await run(command, (store) => revokeKey(store, id));
    });
}

function addWorkspaces(program: Command, run: Runner): void {
  const workspaces = program.command('workspaces').description('tenants: limits, billing');
  workspaces
    .command('list')
    .description('all workspaces')
    .action(async (_: object, command: Command) => {
      await run(command, (store) => listWorkspaces(store));
    });
  workspaces
    .command('show')
    .description("one workspace's entry")
    .argument('<id>')
    .action(async (id: string, _: object, command: Command) => {
      await run(command, (store) => showWorkspace(store, id));
    });
  addLimits(
    workspaces
      .command('put')
      .description('make a workspace, or change what is named of one')
      .argument('<id>')
      .option('--name <text>', 'its name')
      .addOption(new Option('--billing <kind>', 'how it pays').choices(['prepaid', 'postpaid']))
      .option('--location <hint>', 'where its ledger is first made: weur, enam, …')
      .option('--disable', 'refuse all of its keys')
      .option('--enable', 'let them in again'),
  ).action(async (id: string, options: PutWorkspaceOptions, command: Command) => {
    await run(command, (store) => putWorkspace(store, id, options));
  });
}

function addCatalog(program: Command, ports: ProgramPorts, run: Runner, setExitCode: (code: number) => void): void {
  const catalog = program.command('catalog').description('the models and their backends');
  const file = new Argument('<file>', 'a catalog as JSON');
  catalog
    .command('check')
    .description('whether a file is sound; stores nothing')
    .addArgument(file)
    .action(async (path: string, _: object, command: Command) => {
      const place = command.optsWithGlobals<Place>();
      const { data, text, failed } = checkCatalog(ports.readFile(path), await ports.readBindings(place));
      ports.print(place.json ? JSON.stringify(data, null, 2) : text);
      if (failed === true) setExitCode(1);
    });
  catalog
    .command('diff')
    .description('what a file would change')
    .addArgument(file)
    .action(async (path: string, _: object, command: Command) => {
      await run(command, (store) => diffCatalog(store, ports.readFile(path)));
    });
  catalog
    .command('put')
    .description('check a file and store it')
    .addArgument(file)
    .action(async (path: string, _: object, command: Command) => {
      await run(command, async (store, place) => {
        return putCatalog(store, ports.readFile(path), await ports.readBindings(place));
      });
    });
}

function addCredits(program: Command, run: Runner): void {
  const credits = program.command('credits').description('what prepaid workspaces are granted');
  credits
    .command('grant')
    .description('add an amount; a negative one corrects (write -- before it)')
    .argument('<workspace>')
    .argument('<usd>', 'a decimal such as 25 or 12.50')
    .option('--note <text>', 'why')
    .action(async (workspace: string, usd: string, options: { note?: string }, command: Command) => {
      await run(command, (store) => grantCredits(store, workspace, usd, options.note));
    });
  credits
    .command('list')
    .description('every grant')
    .argument('[workspace]')
    .action(async (workspace: string | undefined, _: object, command: Command) => {
      await run(command, (store) => listCredits(store, workspace));
    });
}
