// The Worker's bindings and vars, and the reading of the vars. A var that cannot be read falls back to its default and
// is named in the log: a typo must not take the gateway down.

import * as z from 'zod';
import { fillLimits, type Limits, limitsSchema } from '../core/api-key.ts';
import { type Settings } from '../gateway/ports.ts';
import { type LedgerRpc } from './ledger-call.ts';

/** Bindings of the gateway Worker (wrangler.toml); backends are further service bindings of any name. */
export type Env = {
  readonly KEYS: KVNamespace;
  readonly CATALOG: KVNamespace;
  readonly DB: D1Database;
  readonly LEDGER: DurableObjectNamespace<LedgerRpc>;
  /** Optional: where the daily run moves old receipts. */
  readonly ARCHIVE?: R2Bucket;
  /** Optional: damps bad keys per address. */
  readonly FAILED_KEYS?: RateLimit;
};

/** Vars in milliseconds with their defaults; the README's table is made from these. */
export const MILLISECOND_VARS = {
  KEEPALIVE_MS: 3_000,
  FIRST_EVENT_HOLD_MS: 5_000,
  HEADERS_DEADLINE_MS: 60_000,
  FIRST_EVENT_DEADLINE_MS: 120_000,
  SILENCE_DEADLINE_MS: 120_000,
  TOTAL_DEADLINE_MS: 600_000,
  LEASE_MS: 60_000,
  LEDGER_DEADLINE_MS: 3_000,
  KEY_CACHE_MS: 30_000,
} as const;

type MillisecondVar = keyof typeof MILLISECOND_VARS;
type Note = (fault: string) => void;

const SHIPPED_LIMITS: Limits = { rpm: 600, tpm: 1_000_000, concurrency: 64 };
const KEY_CACHE_MS_MAX = 30_000;
const RETENTION_DAYS = 400;
const RETENTION_DAYS_MIN = 31;
const ISOLATE_BYTES_MAX = 64 * 1024 * 1024;

/** What the adapters need beyond the gateway's own settings. */
export type AdapterSettings = {
  readonly ledgerDeadlineMs: number;
  readonly keyCacheMs: number;
};

/** Reads all vars. `note` is told of each that is unusable. */
export function parseSettings(env: object, note: Note): Settings & AdapterSettings {
  const readMs = (name: MillisecondVar): number => readPositive(env, name, MILLISECOND_VARS[name], note);
  return {
    keepAliveMs: readMs('KEEPALIVE_MS'),
    firstEventHoldMs: readMs('FIRST_EVENT_HOLD_MS'),
    headersDeadlineMs: readMs('HEADERS_DEADLINE_MS'),
    firstEventDeadlineMs: readMs('FIRST_EVENT_DEADLINE_MS'),
    silenceDeadlineMs: readMs('SILENCE_DEADLINE_MS'),
    totalDeadlineMs: readMs('TOTAL_DEADLINE_MS'),
    leaseMs: readMs('LEASE_MS'),
    ledgerDeadlineMs: readMs('LEDGER_DEADLINE_MS'),
    keyCacheMs: Math.min(readMs('KEY_CACHE_MS'), KEY_CACHE_MS_MAX),
    nativeLanes: readVar(env, 'NATIVE_LANES') !== '0',
    isolateBytesMax: readPositive(env, 'ISOLATE_BYTES_MAX', ISOLATE_BYTES_MAX, note),
    defaultLimits: readLimits(env, note),
    corsOrigins: (readVar(env, 'CORS_ORIGINS') ?? '*').split(',').map((origin) => origin.trim()),
    local: readVar(env, 'TURNPIKE_LOCAL') === '1',
  };
}

/** How many days receipts stay in D1 (SPEC §12). Ledgers may still replay the last seven, so there is a minimum. */
export function parseRetentionDays(env: object, note: Note): number {
  const days = readPositive(env, 'RETENTION_DAYS', RETENTION_DAYS, note);
  if (days >= RETENTION_DAYS_MIN) return Math.floor(days);
  note(`the var RETENTION_DAYS is below ${RETENTION_DAYS_MIN}`);
  return RETENTION_DAYS_MIN;
}

/** The names of all bindings to which a request can be sent. */
export function listBackendBindings(env: object): ReadonlySet<string> {
  const names = Object.entries(env)
    .filter(([name, value]) => !['KEYS', 'CATALOG', 'DB', 'LEDGER'].includes(name) && isFetcher(value))
    .map(([name]) => name);
  return new Set(names);
}

/** Whether a binding can be fetched: a service, a VPC service, a test's auxiliary Worker. */
export function isFetcher(value: unknown): value is Fetcher {
  return typeof value === 'object' && value !== null && 'fetch' in value && typeof value.fetch === 'function';
}

function readPositive(env: object, name: string, fallback: number, note: Note): number {
  const text = readVar(env, name);
  if (text === null) return fallback;
  const value = Number(text);
  if (Number.isFinite(value) && value >= 1) return value;
  note(`the var ${name} is not a positive number`);
  return fallback;
}

function readLimits(env: object, note: Note): Limits {
  const value: unknown = Reflect.get(env, 'DEFAULT_LIMITS');
  if (value === undefined) return SHIPPED_LIMITS;
  const limits = limitsTextSchema.safeParse(value);
  if (limits.success) return fillLimits(limits.data, SHIPPED_LIMITS);
  note('the var DEFAULT_LIMITS is not a JSON object of limits');
  return SHIPPED_LIMITS;
}

/** A var is text, or an object when wrangler.toml has it as a table. */
const limitsTextSchema = z.preprocess((value) => (typeof value === 'string' ? parseJson(value) : value), limitsSchema);

function readVar(env: object, name: string): string | null {
  const value: unknown = Reflect.get(env, name);
  if (typeof value === 'number') return String(value);
  return typeof value === 'string' && value.trim() !== '' ? value.trim() : null;
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
