// Who is calling: the bearer token against the key store (SPEC §2). The token's text is checked before KV is asked.

import { type Caller, checkApiKey, checkScope, parseBearerToken, refuseUnknownKey } from '../core/api-key.ts';
import { type GatewayError } from '../core/errors.ts';
import { toHex } from '../core/price-version.ts';
import { err, type Result } from '../core/result.ts';
import { type Ports } from './ports.ts';

/** The id that only a local run knows (SPEC §10). */
const DEMO_KEY_ID = 'demo';

/** The verified caller, if the key is good and holds `scope`. */
export async function identifyCaller(
  ports: Ports,
  authorization: string | null,
  scope: string | null,
): Promise<Result<Caller, GatewayError>> {
  const bearer = parseBearerToken(authorization);
  if (!bearer.ok) return bearer;
  if (bearer.value.id === DEMO_KEY_ID && !ports.settings.local) return refuseUnknownKey();
  const found = await ports.keys.find(bearer.value.id);
  if (!found.ok) return err(found.error);
  if (found.value === null) return refuseUnknownKey();
  const caller = checkApiKey(found.value, await hashToken(bearer.value.token), ports.now());
  return caller.ok && scope !== null ? checkScope(caller.value, scope) : caller;
}

/** SHA-256 of a token as 64 lower-case hex digits. */
async function hashToken(token: string): Promise<string> {
  const digest = await crypto.subtle.digest('SHA-256', new TextEncoder().encode(token));
  return toHex(new Uint8Array(digest));
}
