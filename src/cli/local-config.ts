// Reads the three wrangler.toml files through wrangler itself, so that compatibility date, flags, vars, binding names and
// the ids of local stores are the ones that `wrangler … --local` uses. No such fact is repeated in this room.

import { dirname, join, resolve } from 'node:path';

import type { SourcelessWorkerOptions } from 'wrangler';
import * as z from 'zod';

import { StartError, toReason } from './start-error.ts';

/** The Workers of this repository and where their configuration is. */
const CONFIG_PATHS = {
  gateway: 'wrangler.toml',
  demo: 'src/backends/demo/wrangler.toml',
  bridge: 'src/backends/bridge/wrangler.toml',
} as const;

export type WorkerName = keyof typeof CONFIG_PATHS;
export const WORKER_NAMES: readonly WorkerName[] = ['gateway', 'demo', 'bridge'];

const storeKinds = ['kvNamespaces', 'd1Databases', 'durableObjects'] as const;

// Wrangler's own type for them is open: a var is text or JSON.
const varsSchema = z.record(z.string(), z.json());

export type WorkerConfig = {
  readonly name: string;
  readonly options: Omit<SourcelessWorkerOptions, 'modulesRules' | 'bindings'>;
  /** The vars of wrangler.toml, and of .dev.vars where the operator has one, as in `wrangler dev`. */
  readonly vars: Readonly<z.infer<typeof varsSchema>>;
};

export type LocalConfig = Readonly<Record<WorkerName, WorkerConfig>> & {
  /** The names of the gateway's KV, D1 and Durable Object bindings. */
  readonly storeBindings: readonly string[];
  readonly d1: { readonly binding: string; readonly migrationsDir: string; readonly migrationsTable: string };
  readonly splitSql: (sql: string) => string[];
};

/** No telemetry, no update check, no download of cf.json: the local gateway works without internet. */
export const SILENT_ENV: Readonly<Record<string, string>> = {
  WRANGLER_SEND_METRICS: 'false',
  CLOUDFLARE_CF_FETCH_ENABLED: 'false',
  WRANGLER_HIDE_BANNER: 'true',
  WRANGLER_WRITE_LOGS: 'false',
};

/** The path of a Worker's wrangler.toml under the repository's root. */
export function toConfigPath(root: string, worker: WorkerName): string {
  return join(root, CONFIG_PATHS[worker]);
}

/**
 * Reads the configuration of the Workers under `root`.
 *
 * @throws StartError when a file is missing or is not a configuration.
 */
export async function readLocalConfig(root: string): Promise<LocalConfig> {
  Object.assign(process.env, SILENT_ENV);
  // Loaded here, not at the top: it takes a second, in which the bundling can already run.
  const wrangler = await import('wrangler');
  const read = (worker: WorkerName): WorkerConfig & { config: ReturnType<typeof wrangler.unstable_readConfig> } => {
    const path = toConfigPath(root, worker);
    try {
      const config = wrangler.unstable_readConfig({ config: path });
      // The rules say how sources become modules; a bundle has its modules already, and Miniflare refuses both at once.
      const { workerOptions } = wrangler.unstable_getMiniflareWorkerOptions(config);
      const { modulesRules: _rules, bindings, ...options } = workerOptions;
      return { name: config.name ?? worker, options, vars: varsSchema.parse(bindings ?? {}), config };
    } catch (error) {
      throw new StartError(`cannot read ${path}: ${toReason(error)}`);
    }
  };
  const gateway = read('gateway');
  const database = gateway.config.d1_databases[0];
  if (database === undefined) throw new StartError(`${toConfigPath(root, 'gateway')} has no D1 database`);
  const configDir = dirname(toConfigPath(root, 'gateway'));
  return {
    gateway,
    demo: read('demo'),
    bridge: read('bridge'),
    storeBindings: storeKinds.flatMap((kind) => Object.keys(gateway.options[kind] ?? {})),
    d1: {
      binding: database.binding,
      migrationsDir: resolve(configDir, database.migrations_dir ?? 'migrations'),
      migrationsTable: database.migrations_table ?? 'd1_migrations',
    },
    splitSql: wrangler.unstable_splitSqlQuery,
  };
}
