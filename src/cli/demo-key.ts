// The one key that every local gateway knows. It is printed, documented and no secret: the gateway refuses the id `demo`
// unless TURNPIKE_LOCAL is 1, and only the local runner sets that.

import { createHash } from 'node:crypto';

export const DEMO_TOKEN = 'tp_demo_local-only-demo-key-this-is-not-a-secret-00';

/** The KV entries of KEYS behind the demo key, as texts. */
export function buildDemoKeyEntries(): Record<string, string> {
  const hash = `sha256:${createHash('sha256').update(DEMO_TOKEN).digest('hex')}`;
  const scopes = ['inference:write', 'models:read', 'receipts:read'];
  return {
    'key:demo': JSON.stringify({ workspace: 'demo', hash, name: 'local demo key', scopes }),
    'workspace:demo': JSON.stringify({ name: 'Demo workspace' }),
  };
}
