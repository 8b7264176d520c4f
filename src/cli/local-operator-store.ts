// The stores under a state folder, opened beside a gateway that may be running on them: the same files that `npm start` and
// `wrangler … --local --persist-to` use. Durable Objects are not opened: they belong to the gateway.

import { existsSync } from 'node:fs';
import { readLocalConfig } from './local-config.ts';
import { startMiniflare } from './miniflare-host.ts';
import { type OperatorStore, rowsSchema } from './operator-store.ts';
import { StartError, toReason } from './start-error.ts';
import { toStorePath } from './state-folder.ts';

/**
 * Opens the stores of a state folder.
 *
 * @throws StartError when there is no such folder: a typing mistake must not make an empty one.
 */
export async function openLocalStore(root: string, stateDir: string): Promise<OperatorStore> {
  const path = toStorePath(stateDir);
  if (!existsSync(path)) {
    throw new StartError(
      `${stateDir} holds no state: run npm start first, name its folder with --state, or say --remote`,
    );
  }
  const config = await readLocalConfig(root);
  // The gateway's own bindings without what needs its code.
  const stores = { ...config.gateway.options, durableObjects: {}, serviceBindings: {} };
  const worker = { ...stores, modules: true, script: 'export default {}' };
  const miniflare = await startMiniflare([worker], path, (line) => void process.stderr.write(`${line}\n`));
  const db = await miniflare.getD1Database(config.d1.binding);
  const listEntries: OperatorStore['listEntries'] = async (namespace, prefix) => {
    const kv = await miniflare.getKVNamespace(namespace);
    const names: string[] = [];
    for (let cursor: string | undefined; ;) {
      const page = await kv.list({ prefix, ...(cursor === undefined ? {} : { cursor }) });
      names.push(...page.keys.map(({ name }) => name));
      if (page.list_complete) return names.toSorted();
      cursor = page.cursor;
    }
  };
  return {
    place: stateDir,
    async readEntry(namespace, name) {
      return (await miniflare.getKVNamespace(namespace)).get(name, 'text');
    },
    async writeEntry(namespace, name, text) {
      await (await miniflare.getKVNamespace(namespace)).put(name, text);
    },
    listEntries,
    async readEntries(namespace, prefix) {
      const kv = await miniflare.getKVNamespace(namespace);
      const entries = new Map<string, string>();
      for (const name of await listEntries(namespace, prefix)) {
        const text = await kv.get(name, 'text');
        if (text !== null) entries.set(name, text);
      }
      return entries;
    },
    async query(sql, ...values) {
      try {
        const statement = db.prepare(sql).bind(...values);
        return rowsSchema.parse((await statement.all()).results);
      } catch (error) {
        throw new StartError(`D1: ${toReason(error)}`);
      }
    },
    close: () => miniflare.dispose(),
  };
}
