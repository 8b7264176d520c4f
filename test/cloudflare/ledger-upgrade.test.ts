// Ledgers across versions: storage and calls of the version before credits, and rows written by it after a step back
// (SPEC §11).

import { env } from 'cloudflare:workers';
import { evictDurableObject, reset, runDurableObjectAlarm, runInDurableObject } from 'cloudflare:test';
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import * as z from 'zod';
import { LEDGER_CALL_VERSION, type LedgerCall, type LedgerReply } from '../../src/cloudflare/ledger-call.ts';
import { createLedgerClient } from '../../src/cloudflare/ledger-client.ts';
import recordedV1 from '../fixtures/ledger-calls/v1.json';
import recordedV2 from '../fixtures/ledger-calls/v2.json';
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

const recordedSchema = z.array(z.custom<LedgerCall>((call) => typeof call === 'object' && call !== null));
const RECORDED = [recordedV1, recordedV2].map((calls) => recordedSchema.parse(calls));

describe('§11 calls as the gateway of each version sent them', () => {
  it('§11 there are recordings of this version and the one before', () => {
    const versions = RECORDED.map((calls) => calls[0]?.v);
    expect(versions.slice(-2)).toEqual([LEDGER_CALL_VERSION - 1, LEDGER_CALL_VERSION]);
    for (const calls of RECORDED) {
      expect(calls.map(({ command }) => command.type)).toEqual(['reserve', 'renew', 'settle', 'release']);
    }
  });

  it.each(RECORDED.map((calls) => [calls[0]?.v, calls] as const))(
    '§11 version %i: admitted, renewed, settled; the receipt is in D1 as it was sent, once',
    async (v, [reserving, renewing, settling, releasing]) => {
      const [first, second, third, fourth] = [reserving!, renewing!, settling!, releasing!];
      if (third.command.type !== 'settle') throw new Error('the third is the settlement');
      const { receipt } = third.command.reservation;
      const insert = "INSERT INTO credit_grants (workspace, amount_usd) VALUES (?, '1')";
      await env.DB.prepare(insert).bind(receipt.workspace).run();
      const stub = env.LEDGER.getByName(receipt.workspace);
      expect(await stub.call(first)).toMatchObject({ decision: { type: 'admitted' } });
      const account = await stub.readAccount({ v: 2, query: query(receipt.workspace) });
      expect(account.account?.concurrency.inUse).toBe(1);
      expect(Number(account.account?.heldNanoUsd) > 0, 'a hold where there are credits').toBe(v === 2);
      expect(await stub.call(second)).toMatchObject({ decision: { type: 'renewed', go: true } });
      await evictDurableObject(stub);
      expect(await stub.call(third)).toMatchObject({ decision: { type: 'settled' } });
      expect(await stub.call(third)).toMatchObject({ decision: { type: 'settled' } });
      expect(await stub.call(fourth)).toMatchObject({ decision: { type: 'released' } });
      expect(await stub.findReceipt(receipt.id)).toEqual(receipt);
      const after = await stub.readAccount({ v: 2, query: query(receipt.workspace) });
      expect(after.account).toMatchObject({ spentNanoUsd: receipt.cost_nano_usd, heldNanoUsd: 0 });
      await vi.waitUntil(() => runDurableObjectAlarm(stub));
      const select = 'SELECT rev, cost_nano_usd FROM receipts WHERE workspace = ?';
      const { results } = await env.DB.prepare(select).bind(receipt.workspace).all();
      expect(results).toEqual([{ rev: 1, cost_nano_usd: receipt.cost_nano_usd }]);
    },
  );
});

describe('§11 the object’s tables have a row that says their version', () => {
  const readShape = (name: string): Promise<unknown> =>
    runInDurableObject(env.LEDGER.getByName(name), (_, { storage: { sql } }) => ({
      version: sql.exec('SELECT schema_version FROM ledger').toArray(),
      columns: ['ledger', 'scopes', 'reservations', 'receipts'].map((table) =>
        sql.exec(`SELECT name, type, "notnull", dflt_value, pk FROM pragma_table_info('${table}')`).toArray(),
      ),
    }));

  it('§11 stepped forward from the first version they are what new ones are; a later version is left alone', async () => {
    for (const name of ['ws-new', 'ws-stepped', 'ws-later']) await env.LEDGER.getByName(name).findReceipt('req_none');
    const fresh = await readShape('ws-new');
    await runInDurableObject(env.LEDGER.getByName('ws-stepped'), (_, { storage: { sql } }) => {
      sql.exec('ALTER TABLE ledger DROP COLUMN spent_nano_usd');
      sql.exec('ALTER TABLE ledger DROP COLUMN spent_seq');
      sql.exec('UPDATE ledger SET schema_version = 1');
    });
    await runInDurableObject(env.LEDGER.getByName('ws-later'), (_, { storage: { sql } }) => {
      sql.exec('UPDATE ledger SET schema_version = 99');
    });
    for (const name of ['ws-stepped', 'ws-later']) {
      await evictDurableObject(env.LEDGER.getByName(name));
      expect(await env.LEDGER.getByName(name).call(settle({ workspace: name }))).toMatchObject({ v: 2 });
    }
    expect(await readShape('ws-stepped')).toEqual(fresh);
    expect(await readShape('ws-later')).toMatchObject({ version: [{ schema_version: 99 }] });
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
