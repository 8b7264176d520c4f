// The one composition root: bindings and vars become the ports the gateway works with. Made once per isolate.

import { type Ports } from '../gateway/ports.ts';
import { createFailedKeys } from './failed-keys.ts';
import { createD1Receipts } from './d1-receipts.ts';
import { createD1Revocations } from './d1-revocations.ts';
import { type Env, listBackendBindings, parseSettings } from './env.ts';
import { createKvCatalog } from './kv-catalog.ts';
import { createKvKeyStore } from './kv-key-store.ts';
import { createLedgerClient } from './ledger-client.ts';
import { log } from './log.ts';
import { openRewritingPipe } from './rewriting-pipe.ts';
import { createServiceBackends } from './service-backends.ts';

/** Joins adapters and settings. */
export function composePorts(env: Env): Ports {
  const { now } = Date;
  const settings = parseSettings(env, (fault) => log({ event: 'bad_var', fault }));
  return {
    keys: createKvKeyStore(env.KEYS, settings.keyCacheMs, now, log),
    revocations: createD1Revocations(env.DB, now, log),
    failedKeys: createFailedKeys(env.FAILED_KEYS),
    catalog: createKvCatalog(env.CATALOG, listBackendBindings(env), settings.keyCacheMs, now, log),
    ledger: createLedgerClient(env.LEDGER, settings.ledgerDeadlineMs, log),
    receipts: createD1Receipts(env.DB, log),
    backends: createServiceBackends(env),
    openPipe: () => new IdentityTransformStream(),
    openRewritingPipe,
    settings,
    now,
    randomBytes: (count) => crypto.getRandomValues(new Uint8Array(count)),
    log,
  };
}
