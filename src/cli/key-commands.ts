// `turnpike keys …`: made, looked at, rotated and revoked. The entry in KV is the key; a row in D1 stops it within seconds
// (SPEC §2). A token is told once, by the command that made it.

import { randomBytes } from 'node:crypto';
import { apiKeySchema, type ApiKey } from '../core/api-key.ts';
import { firstIssue } from '../core/first-issue.ts';
import { isObject, type JsonObject, parseJsonObject } from '../core/json-read.ts';
import { type CommandResult, type LimitOptions, pickLimits, toTable, writeLimits } from './command-result.ts';
import { buildKeyEntry, checkKeyId, mintToken, rotateEntry } from './key-entry.ts';
import type { OperatorStore } from './operator-store.ts';
import { StartError } from './start-error.ts';

const PREFIX = 'key:';
const SECRET_BYTES = 32;
const ID_BYTES = 5;

export type CreateKeyOptions = LimitOptions & {
  readonly workspace: string;
  readonly id?: string;
  readonly name?: string;
  readonly scopes?: readonly string[];
  readonly models?: readonly string[];
  readonly expires?: string;
};

/** Makes a key of a workspace that is there. */
export async function createKey(store: OperatorStore, options: CreateKeyOptions): Promise<CommandResult> {
  const id = options.id ?? randomBytes(ID_BYTES).toString('hex');
  const fault = checkKeyId(id);
  if (fault !== null) throw new StartError(fault, 2);
  const { token, hash } = mintToken(id, randomBytes(SECRET_BYTES));
  const { workspace, name, scopes, models, expires } = options;
  const entry = buildKeyEntry(hash, {
    workspace,
    name,
    scopes,
    models,
    limits: pickLimits(options),
    expiresAt: expires,
  });
  if (!entry.ok) throw new StartError(entry.error, 2);
  if ((await store.readEntry('KEYS', `workspace:${workspace}`)) === null) {
    throw new StartError(`there is no workspace ${workspace}: make it with \`workspaces put ${workspace}\``);
  }
  if ((await store.readEntry('KEYS', PREFIX + id)) !== null) {
    throw new StartError(`there is a key ${id} already: rotate it, or choose another --id`);
  }
  if ((await listRevoked(store)).has(id)) throw new StartError(`the id ${id} was revoked: choose another`);
  await store.writeEntry('KEYS', PREFIX + id, write(entry.value));
  return tellToken(id, token, { entry: withoutHashes(entry.value) }, 'made');
}

/** All keys, or those of one workspace. */
export async function listKeys(
  store: OperatorStore,
  workspace: string | undefined,
  nowMs: number,
): Promise<CommandResult> {
  const revoked = await listRevoked(store);
  const read = [...(await store.readEntries('KEYS', PREFIX))].map(([name, text]) => {
    const id = name.slice(PREFIX.length);
    const found = readKey(id, text);
    return { id, state: tellState(found, revoked.has(id), nowMs), entry: found.key };
  });
  const keys = read.filter(({ entry }) => workspace === undefined || entry?.workspace === workspace);
  const rows = keys.map(({ id, state, entry }) => [
    id,
    entry?.workspace ?? '?',
    state,
    entry?.name ?? '',
    entry?.scopes?.join(',') ?? 'default',
    entry?.models?.join(',') ?? '*',
    writeLimits(entry?.limits),
    entry?.expires_at ?? '',
  ]);
  const head = ['KEY', 'WORKSPACE', 'STATE', 'NAME', 'SCOPES', 'MODELS', 'LIMITS', 'EXPIRES'];
  const data = keys.map(({ id, state, entry }) => ({ id, state, entry: withoutHashes(entry) }));
  return { data, text: rows.length === 0 ? 'no keys' : toTable(head, rows) };
}

/** One key's entry, without its hashes. */
export async function showKey(store: OperatorStore, id: string, nowMs: number): Promise<CommandResult> {
  const found = readKey(id, await readText(store, id));
  const state = tellState(found, (await listRevoked(store)).has(id), nowMs);
  const entry = withoutHashes(found.object);
  const text = `${id}: ${state}${found.fault === null ? '' : ` (${found.fault})`}\n${JSON.stringify(entry, null, 2)}`;
  return { data: { id, state, fault: found.fault, entry }, text };
}

