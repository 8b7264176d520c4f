// Keys as an operator makes them: a token that is shown once, and the entry of KEYS that knows it by its hash alone (SPEC §2).
// Pure; bytes and times are arguments.

import { createHash } from 'node:crypto';
import { apiKeySchema, type ApiKey, type PartialLimits } from '../core/api-key.ts';
import { firstIssue } from '../core/first-issue.ts';
import { err, ok, type Result } from '../core/result.ts';

/** What may be said of a new key. */
export type KeyWishes = {
  readonly workspace: string;
  readonly name?: string | undefined;
  readonly scopes?: readonly string[] | undefined;
  readonly models?: readonly string[] | undefined;
  readonly limits?: PartialLimits | undefined;
  readonly expiresAt?: string | undefined;
};

/** The scopes there are. */
export const SCOPES: readonly string[] = ['inference:write', 'models:read', 'receipts:read'];

const ID = /^[a-z0-9-]{1,64}$/;

/** What is wrong with a key's id; null when nothing is. */
export function checkKeyId(id: string): string | null {
  if (!ID.test(id)) return `'${id}' is no key id: 1 to 64 of a-z, 0-9 and -`;
  return id === 'demo' ? "the id 'demo' is that of npm start, and refused everywhere else" : null;
}

/** The token of a key id and 32 random bytes, and its hash as the entry has it. */
export function mintToken(id: string, secret: Uint8Array): { readonly token: string; readonly hash: string } {
  const token = `tp_${id}_${Buffer.from(secret).toString('base64url')}`;
  return { token, hash: `sha256:${createHash('sha256').update(token).digest('hex')}` };
}

/** The entry of a new key, with only those members that were wished for. */
export function buildKeyEntry(hash: string, wishes: KeyWishes): Result<ApiKey, string> {
  const unknown = wishes.scopes?.find((scope) => !SCOPES.includes(scope));
  if (unknown !== undefined) return err(`'${unknown}' is no scope: ${SCOPES.join(', ')}`);
  const limits = Object.keys(wishes.limits ?? {}).length === 0 ? undefined : wishes.limits;
  const members = {
    workspace: wishes.workspace,
    hash,
    name: wishes.name,
    scopes: wishes.scopes,
    models: wishes.models,
    limits,
    expires_at: wishes.expiresAt,
  };
  const entry = Object.fromEntries(Object.entries(members).filter(([, value]) => value !== undefined));
  const parsed = apiKeySchema.safeParse(entry);
  return parsed.success ? ok(parsed.data) : err(firstIssue(parsed.error, '(entry)'));
}

/** The entry after a rotation: the old hash stays good until `graceUntilMs`. */
export function rotateEntry<T extends { readonly hash: string }>(
  entry: T,
  hash: string,
  graceUntilMs: number,
): T & { readonly previous: { readonly hash: string; readonly expires_at: string } } {
  return { ...entry, hash, previous: { hash: entry.hash, expires_at: new Date(graceUntilMs).toISOString() } };
}
