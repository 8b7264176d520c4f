// The real stores when something is wrong in them: keys in KV that are damaged, orphaned or deleted, and a D1 that refuses
// writes for a while. The service goes on and no receipt is lost (SPEC §2, §9).

import { afterAll, beforeAll, describe, expect, test } from 'vitest';

import { errorEnvelopeSchema } from '../openai/published-schema.ts';
import { call } from './raw-client.ts';
import { answerAny } from './scripted-upstream.ts';
import {
  buildChat,
  buildKey,
  MODELS,
  poll,
  type ScriptedGateway,
  startScriptedGateway,
  toCostUsd,
  toToken,
} from './scripted-gateway.ts';

const REQUEST_ID = /^req_[0-9a-z]{26}$/;
const { hash } = buildKey('orphan');

let scripted: ScriptedGateway;
beforeAll(async () => {
  scripted = await startScriptedGateway({
    vars: { KEY_CACHE_MS: '1' },
    keys: {
      'key:not-json': '{"workspace":"acme",',
      'key:no-hash': { workspace: 'acme' },
      'key:bad-hash': buildKey('bad-hash', { hash: 'sha256:abc' }),
      'key:bad-limits': buildKey('bad-limits', { limits: { rpm: 'many' } }),
      'key:orphan': { workspace: 'nowhere', hash },
      'key:in-ruin': buildKey('in-ruin', { workspace: 'ruin' }),
      'workspace:ruin': 'not JSON',
      'key:off': buildKey('off', { disabled: true }),
      'key:late': buildKey('late', { expires_at: '2020-01-01T00:00:00Z' }),
      'key:leaver': buildKey('leaver'),
      'key:reads-only': buildKey('reads-only', { scopes: ['models:read'] }),
    },
  });
  scripted.upstream.play(answerAny);
});
afterAll(() => scripted.stop());

type Refused = { readonly status: number; readonly code: string | null; readonly headers: Record<string, unknown> };

async function refuse(authorization: string | null): Promise<Refused> {
  const answer = await call(`${scripted.gateway.url}/v1/chat/completions`, {
    headers: authorization === null ? {} : { authorization },
    body: buildChat(MODELS.counted, true),
  });
  const { error } = errorEnvelopeSchema.parse(JSON.parse(await answer.whole()));
  expect(answer.requestId).toMatch(REQUEST_ID);
  expect(answer.headers['access-control-allow-origin']).toBe('*');
  return { status: answer.status, code: error.code, headers: answer.headers };
}

