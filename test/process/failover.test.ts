// Two backends behind real bridges, one of which fails in each way: no request that has not shown an event is lost, the
// receipt tells what happened, and the breaker keeps later requests away (SPEC §6).

import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';

import type { LocalGateway } from '../../src/cli/run-locally.ts';
import { call, type RawAnswer } from './raw-client.ts';
import { printFigures } from './figures.ts';
import { buildKey, poll, readData, toToken } from './scripted-gateway.ts';
import {
  answerAny,
  answerJson,
  chunk,
  DONE,
  type Exchange,
  type Script,
  type ScriptedUpstream,
  startScriptedUpstream,
} from './scripted-upstream.ts';
import { findFreePort, serve } from './serve.ts';

const DEADLINE_MS = 1500;
const headers = { authorization: `Bearer ${toToken('main')}` };

let bad: ScriptedUpstream;
let good: ScriptedUpstream;
let gateway: LocalGateway;

// A gateway for each test: a breaker remembers.
beforeAll(async () => {
  bad = await startScriptedUpstream();
  good = await startScriptedUpstream();
});
beforeEach(async () => {
  good.play(answerAny);
  // The first is so heavy that it is asked first, practically always.
  const pair = (first: string): object => ({
    backends: [
      { binding: first, upstream_model: 'm', engine: 'vllm', weight: 1e9 },
      { binding: 'UPSTREAM_2', upstream_model: 'm', engine: 'vllm', weight: 1e-9 },
    ],
  });
  const models = { pair: pair('UPSTREAM_1'), 'half-dead': pair('UPSTREAM_3') };
  gateway = await serve({
    demo: false,
    upstreams: [
      { binding: 'UPSTREAM_1', baseUrl: bad.baseUrl },
      { binding: 'UPSTREAM_2', baseUrl: good.baseUrl },
      { binding: 'UPSTREAM_3', baseUrl: `http://127.0.0.1:${await findFreePort()}/v1` },
    ],
    catalog: { text: JSON.stringify({ version: 1, models }), origin: 'given' },
    keys: { 'workspace:acme': '{}', 'key:main': JSON.stringify(buildKey('main', { limits: { rpm: 1000 } })) },
    vars: { FIRST_EVENT_DEADLINE_MS: String(DEADLINE_MS), HEADERS_DEADLINE_MS: '500', FIRST_EVENT_HOLD_MS: '5000' },
    onLog: () => undefined,
  });
  return () => gateway.stop();
});
afterAll(async () => {
  await bad.stop();
  await good.stop();
});

const PATHS = ['/v1/chat/completions', '/v1/completions', '/v1/responses'] as const;
type Path = (typeof PATHS)[number];
const PROMPTS: Readonly<Record<Path, object>> = {
  '/v1/chat/completions': { messages: [{ role: 'user', content: 'Hi' }] },
  '/v1/completions': { prompt: 'Hi' },
  '/v1/responses': { input: 'Hi' },
};

async function ask(stream: boolean, path: Path = '/v1/chat/completions', model = 'pair'): Promise<RawAnswer> {
  return call(gateway.url + path, { headers, body: { model, stream, ...PROMPTS[path] } });
}

type Receipt = Readonly<Record<string, unknown>>;

async function readReceipt(id: string): Promise<Receipt> {
  return poll(
    async () => {
      const receipt: Receipt = JSON.parse(await (await call(`${gateway.url}/v1/receipts/${id}`, { headers })).whole());
      return receipt;
    },
    ({ status }) => status !== 'in_progress' && status !== undefined,
    5000,
  );
}

const FAILURES: readonly (readonly [string, Script, attempts: number])[] = [
  ['resets before headers, twice', (exchange) => exchange.reset(), 3],
  ['answers 500', (exchange) => answerJson(exchange, 500, {}), 2],
  ['answers 429', (exchange) => answerJson(exchange, 429, {}), 2],
  ['answers 503', (exchange) => answerJson(exchange, 503, {}), 2],
  ['errs in its first event', sayError, 2],
  ['ends before its first event', (exchange) => (exchange.head(200), exchange.end()), 2],
];

function sayError(exchange: Exchange): void {
  exchange.head(200);
  exchange.end('data: {"error":{"message":"boom","code":500}}\n\n' + DONE);
}

