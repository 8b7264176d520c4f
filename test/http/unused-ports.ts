// Ports that are never asked: for tests that send no request, and for those that ask a few of them and say which.

import { type Ports } from '../../src/gateway/ports.ts';

const unused = (): never => {
  throw new Error('this port is not asked here');
};

/** Ports of which only the settings and the clock are there. */
export const UNUSED_PORTS: Ports = {
  keys: { find: unused },
  revocations: { has: unused },
  failedKeys: { allow: unused },
  catalog: { read: unused },
  ledger: {
    reserve: unused,
    renew: unused,
    settle: unused,
    release: unused,
    findReceipt: unused,
    readAccount: unused,
    listReceipts: unused,
  },
  receipts: { find: unused, list: unused, sum: unused },
  backends: { send: unused },
  openPipe: unused,
  openRewritingPipe: unused,
  settings: {
    keepAliveMs: 1,
    firstEventHoldMs: 1,
    headersDeadlineMs: 1,
    firstEventDeadlineMs: 1,
    silenceDeadlineMs: 1,
    totalDeadlineMs: 1,
    leaseMs: 1,
    nativeLanes: false,
    isolateBytesMax: 1,
    defaultLimits: { rpm: null, tpm: null, concurrency: null },
    corsOrigins: ['*'],
    local: false,
  },
  now: () => 0,
  randomBytes: (count) => new Uint8Array(count),
  log: () => undefined,
};