describe('§2 keys', () => {
  const typo = toToken('main').replace(/.$/, (last) => (last === 'A' ? 'B' : 'A'));

  test.each([
    ['no key', null],
    ['another scheme', `Basic ${toToken('main')}`],
    ['no token', 'Bearer'],
    ['not a key', 'Bearer sk-123'],
    ['a typo in the secret', `Bearer ${typo}`],
    ['a typo in the id', `Bearer ${toToken('main').replace('main', 'mian')}`],
    ['a letter too many', `Bearer ${toToken('main')}A`],
    ['an expired key', `Bearer ${toToken('late')}`],
    ['a disabled key', `Bearer ${toToken('off')}`],
  ])('§3 401 invalid_api_key: %s', async (_, authorization) => {
    const { status, code, headers } = await refuse(authorization);
    expect({ status, code }).toEqual({ status: 401, code: 'invalid_api_key' });
    expect(headers['www-authenticate']).toBe('Bearer');
  });

  test.each(['/v1/models/x', '/v1/receipts?limit=1', '/docs', '/openapi.json', '/v1/nothing'])(
    '§10 a Host that no URL can have is no bug of ours: %s',
    async (path) => {
      const headers = { host: 'x:99999', authorization: `Bearer ${toToken('main')}` };
      const answer = await call(`${scripted.gateway.url}${path}`, { headers });
      await answer.whole();
      expect(answer.status).not.toBe(500);
    },
  );

  test('§2 the Bearer scheme is case-insensitive', async () => {
    const authorization = `bEARER ${toToken('main')}`;
    const answer = await call(`${scripted.gateway.url}/v1/models`, { headers: { authorization } });
    expect(answer.status).toBe(200);
  });

  test('§3 403 insufficient_scope', async () => {
    expect(await refuse(`Bearer ${toToken('reads-only')}`)).toMatchObject({ status: 403, code: 'insufficient_scope' });
  });

  test.each([
    ['not-json', 'key:not-json'],
    ['no-hash', 'key:no-hash'],
    ['bad-hash', 'key:bad-hash'],
    ['bad-limits', 'key:bad-limits'],
    ['orphan', 'workspace:nowhere'],
    ['in-ruin', 'workspace:ruin'],
  ])('§2 a damaged entry (%s): 503 auth_unavailable, logged with the id and the fault', async (id, entry) => {
    const { status, code, headers } = await refuse(`Bearer ${toToken(id)}`);
    expect({ status, code }).toEqual({ status: 503, code: 'auth_unavailable' });
    expect(Number(headers['retry-after'])).toBeGreaterThanOrEqual(1);
    expect(headers['x-should-retry']).toBe('true');
    await scripted.settleLog();
    const lines = scripted.logLines.filter((line) => line.includes('"event":"auth_unavailable"'));
    const line: unknown = JSON.parse(lines.at(-1) ?? '');
    expect(line).toMatchObject({ key: id, entry, fault: expect.stringMatching(/./) });
  });

  test('§2 a repaired entry serves, a deleted one is unknown', async () => {
    const authorization = `Bearer ${toToken('leaver')}`;
    const url = `${scripted.gateway.url}/v1/models`;
    const keys = await scripted.gateway.getKVNamespace('KEYS');
    const ask = async (): Promise<number> => (await call(url, { headers: { authorization } })).status;
    expect(await ask()).toBe(200);
    await keys.put('key:leaver', 'broken by hand');
    await poll(ask, (status) => status === 503, 5_000);
    await keys.put('key:leaver', JSON.stringify(buildKey('leaver')));
    await poll(ask, (status) => status === 200, 5_000);
    await keys.delete('key:leaver');
    await poll(ask, (status) => status === 401, 5_000);
  });

  test('§9 a refused request has no receipt', async () => {
    const db = await scripted.gateway.getD1Database();
    expect(await db.prepare('SELECT COUNT(*) AS n FROM receipts').first('n')).toBe(0);
    expect(scripted.upstream.exchanges).toEqual([]);
  });
});

describe('§9 D1 refuses writes for a while', () => {
  test('§9 no receipt is lost: the ledger answers for it meanwhile, and D1 has every row in the end', async () => {
    const db = await scripted.gateway.getD1Database();
    await db.exec('ALTER TABLE receipts RENAME TO receipts_away');
    const admitted: string[] = [];
    const chat = async (): Promise<void> => {
      const answer = await scripted.chat(buildChat(MODELS.counted, admitted.length % 2 === 0));
      expect(answer.status, await answer.whole()).toBe(200);
      admitted.push(answer.requestId);
    };
    for (let sent = 0; sent < 10; sent += 1) await chat();
    const failed = (): string[] => scripted.logLines.filter((line) => line.includes('"event":"receipts_unflushed"'));
    await poll(failed, (lines) => lines.length > 0, 12_000);
    // The service goes on, and the ledger answers for old and new.
    for (let sent = 0; sent < 5; sent += 1) await chat();
    for (const id of admitted) {
      const receipt = await scripted.waitForReceipt(id);
      expect(receipt).toMatchObject({ id, status: 'completed', usage: { input_tokens: 3, output_tokens: 2 } });
    }
    // What the ledger does not hold cannot be said not to exist.
    await expect(scripted.readReceipt(`req_${'0'.repeat(26)}`)).rejects.toThrow(/: 503 /);
    await db.exec('ALTER TABLE receipts_away RENAME TO receipts');
    const listRows = async (): Promise<{ id: string; cost_nano_usd: number; status: string }[]> =>
      (
        await db.prepare('SELECT id, cost_nano_usd, status FROM receipts').all<{
          id: string;
          cost_nano_usd: number;
          status: string;
        }>()
      ).results;
    const rows = await poll(listRows, (found) => found.length >= admitted.length, 30_000);
    expect(rows.map(({ id }) => id).toSorted()).toEqual(admitted.toSorted());
    const nano = Number(toCostUsd({ usage: { input_tokens: 3, cached_input_tokens: 0, output_tokens: 2 } })) * 1e9;
    for (const row of rows) expect(row).toMatchObject({ status: 'completed', cost_nano_usd: Math.round(nano) });
    expect(await scripted.readReceipt(`req_${'0'.repeat(26)}`)).toBeNull();
  });
});