describe('§6 failover before the first event', () => {
  test.each(FAILURES)('§6 one backend %s: the other answers, one receipt', async (_name, script, attempts) => {
    bad.play(script);
    for (const path of PATHS) {
      const answer = await ask(true, path);
      expect(answer.status, answer.text()).toBe(200);
      expect(await answer.whole()).toMatch(/(?:data: \[DONE\]|event: response\.completed\n.*)\n\n$/);
      expect(await readReceipt(answer.requestId)).toMatchObject({
        status: 'completed',
        backend: 'UPSTREAM_2',
        attempts,
        http_status: 200,
      });
    }
  });

  test('§6 not streamed alike', async () => {
    bad.play((exchange) => answerJson(exchange, 500, {}));
    const answer = await ask(false);
    expect(answer.status).toBe(200);
    expect(await readReceipt(answer.requestId)).toMatchObject({ backend: 'UPSTREAM_2', attempts: 2, stream: false });
  });

  test('§6 silent before headers: replaced when its time is up, within one deadline', async () => {
    bad.play(() => undefined);
    const answer = await ask(true);
    expect(answer.status).toBe(200);
    expect(await readReceipt(answer.requestId)).toMatchObject({ backend: 'UPSTREAM_2', attempts: 2 });
  });

  test.each([true, false])('§6 a backend that refuses connections is replaced, stream %s', async (stream) => {
    for (const path of PATHS) {
      const answer = await ask(stream, path, 'half-dead');
      expect(answer.status, answer.text()).toBe(200);
      expect(await readReceipt(answer.requestId)).toMatchObject({ backend: 'UPSTREAM_2', attempts: 3 });
    }
  });

  test.each([400, 422])('§6 never after %i: it would be refused elsewhere too', async (status) => {
    bad.play((exchange) => answerJson(exchange, status, { error: { message: 'no' } }));
    for (const stream of [true, false]) {
      const answer = await ask(stream);
      expect(answer.status).toBe(400);
      const receipt = await readReceipt(answer.requestId);
      expect(receipt).toMatchObject({ backend: 'UPSTREAM_1', attempts: 1, status: 'failed' });
    }
  });

  test('§6 never a second backend after the client saw an event', async () => {
    bad.play((exchange) => {
      exchange.head(200);
      exchange.write(chunk({ content: 'half' }));
      setTimeout(() => exchange.reset(), 50);
    });
    const answer = await ask(true);
    const data = readData(await answer.whole());
    expect(data.at(-2)).toContain('upstream_disconnected');
    expect(await readReceipt(answer.requestId)).toMatchObject({ backend: 'UPSTREAM_1', attempts: 1, status: 'failed' });
  });
});

test('§6 the breaker: after three failures the backend is asked last; it comes back by one probe', async () => {
  bad.play((exchange) => answerJson(exchange, 500, {}));
  const before = bad.exchanges.length;
  for (let request = 0; request < 10; request += 1) expect((await ask(true)).status).toBe(200);
  expect(bad.exchanges.length - before).toBe(3);
  bad.play(answerAny);
  await new Promise((resolve) => setTimeout(resolve, 5100));
  const probe = await ask(true);
  await probe.whole();
  expect(await readReceipt(probe.requestId)).toMatchObject({ backend: 'UPSTREAM_1', attempts: 1 });
});

const silent: Script = () => undefined;

test.each([
  ['dies', (exchange: Exchange) => exchange.reset()],
  ['falls silent', silent],
  ['errs in its first events', sayError],
])('§6 under a load of 16 streams one backend %s and comes back: nothing is lost', async (name, script) => {
  const timeline: Stream[] = [];
  const startedMs = performance.now();
  const before = bad.exchanges.length;
  const work = Array.from({ length: 16 }, async () => {
    for (let request = 0; request < 8; request += 1) {
      const isFailing = timeline.length >= 32 && timeline.length < 96;
      bad.play(isFailing ? script : answerAny);
      const sentMs = performance.now();
      const answer = await ask(true);
      expect(answer.status).toBe(200);
      expect(readData(await answer.whole()).at(-1)).toBe('[DONE]');
      const endedMs = performance.now();
      timeline.push({ atMs: Math.round(endedMs - startedMs), tookMs: Math.round(endedMs - sentMs), isFailing });
    }
  });
  await Promise.all(work);
  expect(timeline).toHaveLength(128);
  const failed = bad.exchanges.length - before;
  printFigures(`${name}: ${describeTimeline(timeline)}; the backend was asked ${failed} times of 128`);
});

type Stream = { readonly atMs: number; readonly tookMs: number; readonly isFailing: boolean };

/** When each part of the load ended, and its slowest stream. */
function describeTimeline(timeline: readonly Stream[]): string {
  const parts = [timeline.slice(0, 32), timeline.slice(32, 96), timeline.slice(96)];
  return parts
    .map((part) => `until ${part.at(-1)?.atMs} ms, slowest ${Math.max(...part.map(({ tookMs }) => tookMs))} ms`)
    .join(' | ');
}
