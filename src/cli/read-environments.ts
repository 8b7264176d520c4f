// Reads the gateway's wrangler.toml through wrangler itself, once for the top level and once for each environment, as the
// doctor compares them.

import * as z from 'zod';

import type { Bindings } from './check-config.ts';
import { SILENT_ENV } from './local-config.ts';
import { StartError, toReason } from './start-error.ts';

const named = z.array(z.object({ name: z.string() })).transform((list) => list.map(({ name }) => name));
const bound = z.array(z.object({ binding: z.string() })).transform((list) => list.map(({ binding }) => binding));

/** What the doctor looks at of wrangler's own form. */
const configSchema = z
  .object({
    kv_namespaces: z.array(z.object({ binding: z.string(), id: z.string().optional() })),
    d1_databases: z.array(z.object({ binding: z.string(), database_name: z.string().optional() })),
    durable_objects: z.object({ bindings: named }),
    services: bound.default([]),
    compatibility_flags: z.array(z.string()),
    triggers: z.object({ crons: z.array(z.string()).default([]) }),
    account_id: z.string().optional(),
  })
  .transform((config) => ({
    kv: config.kv_namespaces.map(({ binding }) => binding),
    d1: config.d1_databases.map(({ binding }) => binding),
    stores: [
      ...config.kv_namespaces.flatMap(({ id }) => (id === undefined ? [] : [`KV namespace ${id}`])),
      ...config.d1_databases.flatMap(({ database_name: name }) => (name === undefined ? [] : [`D1 database ${name}`])),
    ],
    objects: config.durable_objects.bindings,
    services: config.services,
    flags: config.compatibility_flags,
    crons: config.triggers.crons,
    account: config.account_id,
  }));

/**
 * The bindings of every environment; the top level comes first.
 *
 * @throws StartError when the file is missing or is no configuration.
 */
export async function readEnvironments(path: string): Promise<readonly Bindings[]> {
  Object.assign(process.env, SILENT_ENV);
  const wrangler = await import('wrangler');
  try {
    const { rawConfig } = wrangler.experimental_readRawConfig({ config: path });
    const names = [null, ...Object.keys(rawConfig.env ?? {})];
    return names.map((environment) => {
      // The differences between environments are ours to tell.
      const options = { hideWarnings: true };
      const config = wrangler.unstable_readConfig(
        { config: path, ...(environment === null ? {} : { env: environment }) },
        options,
      );
      return { environment, ...configSchema.parse(config) };
    });
  } catch (error) {
    throw new StartError(`cannot read ${path}: ${toReason(error)}`);
  }
}
