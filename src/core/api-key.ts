// API keys and workspaces as the operator types them into KV, and the rules a presented token must pass (SPEC §2).
// Pure: the record comes from a port, the hash of the token is computed by the caller, the time is an argument.

import * as z from 'zod';
import { type GatewayError } from './errors.ts';
import { err, ok, type Result } from './result.ts';

/** A bearer token taken apart: the id names the KV entry, the whole is what the entry's hash was made of. */
export type BearerToken = { readonly id: string; readonly token: string };

/** Per-minute and at-a-time limits; null is unlimited. */
export type Limits = { readonly rpm: number | null; readonly tpm: number | null; readonly concurrency: number | null };

const TOKEN_PATTERN = /^tp_([a-z0-9-]{1,64})_[A-Za-z0-9_-]{43}$/;
const BEARER_PATTERN = /^bearer[ \t]+(\S+)[ \t]*$/i;
const DEFAULT_SCOPES = ['inference:write', 'models:read'];

const limitSchema = z.int().min(0).max(1_000_000_000).nullable();
/** Limits as written; what is left out comes from the level below. */
export const limitsSchema = z.object({
  rpm: limitSchema.optional(),
  tpm: limitSchema.optional(),
  concurrency: limitSchema.optional(),
});
export type PartialLimits = z.infer<typeof limitsSchema>;

const hashSchema = z.string().regex(/^sha256:[0-9a-f]{64}$/i, 'expected sha256:<64 hex digits>');
const timeSchema = z.iso.datetime({ offset: true });

/** A `key:<id>` entry. Only `workspace` and `hash` are required. */
export const apiKeySchema = z.object({
  workspace: z.string().regex(/^[A-Za-z0-9._-]{1,64}$/),
  hash: hashSchema,
  name: z.string().optional(),
  scopes: z.array(z.string()).optional(),
  models: z.array(z.string()).optional(),
  limits: limitsSchema.optional(),
  expires_at: timeSchema.nullish(),
  disabled: z.boolean().optional(),
  previous: z.object({ hash: hashSchema, expires_at: timeSchema }).nullish(),
});
export type ApiKey = z.infer<typeof apiKeySchema>;

/** How a workspace pays: out of credits granted before, or by what its receipts say afterwards. */
export type Billing = 'prepaid' | 'postpaid';

/** A `workspace:<id>` entry. */
export const workspaceSchema = z.object({
  name: z.string().optional(),
  limits: limitsSchema.optional(),
  billing: z.enum(['prepaid', 'postpaid']).optional(),
  location: z.enum(['wnam', 'enam', 'sam', 'weur', 'eeur', 'apac', 'oc', 'afr', 'me']).optional(),
  disabled: z.boolean().optional(),
});
export type Workspace = z.infer<typeof workspaceSchema>;

/** The limits that hold for a key's requests; `keyLimits` is null when the key has none of its own. */
export type CallerLimits = { readonly workspaceLimits: Limits; readonly keyLimits: Limits | null };

/** A key with the workspace it belongs to, as the key store hands it out. */
export type KeyRecord = {
  readonly id: string;
  readonly key: ApiKey;
  readonly workspace: Workspace;
};

/** The caller, once the key is verified. */
export type Caller = {
  readonly keyId: string;
  readonly workspaceId: string;
  readonly scopes: readonly string[];
  readonly models: readonly string[];
  readonly workspaceLimits: PartialLimits;
  readonly keyLimits: PartialLimits | null;
  readonly location: string | null;
  readonly billing: Billing;
};

const NOT_GIVEN = 'You did not provide an API key. Send it as `Authorization: Bearer tp_…`.';
const NOT_VALID = 'Incorrect API key provided.';

/** Takes the token out of an Authorization header. The scheme is case-insensitive (RFC 9110 §11.1). */
export function parseBearerToken(authorization: string | null): Result<BearerToken, GatewayError> {
  if (authorization === null || authorization.trim() === '') return refuse(NOT_GIVEN);
  const token = BEARER_PATTERN.exec(authorization)?.[1];
  if (token === undefined) return refuse(NOT_GIVEN);
  const id = TOKEN_PATTERN.exec(token)?.[1];
  return id === undefined ? refuse(NOT_VALID) : ok({ id, token });
}

/**
 * Whether a token whose SHA-256 is `tokenHash` (64 lower-case hex digits) may act as this record's key at `nowMs`.
 * Every refusal reads the same to the caller; `disabled` and the rest are not told apart (SPEC §3).
 */
export function checkApiKey(record: KeyRecord, tokenHash: string, nowMs: number): Result<Caller, GatewayError> {
  const { id, key, workspace } = record;
  const current = isSameHash(key.hash, tokenHash);
  const previous = key.previous;
  const rotated =
    previous !== null &&
    previous !== undefined &&
    isSameHash(previous.hash, tokenHash) &&
    nowMs < Date.parse(previous.expires_at);
  if (!current && !rotated) return refuse(NOT_VALID);
  if (key.disabled === true || workspace.disabled === true) return refuse(NOT_VALID);
  if (typeof key.expires_at === 'string' && nowMs >= Date.parse(key.expires_at)) return refuse(NOT_VALID);
  return ok({
    keyId: id,
    workspaceId: key.workspace,
    scopes: key.scopes ?? DEFAULT_SCOPES,
    models: key.models ?? ['*'],
    workspaceLimits: workspace.limits ?? {},
    keyLimits: key.limits ?? null,
    location: workspace.location ?? null,
    billing: workspace.billing ?? 'postpaid',
  });
}

/** Whether the caller holds a scope. */
export function checkScope(caller: Caller, scope: string): Result<Caller, GatewayError> {
  return caller.scopes.includes(scope) ? ok(caller) : err({ kind: 'insufficient_scope', scope });
}

/** The refusal of a key that does not exist, worded as that of a wrong secret: no oracle for ids. */
export function refuseUnknownKey(): Result<never, GatewayError> {
  return refuse(NOT_VALID);
}

/** Fills in what a set of limits leaves out. */
export function fillLimits(limits: PartialLimits, fallback: Limits): Limits {
  return {
    rpm: limits.rpm === undefined ? fallback.rpm : limits.rpm,
    tpm: limits.tpm === undefined ? fallback.tpm : limits.tpm,
    concurrency: limits.concurrency === undefined ? fallback.concurrency : limits.concurrency,
  };
}

/** The limits of a key or a var that are taken alone: what is left out is unlimited. */
export const UNLIMITED: Limits = { rpm: null, tpm: null, concurrency: null };

/** A caller's limits, whole: the workspace's, and the key's own or null. */
export function readLimits(caller: Caller, fallback: Limits): CallerLimits {
  return {
    workspaceLimits: fillLimits(caller.workspaceLimits, fallback),
    keyLimits: caller.keyLimits === null ? null : fillLimits(caller.keyLimits, UNLIMITED),
  };
}

/** Compares without an early exit, so that the time taken says nothing about where two hashes differ. */
function isSameHash(stored: string, tokenHash: string): boolean {
  const expected = stored.slice('sha256:'.length).toLowerCase();
  let difference = expected.length ^ tokenHash.length;
  for (let index = 0; index < expected.length; index += 1) {
    difference |= expected.charCodeAt(index) ^ tokenHash.charCodeAt(index % Math.max(1, tokenHash.length));
  }
  return difference === 0;
}

function refuse(reason: string): Result<never, GatewayError> {
  return err({ kind: 'invalid_api_key', reason });
}
