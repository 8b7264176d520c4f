// Who is calling: the bearer token against the key store (SPEC §2). The token's text is checked before KV is asked.

import { type Caller, checkApiKey, checkScope, parseBearerToken, refuseUnknownKey } from '../core/api-key.ts';
import { type GatewayError } from '../core/errors.ts';
import { toHex } from '../core/price-version.ts';
import { err, type Result } from '../core/result.ts';
import { type Ports } from './ports.ts';

/** The id that only a local run knows (SPEC §10). */
const DEMO_KEY_ID = 'demo';

/** What a request says of its sender. */
export type Credentials = {
  readonly authorization: string | null;
  /** The address the platform saw; null where it tells none. */
  readonly address: string | null;
};

/** The verified caller, if the key is good and holds `scope`. Bad keys from one address are damped. */
export async function identifyCaller(
  ports: Ports,
  { authorization, address }: Credentials,
  scope: string | null,
): Promise<Result<Caller, GatewayError>> {
  const caller = await verifyKey(ports, authorization);
  if (caller.ok) return scope === null ? caller : checkScope(caller.value, scope);
  if (caller.error.kind !== 'invalid_api_key' || address === null) return caller;
  return (await ports.failedKeys.allow(address)) ? caller : err({ kind: 'too_many_failed_keys' });
}

/** The caller of a read: no ledger is asked for leave, so a row that revokes the key is looked for here (SPEC §2). */
export async function identifyReader(
  ports: Ports,
  credentials: Credentials,
  scope: string | null,
): Promise<Result<Caller, GatewayError>> {
  const caller = await identifyCaller(ports, credentials, scope);
  if (!caller.ok || !(await ports.revocations.has(caller.value.keyId))) return caller;
  return refuseUnknownKey();
}

async function verifyKey(ports: Ports, authorization: string | null): Promise<Result<Caller, GatewayError>> {
  const bearer = parseBearerToken(authorization);
  if (!bearer.ok) return bearer;
  if (bearer.value.id === DEMO_KEY_ID && !ports.settings.local) return refuseUnknownKey();
  const found = await ports.keys.find(bearer.value.id);
  if (!found.ok) return err(found.error);
  if (found.value === null) return refuseUnknownKey();
  return checkApiKey(found.value, await hashToken(bearer.value.token), ports.now());
}

/** SHA-256 of a token as 64 lower-case hex digits. */
async function hashToken(token: string): Promise<string> {
  const digest = await crypto.subtle.digest('SHA-256', new TextEncoder().encode(token));
  return toHex(new Uint8Array(digest));
}
