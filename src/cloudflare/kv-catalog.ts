// The model catalog from KV, parsed once per 30 s and isolate. When the document is unusable the isolate's last good
// one serves, else the entry `catalog:last-good`, else nothing (SPEC §2).

import { type GatewayError } from '../core/errors.ts';
import { type ModelCatalog, parseModelCatalog } from '../core/model-catalog.ts';
import { err, ok, type Result } from '../core/result.ts';
import { withDeadline } from '../gateway/deadline.ts';
import { type KvReader } from './kv-key-store.ts';
import { type CatalogStore, type LogEntry } from '../gateway/ports.ts';

const READ_DEADLINE_MS = 3000;
const KV_CACHE_SECONDS = 30;

/** The catalog store over a KV namespace. */
export function createKvCatalog(
  kv: KvReader,
  bindings: ReadonlySet<string>,
  cacheMs: number,
  now: () => number,
  log: (entry: LogEntry) => void,
): CatalogStore {
  let good: ModelCatalog | null = null;
  let text: string | null = null;
  let atMs = -Infinity;

  async function readFresh(): Promise<ModelCatalog | null> {
    const fresh = await readEntry(kv, 'catalog', log);
    if (fresh !== null && fresh === text) return good;
    const parsed = fresh === null ? err('there is no entry `catalog`') : parseModelCatalog(fresh, bindings);
    if (parsed.ok) {
      text = fresh;
      for (const [model, fault] of parsed.value.faulty) log({ event: 'catalog_unavailable', model, fault });
      return parsed.value;
    }
    log({ event: 'catalog_unavailable', model: null, fault: parsed.error });
    if (good !== null) return good;
    const last = await readEntry(kv, 'catalog:last-good', log);
    const before = last === null ? null : parseModelCatalog(last, bindings);
    return before?.ok === true ? before.value : null;
  }

  return {
    async read(): Promise<Result<ModelCatalog, GatewayError>> {
      if (good === null || now() - atMs >= cacheMs) {
        good = await readFresh();
        atMs = now();
      }
      return good === null ? err({ kind: 'catalog_unavailable' }) : ok(good);
    },
  };
}

/** An entry's text; null when it is missing or KV does not answer. */
async function readEntry(kv: KvReader, name: string, log: (entry: LogEntry) => void): Promise<string | null> {
  try {
    const reading = kv.get(name, { cacheTtl: KV_CACHE_SECONDS });
    const text = await withDeadline(reading, READ_DEADLINE_MS, () => undefined);
    if (text !== 'deadline') return text;
    log({ event: 'catalog_unavailable', model: null, fault: 'KV did not answer in time' });
  } catch (error) {
    log({ event: 'catalog_unavailable', model: null, fault: String(error) });
  }
  return null;
}
