// Ledgers across versions: storage and calls of the version before credits, and rows written by it after a step back
// (SPEC §11).

import { env } from 'cloudflare:workers';
import { evictDurableObject, reset, runInDurableObject } from 'cloudflare:test';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type LedgerCall, type LedgerReply } from '../../src/cloudflare/ledger-call.ts';
import { createLedgerClient } from '../../src/cloudflare/ledger-client.ts';
import { buildReservation, type ReservationOptions } from '../core/build-reservation.ts';
import { prepare } from './fixtures.ts';

beforeAll(prepare);
afterAll(reset);

const UNLIMITED = { rpm: null, tpm: null, concurrency: null };
const query = (workspace: string) => ({ workspace, key: 'k', workspaceLimits: UNLIMITED, keyLimits: null });

function reserve(options: ReservationOptions = {}): LedgerCall {
  return { v: 1, command: { type: 'reserve', reservation: buildReservation(options) } };
}

function settle(options: ReservationOptions = {}): LedgerCall {
  return {
    v: 1,
    command: { type: 'settle', reservation: buildReservation({ status: 'completed', used: [1, 2], ...options }) },
  };
}

describe('§11 a ledger after the step to credits', () => {
  it('§11 calls of the version before are accepted', async () => {
    const stub = env.LEDGER.getByName('ws-old-calls');
    expect(await stub.call(reserve())).toMatchObject({ v: 2, decision: { type: 'admitted' } });
    expect(await stub.call(settle())).toMatchObject({ decision: { type: 'settled' } });
  });

  it('§11 tables of the version before are stepped forward; what they hold goes on and counts', async () => {
    const workspace = 'ws-old-tables';
    const stub = env.LEDGER.getByName(workspace);
    await stub.call(reserve({ workspace, id: 'req_open', leaseMs: 600_000 }));
    await stub.call(settle({ workspace, id: 'req_closed' }));
    await runInDurableObject(stub, (_, { storage: { sql } }) => {
      sql.exec('ALTER TABLE ledger DROP COLUMN spent_nano_usd');
      sql.exec('ALTER TABLE ledger DROP COLUMN spent_seq');
      sql.exec('UPDATE ledger SET schema_version = 1');
      sql.exec("UPDATE reservations SET body = json_remove(body, '$.heldNanoUsd', '$.outputLimit')");
    });
    await evictDurableObject(stub);
    const account = await stub.readAccount({ v: 2, query: query(workspace) });
    expect(account.account).toMatchObject({
      spentNanoUsd: 3000,
      heldNanoUsd: 0,
      concurrency: { limit: null, inUse: 1 },
    });
    await stub.call(settle({ workspace, id: 'req_open' }));
    const after = await stub.readAccount({ v: 2, query: query(workspace) });
    expect(after.account).toMatchObject({ spentNanoUsd: 6000, heldNanoUsd: 0, concurrency: { inUse: 0 } });
  });

  it('§11 receipts that older code wrote after a step back are counted when it comes forward again', async () => {
    const workspace = 'ws-step-back';
    const stub = env.LEDGER.getByName(workspace);
    await stub.call(settle({ workspace, id: 'req_before' }));
    expect((await stub.readAccount({ v: 2, query: query(workspace) })).account).toMatchObject({ spentNanoUsd: 3000 });
    await stub.call(settle({ workspace, id: 'req_saved' }));
    await runInDurableObject(stub, (_, { storage: { sql } }) => {
      const insert = 'INSERT INTO receipts (id, rev, closed_at_ms, body) VALUES (?, 1, ?, ?)';
      sql.exec(insert, 'req_back', Date.now(), JSON.stringify(buildReservation({ workspace, used: [5, 5] }).receipt));
    });
    await evictDurableObject(stub);
    expect((await stub.readAccount({ v: 2, query: query(workspace) })).account).toMatchObject({ spentNanoUsd: 16_000 });
  });
});

describe('§5 a gateway whose ledger runs older code', () => {
  const answerAs = (v: LedgerReply['v']) => ({
    getByName: () => ({
      call: (): Promise<LedgerReply> =>
        Promise.resolve({ v, decision: { type: 'admitted', rates: { requests: null, tokens: null } } }),
      findReceipt: () => Promise.resolve(null),
      readAccount: () => Promise.resolve({ v, account: null }),
      listReceipts: () => Promise.resolve({ v, scan: { rows: [], floorId: null } }),
    }),
  });

  it.each([
    ['older code admits a prepaid request without a hold: refused', 1, true, 'limiter_unavailable'],
    ['older code admits a postpaid request', 1, false, 'admitted'],
    ['this code admits a prepaid request', 2, true, 'admitted'],
  ] as const)('§5 %s', async (_name, v, isPrepaid, expected) => {
    const credit = isPrepaid ? { inputTokensMax: 1, outputTokensMax: 1 } : null;
    const client = createLedgerClient(answerAs(v), 1000, () => undefined);
    const admission = await client.reserve(buildReservation({ credit }), null);
    expect(admission.ok ? 'admitted' : admission.error.error.kind).toBe(expected);
  });
});
