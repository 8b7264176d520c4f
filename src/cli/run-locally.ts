// Serves the production bundle on this machine with real KV, D1, Durable Objects and service bindings: what `npm start`,
// the process tests and the bench share. It neither bundles nor prints.

import { mkdtempSync } from 'node:fs';
import { rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

import type { Miniflare, V4WorkerOptions } from 'miniflare';

import { readBundle } from './bundle-workers.ts';
import { DEMO_BINDING } from './local-catalog.ts';
import { readLocalConfig, type LocalConfig, type WorkerName } from './local-config.ts';
import { checkPort, LOOPBACK } from './local-port.ts';
import { fillStore, type CatalogSource, type FilledStore } from './local-store.ts';
import { startMiniflare } from './miniflare-host.ts';
import { StartError, toReason } from './start-error.ts';
import { claimStateFolder, toStorePath } from './state-folder.ts';
import { guardWorkerd } from './workerd-guard.ts';

export type RunOptions = {
  /** The repository, or a folder laid out like it. */
  readonly root: string;
  /** What `bundleWorkers` filled, or its promise: the stores are filled meanwhile. */
  readonly bundleDir: string | Promise<string>;
  readonly port: number;
  /** Without it the state lives in a temporary folder and ends with the gateway. */
  readonly stateDir?: string | undefined;
  readonly upstreams?: readonly { readonly binding: string; readonly baseUrl: string }[];
  readonly demo?: boolean;
  /** Vars of the demo engine. */
  readonly demoVars?: Readonly<Record<string, string>>;
  /** Vars of the gateway, over those of wrangler.toml. */
  readonly vars?: Readonly<Record<string, string>>;
  /** Entries for KEYS beside the demo key, as texts. */
  readonly keys?: Readonly<Record<string, string>>;
  readonly catalog?: CatalogSource;
  /** Gets each line that a Worker logs; by default it goes to stderr as it is. */
  readonly onLog?: (line: string) => void;
};

export type LocalGateway = FilledStore & {
  readonly url: string;
  /** Ends the runtime; safe to call twice. */
  readonly stop: () => Promise<void>;
  readonly getKVNamespace: (binding: string) => ReturnType<Miniflare['getKVNamespace']>;
  readonly getD1Database: (binding?: string) => ReturnType<Miniflare['getD1Database']>;
  /** Runs what a cron of wrangler.toml would. */
  readonly runScheduled: (cron: string) => Promise<void>;
  /** The process to measure. */
  readonly workerdPid: () => number | undefined;
};

const HEALTH_DEADLINE_MS = 10_000;
const HEALTH_PAUSE_MS = 20;

/**
 * Fills the stores, starts the Workers and returns when the gateway answers on its port.
 *
 * @throws StartError when the port is taken, the state folder is in use or the gateway does not come up.
 */
export async function runLocally(options: RunOptions): Promise<LocalGateway> {
  const onLog = options.onLog ?? ((line: string) => void process.stderr.write(`${line}\n`));
  await checkPort(options.port);
  const temporaryDir = options.stateDir === undefined ? mkdtempSync(join(tmpdir(), 'turnpike-state-')) : undefined;
  const stateDir = options.stateDir ?? temporaryDir ?? '';
  const guard = guardWorkerd();
  let miniflare: Miniflare | undefined;
  const stop = async (): Promise<void> => {
    await miniflare?.dispose();
    guard.release();
    if (temporaryDir !== undefined) await rm(temporaryDir, { recursive: true, force: true });
  };
  try {
    const backends = (options.upstreams ?? []).map(({ binding }) => binding);
    await claimStateFolder(stateDir, options.port, [...((options.demo ?? true) ? [DEMO_BINDING] : []), ...backends]);
    const config = await readLocalConfig(options.root);
    checkVars(options.vars ?? {}, config.storeBindings);
    const content = { keys: options.keys ?? {}, catalog: options.catalog };
    const filled = await fillStore(config, toStorePath(stateDir), content, onLog);
    const workers = buildWorkers(config, await options.bundleDir, options);
    // Bundling takes seconds, so the port may have gone meanwhile.
    await checkPort(options.port);
    miniflare = await startMiniflare(workers, toStorePath(stateDir), onLog);
    const url = `http://${LOOPBACK}:${options.port}`;
    await waitForHealth(url);
    return { ...filled, url, ...buildAccess(miniflare, config), stop: once(stop), workerdPid: guard.pid };
  } catch (error) {
    await stop();
    throw error;
  }
}

function buildAccess(
  miniflare: Miniflare,
  config: LocalConfig,
): Pick<LocalGateway, 'getKVNamespace' | 'getD1Database' | 'runScheduled'> {
  return {
    async runScheduled(cron) {
      const worker = await miniflare.getWorker(config.gateway.name);
      await worker.scheduled({ cron });
    },
    getKVNamespace: (binding) => miniflare.getKVNamespace(binding, config.gateway.name),
    getD1Database: (binding = config.d1.binding) => miniflare.getD1Database(binding, config.gateway.name),
  };
}

function buildWorkers(config: LocalConfig, bundleDir: string, options: RunOptions): V4WorkerOptions[] {
  const upstreams = options.upstreams ?? [];
  const serviceBindings: Record<string, { name: string; entrypoint: string }> = {};
  const workers: V4WorkerOptions[] = [];
  const build = (worker: WorkerName, name: string, vars: Readonly<Record<string, string>>): V4WorkerOptions => {
    const { root, modules } = readBundle(bundleDir, worker);
    const bindings = { ...config[worker].vars, ...vars };
    return { ...config[worker].options, name, modulesRoot: root, modules: [...modules], bindings };
  };
  if (options.demo ?? true) {
    serviceBindings[DEMO_BINDING] = { name: config.demo.name, entrypoint: 'Demo' };
    workers.push(build('demo', config.demo.name, options.demoVars ?? {}));
  }
  for (const { binding, baseUrl } of upstreams) {
    const name = `${config.bridge.name}-${binding.toLowerCase().replaceAll('_', '-')}`;
    serviceBindings[binding] = { name, entrypoint: 'Bridge' };
    workers.push(build('bridge', name, { BASE_URL: baseUrl }));
  }
  const gateway = build('gateway', config.gateway.name, { ...options.vars, TURNPIKE_LOCAL: '1' });
  // The services in wrangler.toml are the deployed bridges, which do not exist here; ours take their place.
  const socket = { host: LOOPBACK, port: options.port };
  return [{ ...gateway, serviceBindings, unsafeDirectSockets: [socket] }, ...workers];
}

// A var of that name would hide the store behind it, and the gateway would fail in ways hard to explain.
function checkVars(vars: Readonly<Record<string, string>>, storeBindings: readonly string[]): void {
  const clash = storeBindings.find((name) => name in vars);
  if (clash !== undefined) throw new StartError(`${clash} is a store of the gateway, not a var`);
}

async function waitForHealth(url: string): Promise<void> {
  const deadline = Date.now() + HEALTH_DEADLINE_MS;
  let last = 'no answer';
  while (Date.now() < deadline) {
    try {
      const response = await fetch(`${url}/health`, { signal: AbortSignal.timeout(HEALTH_DEADLINE_MS) });
      await response.body?.cancel();
      if (response.ok) return;
      last = `status ${response.status}`;
    } catch (error) {
      last = toReason(error);
    }
    await new Promise((resolve) => setTimeout(resolve, HEALTH_PAUSE_MS));
  }
  throw new StartError(`the gateway did not become ready: GET ${url}/health: ${last}`);
}

function once(run: () => Promise<void>): () => Promise<void> {
  let running: Promise<void> | undefined;
  return () => (running ??= run());
}