/** A new token for a key; the old one stays good for the grace. */
export async function rotateKey(
  store: OperatorStore,
  id: string,
  graceMs: number,
  nowMs: number,
): Promise<CommandResult> {
  const { object, key, fault } = readKey(id, await readText(store, id));
  if (key === null) throw new StartError(`the entry of ${id} is damaged (${fault ?? 'unreadable'}): mend it first`);
  const state = tellState({ object, key, fault }, (await listRevoked(store)).has(id), nowMs);
  if (state !== 'active') throw new StartError(`${id} is ${state}: a new token would not work`);
  const { token, hash } = mintToken(id, randomBytes(SECRET_BYTES));
  const graceUntilMs = nowMs + graceMs;
  const entry = rotateEntry({ ...object, hash: key.hash }, hash, graceUntilMs);
  await store.writeEntry('KEYS', PREFIX + id, write(entry));
  const told = tellToken(id, token, { previous_until: entry.previous.expires_at }, 'rotated');
  return { ...told, text: `${told.text}\nThe token before is good until ${entry.previous.expires_at}.` };
}

/** Stops a key: at the ledger within ten seconds, streams included, and in KV for good. */
export async function revokeKey(store: OperatorStore, id: string): Promise<CommandResult> {
  const text = await store.readEntry('KEYS', PREFIX + id);
  // The row first: it is what stops streams under way, those of a key whose entry is gone already too.
  await store.query('INSERT INTO revoked_keys (key_id) VALUES (?1) ON CONFLICT (key_id) DO NOTHING', id);
  const { object } = readKey(id, text);
  if (object !== null) await store.writeEntry('KEYS', PREFIX + id, write({ ...object, disabled: true }));
  const entry = object !== null ? 'disabled' : text === null ? 'absent' : 'damaged';
  const told = `${id} is revoked: refused within ten seconds, streams under way are stopped; ${REVOKED_ENTRY[entry]}.`;
  return { data: { id, revoked: true, entry }, text: told };
}

/** What became of a revoked key's entry. */
const REVOKED_ENTRY = {
  disabled: 'its entry is disabled',
  absent: 'it has no entry',
  damaged: 'its entry is damaged, and was left',
} as const;

async function readText(store: OperatorStore, id: string): Promise<string> {
  const text = await store.readEntry('KEYS', PREFIX + id);
  if (text === null) throw new StartError(`there is no key ${id}`);
  return text;
}

async function listRevoked(store: OperatorStore): Promise<ReadonlySet<string>> {
  const rows = await store.query('SELECT key_id FROM revoked_keys');
  return new Set(rows.map((row) => String(row['key_id'])));
}

/** An entry as it is, and as a key where it is one. */
export type FoundKey = {
  readonly object: JsonObject | null;
  readonly key: ApiKey | null;
  readonly fault: string | null;
};

/** Reads an entry of KEYS that should be a key. */
export function readKey(id: string, text: string | null): FoundKey {
  const object = parseJsonObject(text ?? '');
  if (object === null) return { object: null, key: null, fault: 'not a JSON object' };
  const idFault = id === 'demo' ? null : checkKeyId(id);
  if (idFault !== null) return { object, key: null, fault: idFault };
  const parsed = apiKeySchema.safeParse(object);
  if (parsed.success) return { object, key: parsed.data, fault: null };
  return { object, key: null, fault: firstIssue(parsed.error, '(entry)') };
}

function tellState({ key }: FoundKey, isRevoked: boolean, nowMs: number): string {
  if (isRevoked) return 'revoked';
  if (key === null) return 'damaged';
  if (key.disabled === true) return 'disabled';
  if (typeof key.expires_at === 'string' && Date.parse(key.expires_at) <= nowMs) return 'expired';
  return 'active';
}

/** Hashes are of use to nobody who reads a list. */
function withoutHashes(entry: JsonObject | null): JsonObject | null {
  if (entry === null) return null;
  const { hash: _hash, previous, ...rest } = entry;
  return isObject(previous) ? { ...rest, previous: { expires_at: previous['expires_at'] } } : rest;
}

function tellToken(id: string, token: string, more: JsonObject, what: string): CommandResult {
  const text = [`${id} is ${what}. Its token, which is shown this once and kept nowhere:`, '', `  ${token}`, ''].join(
    '\n',
  );
  return { data: { id, token, ...more }, text };
}

function write(entry: object): string {
  return JSON.stringify(entry, null, 2);
}
