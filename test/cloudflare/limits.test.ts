// Limits as callers meet them, through the whole Worker: a caller alone who waits as told is admitted, very many at once
// get exactly what the bucket holds, a ledger that is reset in between gives nothing twice, and rates stay as they were when
// the request was admitted (SPEC §5, §9).

import { env } from 'cloudflare:workers';
import { reset } from 'cloudflare:test';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { sleep } from '../../src/gateway/deadline.ts';
import { resetLedger } from './chaos-faults.ts';
import { addKey, chat, type EngineScript, get, prepare, readReceipt } from './fixtures.ts';
import { flush } from './receipt-fixtures.ts';
import { type Isolate, startIsolate } from './start-isolate.ts';

beforeAll(prepare);
afterAll(reset);

const say = (finish_reason: string | null, waitMs: number): Record<string, unknown> => ({
  wait: waitMs,
  json: { choices: [{ index: 0, delta: { content: 'a' }, finish_reason }] },
});
/** A stream that takes so long. */
const lasting = (ms: number): EngineScript => ({ stream: [say(null, 0), say('stop', ms), { data: '[DONE]' }] });
/** An answer of so many tokens. */
const costing = (tokens: number): EngineScript => ({
  json: {
    id: 'c',
    model: 'engine-model',
    choices: [{ index: 0, message: { role: 'assistant', content: 'Hi' }, finish_reason: 'stop' }],
    usage: { prompt_tokens: tokens, completion_tokens: 0, total_tokens: tokens },
  },
});

const NEW_PRICING = { input: '3', output: '7' };

/** Reads a stream beside the test, as a client does: one that nobody reads does not end. */
function readAlong(response: Response): void {
  response.text().catch(() => undefined);
}

/** What uses a limit up, so that the next request is refused and told to wait. */
const WAITS: readonly (readonly [string, object, (token: string, isolate: Isolate) => Promise<unknown>])[] = [
  [
    'the request bucket',
    { rpm: 40 },
    (token, isolate) => Promise.all(Array.from({ length: 40 }, () => isolate.post(token, chat()))),
  ],
  [
    'the token bucket',
    { tpm: 12_000 },
    async (token, isolate) => {
      const { over } = await isolate.postWhole(token, chat({ max_tokens: 10 }, costing(11_950)));
      await over;
    },
  ],
  [
    'slots',
    { concurrency: 1 },
    async (token, isolate) => readAlong(await isolate.post(token, chat({ stream: true }, lasting(500)))),
  ],
];

it.each(WAITS)('§5 a caller alone who waits as told is admitted: %s', async (name, limits, useUp) => {
  const token = await addKey(`waits-${name.replaceAll(' ', '-')}`, {}, { limits });
  const isolate = startIsolate();
  await useUp(token, isolate);
  const body = chat({ max_tokens: 100 });
  const refused = await isolate.post(token, body);
  expect(refused.status).toBe(429);
  const waitMs = Number(refused.headers.get('retry-after-ms'));
  expect(Number(refused.headers.get('retry-after'))).toBe(Math.ceil(waitMs / 1000));
  expect(waitMs).toBeGreaterThan(0);
  // Half the wait is too short, or the hint would be no hint; in flight nobody can tell.
  if (name !== 'slots') {
    await sleep(waitMs / 2);
    expect((await isolate.post(token, body)).status).toBe(429);
    await sleep(waitMs / 2);
  } else await sleep(waitMs);
  expect((await isolate.post(token, body)).status).toBe(200);
});

it('§5 500 calls at once on a small limit, the ledger reset in between: exactly what the bucket holds', async () => {
  const [rpm, early] = [40, 25];
  const token = await addKey('many', { scopes: ['inference:write', 'receipts:read'] }, { limits: { rpm } });
  const isolate = startIsolate();
  const startMs = Date.now();
  const send = async (count: number): Promise<readonly Response[]> => {
    const calls = await Promise.all(Array.from({ length: count }, () => isolate.postWhole(token, chat())));
    await Promise.all(calls.map(({ over }) => over));
    return calls.map(({ response }) => response);
  };
  // What is settled is saved: the reset forgets none of it.
  const before = await send(early);
  expect(before.every(({ status }) => status === 200)).toBe(true);
  await resetLedger('ws-many', new Map(), true);
  const after = await send(500 - early);
  const admitted = [...before, ...after].filter(({ status }) => status === 200);
  const earned = Math.ceil(((Date.now() - startMs) / 60_000) * rpm);
  expect(admitted.length).toBeGreaterThanOrEqual(rpm);
  expect(admitted.length).toBeLessThanOrEqual(rpm + earned);
  expect(new Set(after.map(({ status }) => status))).toEqual(new Set([200, 429]));
  await flush('ws-many');
  const rows = env.DB.prepare("SELECT id FROM receipts WHERE workspace = 'ws-many'");
  const ids = (await rows.all<{ id: string }>()).results.map(({ id }) => id);
  expect(new Set(ids)).toEqual(new Set(admitted.map(({ headers }) => headers.get('x-request-id'))));
});

it('§9 a price that changes in mid-stream: the request under way keeps its rates, the next has the new ones', async () => {
  const token = await addKey('repriced', { scopes: ['inference:write', 'receipts:read'] });
  const isolate = startIsolate({ vars: { KEY_CACHE_MS: '1' } });
  const before = (await env.CATALOG.get('catalog')) ?? '';
  const under = await isolate.postWhole(token, chat({ stream: true }, lasting(600)));
  const catalog: { models: Record<string, object> } = JSON.parse(before);
  const models = { ...catalog.models, 'test-model': { ...catalog.models['test-model'], pricing: NEW_PRICING } };
  await env.CATALOG.put('catalog', JSON.stringify({ ...catalog, models }));
  const next = await isolate.postWhole(token, chat());
  await Promise.all([under.response.text(), next.response.text()]);
  await Promise.all([under.over, next.over]);
  await env.CATALOG.put('catalog', before);
  const [old, fresh] = [await readReceipt(token, under.response), await readReceipt(token, next.response)];
  expect(old).toMatchObject({ status: 'completed', rates: { input: '0.15', output: '0.60' } });
  expect(fresh).toMatchObject({ status: 'completed', rates: { input: '3', output: '7' }, cost_usd: '0.000023000' });
  expect(old['price_version']).not.toBe(fresh['price_version']);
  expect(old).toMatchObject({ usage: { input_tokens: 6, output_tokens: 2 }, cost_usd: '0.000002100' });
  const credits = await (await get(token, '/v1/credits')).json();
  expect(credits).toMatchObject({ spent_usd: '0.000025100' });
});
