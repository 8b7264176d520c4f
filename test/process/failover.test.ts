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

/** A binding for each test, all of them the same server: a breaker remembers. */
const TESTS_MAX = 20;
const BINDINGS = Array.from({ length: TESTS_MAX }, (_, at) => `BAD_${at + 1}`);
let current = 0;
const bindingOf = (): string => BINDINGS[current] ?? '';

beforeAll(async () => {
  bad = await startScriptedUpstream();
  good = await startScriptedUpstream();
  // The first is so heavy that it is asked first, practically always.
  const pair = (first: string): object => ({
    backends: [
      { binding: first, upstream_model: 'm', engine: 'vllm', weight: 1e9 },
      { binding: 'GOOD', upstream_model: 'm', engine: 'vllm', weight: 1e-9 },
    ],
  });
  const refusing = ['GONE_1', 'GONE_2'];
  const nowhere = `http://127.0.0.1:${await findFreePort()}/v1`;
  const models = Object.fromEntries([...BINDINGS, ...refusing].map((binding) => [binding, pair(binding)]));
  gateway = await serve({
    demo: false,
    upstreams: [
      { binding: 'GOOD', baseUrl: good.baseUrl },
      ...BINDINGS.map((binding) => ({ binding, baseUrl: bad.baseUrl })),
      ...refusing.map((binding) => ({ binding, baseUrl: nowhere })),
    ],
    catalog: { text: JSON.stringify({ version: 1, models }), origin: 'given' },
    keys: {
      'workspace:acme': JSON.stringify({ limits: { rpm: null } }),
      'key:main': JSON.stringify(buildKey('main')),
      ...Object.fromEntries(BINDINGS.map((_, at) => [`key:reader-${at}`, toReader(at)])),
    },
    vars: { FIRST_EVENT_DEADLINE_MS: String(DEADLINE_MS), HEADERS_DEADLINE_MS: '500', FIRST_EVENT_HOLD_MS: '5000' },
    onLog: () => undefined,
  });
});
beforeEach(() => {
  current += 1;
  if (current === TESTS_MAX) throw new Error('there are more tests than bindings');
  good.play(answerAny);
});
afterAll(async () => {
  await gateway.stop();
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

async function ask(stream: boolean, path: Path = '/v1/chat/completions', model = bindingOf()): Promise<RawAnswer> {
  return call(gateway.url + path, { headers, body: { model, stream, ...PROMPTS[path] } });
}

type Receipt = Readonly<Record<string, unknown>>;

/** Reads are limited per key, so each test has a reader of its own. */
function toReader(at: number): string {
  return JSON.stringify(buildKey(`reader-${at}`, { scopes: ['receipts:read'] }));
}

async function readReceipt(id: string): Promise<Receipt> {
  return poll(
    async () => {
      const reader = { authorization: `Bearer ${toToken(`reader-${current}`)}` };
      const answer = await call(`${gateway.url}/v1/receipts/${id}`, { headers: reader });
      const receipt: Receipt = JSON.parse(await answer.whole());
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
        backend: 'GOOD',
        attempts,
        http_status: 200,
      });
    }
  });

  test('§6 not streamed alike', async () => {
    bad.play((exchange) => answerJson(exchange, 500, {}));
    const answer = await ask(false);
    expect(answer.status).toBe(200);
    expect(await readReceipt(answer.requestId)).toMatchObject({ backend: 'GOOD', attempts: 2, stream: false });
  });

  test('§6 silent before headers: replaced when its time is up, within one deadline', async () => {
    bad.play(() => undefined);
    const answer = await ask(true);
    expect(answer.status).toBe(200);
    expect(await readReceipt(answer.requestId)).toMatchObject({ backend: 'GOOD', attempts: 2 });
  });

  test.each([true, false])('§6 a backend that refuses connections is replaced, stream %s', async (stream) => {
    for (const path of PATHS) {
      const answer = await ask(stream, path, stream ? 'GONE_1' : 'GONE_2');
      expect(answer.status, answer.text()).toBe(200);
      expect(await readReceipt(answer.requestId)).toMatchObject({ backend: 'GOOD', attempts: 3 });
    }
  });

  test.each([400, 422])('§6 never after %i: it would be refused elsewhere too', async (status) => {
    bad.play((exchange) => answerJson(exchange, status, { error: { message: 'no' } }));
    for (const stream of [true, false]) {
      const answer = await ask(stream);
      expect(answer.status).toBe(400);
      const receipt = await readReceipt(answer.requestId);
      expect(receipt).toMatchObject({ backend: bindingOf(), attempts: 1, status: 'failed' });
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
    expect(await readReceipt(answer.requestId)).toMatchObject({ backend: bindingOf(), attempts: 1, status: 'failed' });
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
  expect(await readReceipt(probe.requestId)).toMatchObject({ backend: bindingOf(), attempts: 1 });
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
