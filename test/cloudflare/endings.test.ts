// Every route and every way of ending, by one table inside workerd: the slot is free, the tokens of the bucket are those
// really used, and the receipt says how it ended (SPEC §5, §9).

import { env } from 'cloudflare:workers';
import { reset } from 'cloudflare:test';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type Ledger } from '../../src/gateway/ports.ts';
import { err } from '../../src/core/result.ts';
import { createTextReader } from '../../src/gateway/text-reader.ts';
import {
  addKey,
  chat,
  type EngineScript,
  get,
  INFERENCE_PATHS,
  type InferencePath,
  prepare,
  toEngineChoice,
  toFieldsOf,
} from './fixtures.ts';
import { startIsolate } from './start-isolate.ts';

beforeAll(prepare);
afterAll(reset);

const ROUTES = INFERENCE_PATHS.flatMap((path) => [true, false].map((stream) => ({ path, stream })));

const TPM = 2000;
const LIMITS = { rpm: 1000, tpm: TPM, concurrency: 1 };
const VARS = { LEASE_MS: '900', SILENCE_DEADLINE_MS: '300', KEEPALIVE_MS: '100' };
/** Far more prompt tokens than any estimate, so that what is settled can be told from what was reserved. */
const INPUT = 900;
const OUTPUT = 100;

type Ending = {
  readonly name: string;
  readonly script: (path: InferencePath) => EngineScript;
  readonly leavesAfterMs?: number;
  readonly wrapLedger?: (ledger: Ledger) => Ledger;
  /** Status of the answer: streamed, and not. */
  readonly http: readonly [stream: number, whole: number];
  /** Where it differs: the receipt's error code, streamed, and not. */
  readonly code?: readonly [stream: string, whole: string];
  /** null: there is none. */
  readonly receipt: Readonly<Record<string, unknown>> | null;
  readonly tokens: number;
};

const usage = (output: number): object => ({
  prompt_tokens: INPUT,
  completion_tokens: output,
  total_tokens: INPUT + output,
});

/** A word with the count so far, then what follows. */
function speak(path: InferencePath, tail: readonly Record<string, unknown>[]): EngineScript {
  const word = { json: { choices: [toEngineChoice(path, 'a')], usage: usage(1) } };
  return { stream: [word, ...tail] };
}

function finish(path: InferencePath, reason: string): readonly Record<string, unknown>[] {
  const last = { json: { choices: [toEngineChoice(path, null, reason)], usage: usage(OUTPUT) } };
  return [last, { json: { choices: [], usage: usage(OUTPUT) } }, { data: '[DONE]' }];
}

const SILENCE = [{ wait: 2000, cut: true }];
const ENDINGS: readonly Ending[] = [
  {
    name: 'done',
    script: (path) => speak(path, finish(path, 'stop')),
    http: [200, 200],
    receipt: { status: 'completed', http_status: 200, error_code: null, finish_reason: 'stop' },
    tokens: INPUT + OUTPUT,
  },
  {
    name: 'done at its limit',
    script: (path) => speak(path, finish(path, 'length')),
    http: [200, 200],
    receipt: { status: 'incomplete', http_status: 200, error_code: null, finish_reason: 'length' },
    tokens: INPUT + OUTPUT,
  },
  {
    name: 'refused by the engine',
    script: () => ({ status: 400, body: '{"error":{"message":"no"}}' }),
    http: [400, 400],
    receipt: { status: 'failed', http_status: 400, cost_usd: '0.000000000' },
    tokens: 0,
  },
  {
    name: 'failed before the first event',
    script: () => ({ status: 500, body: '' }),
    http: [502, 502],
    receipt: { status: 'failed', http_status: 502, error_code: 'upstream_error', cost_usd: '0.000000000' },
    tokens: 0,
  },
  {
    name: 'failed after it',
    script: (path) => speak(path, [{ wait: 50, cut: true }]),
    http: [200, 502],
    receipt: { status: 'failed', cost_usd: '0.000000000' },
    code: ['upstream_disconnected', 'upstream_error'],
    tokens: INPUT + 1,
  },
  {
    name: 'client gone',
    script: (path) => speak(path, SILENCE),
    leavesAfterMs: 150,
    http: [200, 499],
    receipt: { status: 'interrupted', error_code: null, usage_source: 'engine_running' },
    tokens: INPUT + 1,
  },
  {
    name: 'deadline',
    script: (path) => speak(path, SILENCE),
    http: [200, 502],
    receipt: { status: 'failed', error_code: 'upstream_timeout', cost_usd: '0.000000000' },
    tokens: INPUT + 1,
  },
  {
    name: 'stopped by the ledger',
    script: (path) => speak(path, [{ wait: 250, raw: ': on\n\n' }, ...(speak(path, SILENCE).stream ?? [])]),
    wrapLedger: (ledger) => ({ ...ledger, renew: async (reservation) => (await ledger.renew(reservation), 'stop') }),
    http: [200, 401],
    receipt: { status: 'failed', error_code: 'request_stopped', cost_usd: '0.000000000' },
    tokens: INPUT + 1,
  },
  {
    name: 'ledger late',
    script: (path) => speak(path, finish(path, 'stop')),
    wrapLedger: (ledger) => ({
      ...ledger,
      async reserve(...call) {
        await ledger.reserve(...call);
        return err({ error: { kind: 'limiter_unavailable' }, rates: null });
      },
    }),
    http: [503, 503],
    receipt: null,
    tokens: 0,
  },
];

