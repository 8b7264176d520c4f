// Fills the local stores before the gateway is up: D1 migrations, KV entries, catalog. A Miniflare of its own with nothing
// but those stores does it, while the Workers are still being bundled; so no early request can meet a store half filled,
// and no isolate remembers the demo key as unknown.

import { applyMigrations, readMigrations } from './apply-migrations.ts';
import { buildDemoKeyEntries } from './demo-key.ts';
import { mayReplaceCatalog } from './local-catalog.ts';
import type { LocalConfig } from './local-config.ts';
import { startMiniflare } from './miniflare-host.ts';

export type CatalogSource = {
  readonly text: string;
  /** A given catalog is always stored, a generated one only where the operator did not edit the stored one. */
  readonly origin: 'given' | 'generated';
};

export type StoreContent = {
  /** Entries for KEYS as texts, always written. */
  readonly keys: Readonly<Record<string, string>>;
  readonly catalog: CatalogSource | undefined;
};

export type FilledStore = { readonly catalogText: string | null; readonly catalogKept: boolean };

type KeyValueStore = {
  get(key: string): Promise<string | null>;
  put(key: string, value: string): Promise<void>;
};

const CATALOG_KEY = 'catalog';
const GENERATED_KEY = 'catalog:generated';

/** Fills the stores under `storePath`; says what catalog is stored in the end. */
export async function fillStore(
  config: LocalConfig,
  storePath: string,
  content: StoreContent,
  onLog: (line: string) => void,
): Promise<FilledStore> {
  // The gateway's own bindings without what needs its code.
  const stores = { ...config.gateway.options, durableObjects: {}, serviceBindings: {} };
  const worker = { ...stores, modules: true, script: 'export default {}' };
  const miniflare = await startMiniflare([worker], storePath, onLog);
  try {
    const db = await miniflare.getD1Database(config.d1.binding);
    await applyMigrations(db, config.d1.migrationsTable, readMigrations(config.d1.migrationsDir), config.splitSql);
    const keys = await miniflare.getKVNamespace('KEYS');
    await putKeys(keys, content.keys);
    return await putCatalog(await miniflare.getKVNamespace('CATALOG'), content.catalog);
  } finally {
    await miniflare.dispose();
  }
}

async function putKeys(store: KeyValueStore, given: Readonly<Record<string, string>>): Promise<void> {
  for (const [key, text] of Object.entries(buildDemoKeyEntries())) {
    // An operator may have changed the demo workspace's limits; that stays.
    if ((await store.get(key)) === null) await store.put(key, text);
  }
  for (const [key, text] of Object.entries(given)) await store.put(key, text);
}

/** Stores the catalog, or keeps the stored one where it was edited. */
export async function putCatalog(store: KeyValueStore, next: CatalogSource | undefined): Promise<FilledStore> {
  const stored = await store.get(CATALOG_KEY);
  if (next === undefined) return { catalogText: stored, catalogKept: true };
  if (next.origin === 'generated') {
    const lastGenerated = await store.get(GENERATED_KEY);
    if (!mayReplaceCatalog(stored, lastGenerated, next.text)) return { catalogText: stored, catalogKept: true };
    await store.put(GENERATED_KEY, next.text);
  }
  await store.put(CATALOG_KEY, next.text);
  return { catalogText: next.text, catalogKept: false };
}
