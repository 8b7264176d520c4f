// The stores under a state folder, opened beside a gateway that may be running on them: the same files that `npm start` and
// `wrangler … --local --persist-to` use. Durable Objects are not opened: they belong to the gateway.

import { existsSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import { readLocalConfig } from './local-config.ts';
import { startMiniflare } from './miniflare-host.ts';
import { type Namespace, type OperatorStore, type Row, rowsSchema } from './operator-store.ts';
import { StartError, toReason } from './start-error.ts';
import { toStorePath } from './state-folder.ts';

/** What the runtime says when another process, the gateway or a second command, is writing the same file. */
const BUSY = /internal error|SQLITE_BUSY|database is locked/i;
const READS = /^\s*(SELECT|WITH)\b/i;
const TRIES_MAX = 20;
const BUSY_PAUSE_MS = 50;

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
  const openKv = (namespace: Namespace): ReturnType<typeof miniflare.getKVNamespace> =>
    miniflare.getKVNamespace(namespace);

  async function readEntry(namespace: Namespace, name: string): Promise<string | null> {
    const kv = await openKv(namespace);
    return repeatWhileBusy(() => kv.get(name, 'text'));
  }

  async function listEntries(namespace: Namespace, prefix: string): Promise<readonly string[]> {
    const kv = await openKv(namespace);
    const names: string[] = [];
    for (let cursor: string | undefined; ;) {
      const from = cursor === undefined ? {} : { cursor };
      const page = await repeatWhileBusy(() => kv.list({ prefix, ...from }));
      names.push(...page.keys.map(({ name }) => name));
      if (page.list_complete) return names.toSorted();
      cursor = page.cursor;
    }
  }

  return {
    readEntry,
    listEntries,
    async readEntries(namespace, prefix) {
      const entries = new Map<string, string>();
      for (const name of await listEntries(namespace, prefix)) {
        const text = await readEntry(namespace, name);
        if (text !== null) entries.set(name, text);
      }
      return entries;
    },
    async writeEntry(namespace, name, text) {
      const kv = await openKv(namespace);
      await repeatWhileBusy(() => kv.put(name, text));
    },
    async query(sql, ...values) {
      const statement = db.prepare(sql).bind(...values);
      const ask = async (): Promise<readonly Row[]> => rowsSchema.parse((await statement.all()).results);
      try {
        return await (READS.test(sql) ? repeatWhileBusy(ask) : ask());
      } catch (error) {
        const reason = toReason(error);
        // A write may have been done all the same: a grant must not be made twice.
        throw new StartError(
          `D1: ${reason}${BUSY.test(reason) ? ' (another process is writing: see what was done)' : ''}`,
        );
      }
    },
    close: () => miniflare.dispose(),
  };
}

/** Does what may be done twice until no other process is in its way, or for a second at most. */
async function repeatWhileBusy<T>(run: () => Promise<T>): Promise<T> {
  for (let tries = 1; ; tries += 1) {
    try {
      return await run();
    } catch (error) {
      if (!BUSY.test(toReason(error)) || tries === TRIES_MAX) throw error;
    }
    await sleep(BUSY_PAUSE_MS);
  }
}
