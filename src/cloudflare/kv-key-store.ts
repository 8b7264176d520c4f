// Keys and workspaces from KV, with the isolate's memory in front: good records for at most 30 s, unknown ids for 30 s,
// and a record known for less than five minutes still serves when KV fails (SPEC §2).

import type * as z from 'zod';
import { apiKeySchema, type KeyRecord, workspaceSchema } from '../core/api-key.ts';
import { type GatewayError } from '../core/errors.ts';
import { firstIssue } from '../core/first-issue.ts';
import { err, ok, type Result } from '../core/result.ts';
import { withDeadline } from '../gateway/deadline.ts';
import { type KeyStore, type LogEntry } from '../gateway/ports.ts';

const UNKNOWN_MS = 30_000;
const UNKNOWN_IDS_MAX = 1000;
const RECORDS_MAX = 5000;
const STALE_MS_MAX = 5 * 60_000;
const READ_DEADLINE_MS = 3000;
/** KV's own cache, at its minimum: changes reach an edge as soon as KV allows. */
const KV_CACHE_SECONDS = 30;

type Known = { readonly record: KeyRecord; readonly atMs: number };
type Found = Result<KeyRecord | null, GatewayError>;

/** What is used of a KV namespace. */
export type KvReader = {
  readonly get: (name: string, options: { readonly cacheTtl: number }) => Promise<string | null>;
};

/** The key store over a KV namespace. */
export function createKvKeyStore(
  kv: KvReader,
  cacheMs: number,
  now: () => number,
  log: (entry: LogEntry) => void,
): KeyStore {
  const known = new Map<string, Known>();
  const unknown = new Map<string, number>();

  async function load(id: string): Promise<Found> {
    const entry = await readEntry(kv, `key:${id}`, apiKeySchema);
    if (entry === null) {
      remember(unknown, id, now() + UNKNOWN_MS, UNKNOWN_IDS_MAX);
      known.delete(id);
      return ok(null);
    }
    const workspace = await readEntry(kv, `workspace:${entry.workspace}`, workspaceSchema);
    if (workspace === null) throw new DamagedEntry(`workspace:${entry.workspace}`, 'missing');
    const record: KeyRecord = { id, key: entry, workspace };
    remember(known, id, { record, atMs: now() }, RECORDS_MAX);
    return ok(record);
  }

  return {
    async find(id) {
      const before = known.get(id);
      if (before !== undefined && now() - before.atMs < cacheMs) return ok(before.record);
      if ((unknown.get(id) ?? 0) > now()) return ok(null);
      try {
        return await load(id);
      } catch (error) {
        log({
          event: 'auth_unavailable',
          key: id,
          entry: error instanceof DamagedEntry ? error.entry : `key:${id}`,
          fault: error instanceof Error ? error.message : String(error),
        });
        const stale = before !== undefined && now() - before.atMs < STALE_MS_MAX;
        if (stale && !(error instanceof DamagedEntry)) return ok(before.record);
        return err({ kind: 'auth_unavailable' });
      }
    },
  };
}

/** An entry that is there and cannot be used; never admitted, never a crash. */
class DamagedEntry extends Error {
  readonly entry: string;
  constructor(entry: string, fault: string) {
    super(fault);
    this.entry = entry;
  }
}

/** One entry; null when there is none. Throws when KV fails or the entry is damaged. */
async function readEntry<T>(kv: KvReader, name: string, schema: z.ZodType<T>): Promise<T | null> {
  const reading = kv.get(name, { cacheTtl: KV_CACHE_SECONDS });
  const text = await withDeadline(reading, READ_DEADLINE_MS, () => undefined);
  if (text === null) return null;
  if (text === 'deadline') throw new Error('KV did not answer in time');
  const parsed = schema.safeParse(parseJson(text, name));
  if (parsed.success) return parsed.data;
  throw new DamagedEntry(name, firstIssue(parsed.error, '(entry)'));
}

function parseJson(text: string, name: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    throw new DamagedEntry(name, 'not JSON');
  }
}

/** Keeps at most `max` entries; the oldest goes first. */
function remember<V>(map: Map<string, V>, id: string, value: V, max: number): void {
  map.delete(id);
  const oldest = map.size >= max ? map.keys().next() : null;
  if (oldest !== null && oldest.done !== true) map.delete(oldest.value);
  map.set(id, value);
}
