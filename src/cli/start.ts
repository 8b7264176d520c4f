// `npm start`: the whole gateway on this machine, offline, from the production bundle (SPEC §11). Reads the command line,
// asks the upstreams what they serve, hands over to run-locally and looks after the end. Ours goes to stdout, the
// Workers' own lines go to stderr as they are.

import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';

import { REPLAY_CRON } from '../core/crons.ts';
import { bundleWorkers } from './bundle-workers.ts';
import { listCatalogWarnings } from './catalog-warnings.ts';
import { buildCatalog, DEMO_BINDING, type Upstream } from './local-catalog.ts';
import { checkPort } from './local-port.ts';
import type { CatalogSource } from './local-store.ts';
import { readCatalogFile, readKeysFile } from './operator-files.ts';
import { buildDemoLine, buildReadyLines, chooseCurlModel } from './ready-message.ts';
import { runLocally, type LocalGateway } from './run-locally.ts';
import { StartError } from './start-error.ts';
import { parseStartOptions, USAGE, type StartOptions } from './start-options.ts';
import { clearStateFolder } from './state-folder.ts';
import { fetchUpstreamModels } from './upstream-models.ts';
import { onStopRequest } from './stop-request.ts';

/** How often the cron that looks for replays is run here. */
const REPLAY_MS = 5000;
const ROOT = resolve(import.meta.dirname, '../..');

await main();

async function main(): Promise<void> {
  const command = parseStartOptions(process.argv.slice(2));
  if (!command.ok) return fail(new StartError(`${command.error} (--help lists the options)`, 2));
  if (command.value.kind === 'help') return console.log(USAGE);
  const stopping = new AbortController();
  const starting = start(command.value.options, stopping.signal);
  onStopRequest(() => {
    stopping.abort();
    // The exit is explicit: an upstream's open connection must not keep the process.
    void starting
      .then((gateway) => gateway.stop())
      .then(
        () => process.exit(0),
        () => process.exit(0),
      );
  });
  try {
    await starting;
  } catch (error) {
    if (!stopping.signal.aborted) fail(error);
  }
}

async function start(options: StartOptions, signal: AbortSignal): Promise<LocalGateway> {
  await checkPort(options.port);
  const keys = options.keysFile === undefined ? {} : readKeysFile(options.keysFile);
  const upstreams = options.upstreams.map((baseUrl, index) => ({ binding: `UPSTREAM_${index + 1}`, baseUrl }));
  const { catalog, firstModel } = await prepareCatalog(options.catalogFile, upstreams);
  if (options.fresh) await clearStateFolder(options.stateDir);
  console.log(buildDemoLine());
  const bundleDir = mkdtempSync(join(tmpdir(), 'turnpike-bundle-'));
  const building = new AbortController();
  const workers = upstreams.length === 0 ? (['gateway', 'demo'] as const) : undefined;
  const untilStop = AbortSignal.any([signal, building.signal]);
  const bundled = bundleWorkers(ROOT, bundleDir, workers, untilStop).then(() => bundleDir);
  // runLocally awaits it late, and not at all when something else fails first.
  bundled.catch(() => undefined);
  try {
    const { port, stateDir, vars } = options;
    const gateway = await runLocally({
      root: ROOT,
      bundleDir: bundled,
      port,
      stateDir,
      upstreams,
      vars,
      keys,
      catalog,
    });
    if (gateway.catalogKept) {
      console.log('catalog: kept as it is in KV, because it was edited (--fresh starts over, --catalog replaces it)');
    }
    // Crons do not fire here by themselves; what an operator waits for must. The run logs its own faults.
    setInterval(() => void gateway.runScheduled(REPLAY_CRON).catch(() => undefined), REPLAY_MS).unref();
    const model = chooseCurlModel(gateway.catalogText, firstModel);
    for (const line of buildReadyLines(gateway.url, model)) console.log(line);
    return gateway;
  } finally {
    building.abort();
    rmSync(bundleDir, { recursive: true, force: true });
  }
}

async function prepareCatalog(
  catalogFile: string | undefined,
  upstreams: readonly { readonly binding: string; readonly baseUrl: string }[],
): Promise<{ catalog: CatalogSource; firstModel: string | undefined }> {
  if (catalogFile !== undefined) {
    const text = readCatalogFile(catalogFile);
    const bindings = new Set([DEMO_BINDING, ...upstreams.map(({ binding }) => binding)]);
    for (const line of listCatalogWarnings(text, bindings)) console.error(line);
    return { catalog: { text, origin: 'given' }, firstModel: undefined };
  }
  const served: Upstream[] = await Promise.all(
    upstreams.map(async ({ binding, baseUrl }) => ({ binding, models: await fetchUpstreamModels(baseUrl) })),
  );
  const text = JSON.stringify(buildCatalog(served, true), null, 2);
  return { catalog: { text, origin: 'generated' }, firstModel: served[0]?.models[0]?.id };
}

function fail(error: unknown): void {
  if (!(error instanceof StartError)) throw error;
  console.error(`turnpike: ${error.message}`);
  // Something that was started may still be on its way out; the code and the line are what counts.
  process.exit(error.exitCode);
}