const CASES = ENDINGS.flatMap((ending) => ROUTES.map((route) => ({ ...ending, ...route })));

describe.each(CASES)('§5 $path, stream $stream: $name', ({ path, stream, ...ending }) => {
  it('§5 the slot is free, the bucket has the tokens really used, the receipt its status', async () => {
    const id = `ends-${path.replaceAll('/', '-')}-${stream}-${ending.name.replace(/\W/g, '-')}`;
    const token = await addKey(id, { scopes: ['inference:write', 'receipts:read'] }, { limits: LIMITS });
    // A whole answer that is collected here from a stream has the same ways of ending; what it needs is the other model.
    const fields = { model: stream ? 'test-model' : 'streamed', stream, ...toFieldsOf(path, 500) };
    const { wrapLedger, leavesAfterMs } = ending;
    const isolate = startIsolate({ vars: VARS, ...(wrapLedger === undefined ? {} : { wrapLedger }) });
    const client = new AbortController();
    if (leavesAfterMs !== undefined) setTimeout(() => client.abort(), leavesAfterMs);
    const startMs = Date.now();
    const { response, over } = await isolate.postWhole(token, chat(fields, ending.script(path)), {
      path,
      signal: client.signal,
    });
    expect(response.status).toBe(ending.http[stream ? 0 : 1]);
    await response.text().catch(() => undefined);
    await over;
    const credits = await (
      await get(token, '/v1/credits')
    ).json<{
      limits: { tokens: { remaining: number }; concurrency: { in_use: number } };
    }>();
    const used = TPM - credits.limits.tokens.remaining;
    const drained = Math.ceil(((Date.now() - startMs) * TPM) / 60_000);
    expect(credits.limits.concurrency.in_use).toBe(0);
    expect(used).toBeLessThanOrEqual(ending.tokens);
    expect(used).toBeGreaterThanOrEqual(Math.max(0, ending.tokens - drained));
    const receipt = await get(token, `/v1/receipts/${response.headers.get('x-request-id')}`);
    if (ending.receipt === null) expect(receipt.status).toBe(404);
    else {
      const code = ending.code === undefined ? {} : { error_code: ending.code[stream ? 0 : 1] };
      expect(await receipt.json()).toMatchObject({ stream, endpoint: path, ...ending.receipt, ...code });
    }
    const next = await startIsolate().post(token, chat({ max_tokens: 5 }));
    expect([next.status, await next.text().then(() => 'read')]).toEqual([200, 'read']);
  });
});

it('§7 the client leaves with the first event: what is aborted between two reads ends as broken, and cannot be split', async () => {
  const controller = new AbortController();
  const body = chat({ stream: true }, { stream: [{ raw: 'data: 1\n\n' }, { wait: 5000, raw: 'data: 2\n\n' }] });
  const { signal } = controller;
  const response = await env.UPSTREAM_1.fetch('http://engine/v1/chat/completions', { method: 'POST', body, signal });
  if (response.body === null) throw new Error('no body');
  const reader = createTextReader(response.body);
  expect(await reader.read()).toEqual({ type: 'text', text: 'data: 1\n\n' });
  controller.abort();
  expect(reader.split()).toBe(null);
  expect(await reader.read()).toEqual({ type: 'end', text: '', broken: true });
  await reader.cancel();
});
