// `affinity: "prefix"` through the whole Worker and three real bridges: requests of one conversation meet at one backend,
// health goes first, and a lost backend's share comes home. The backend is what the receipt says (SPEC §6).

import { afterAll, beforeAll, expect, test } from 'vitest';
import * as z from 'zod';

import type { LocalGateway } from '../../src/cli/run-locally.ts';
import { call } from './raw-client.ts';
import { buildKey, pause, poll, toToken } from './scripted-gateway.ts';
import { answerAny, answerJson, type ScriptedUpstream, startScriptedUpstream } from './scripted-upstream.ts';
import { serve } from './serve.ts';

const BINDINGS = ['UPSTREAM_1', 'UPSTREAM_2', 'UPSTREAM_3'] as const;
const CONVERSATIONS = 24;
/** A breaker's first pause, and a little. */
const BREAKER_PAUSE_MS = 5_200;
/** What a prompt is compared by is its beginning. */
const PREFIX_CHARACTERS = 4_096;
const headers = { authorization: `Bearer ${toToken('main')}` };

let gateway: LocalGateway;
const upstreams = new Map<string, ScriptedUpstream>();

beforeAll(async () => {
  const backends = BINDINGS.map((binding) => ({ binding, upstream_model: 'm', engine: 'vllm' }));
  for (const binding of BINDINGS) upstreams.set(binding, await startScriptedUpstream());
  const models = { warm: { affinity: 'prefix', backends }, drawn: { backends } };
  gateway = await serve({
    demo: false,
    upstreams: [...upstreams].map(([binding, { baseUrl }]) => ({ binding, baseUrl })),
    catalog: { text: JSON.stringify({ version: 1, models }), origin: 'given' },
    keys: { 'workspace:acme': '{}', 'key:main': JSON.stringify(buildKey('main', { limits: { rpm: 10_000 } })) },
    onLog: () => undefined,
  });
  for (const upstream of upstreams.values()) upstream.play(answerAny);
});
afterAll(async () => {
  await gateway.stop();
  for (const upstream of upstreams.values()) await upstream.stop();
});

type Ask = { readonly path: string; readonly body: object };

/** The turns of one conversation, streamed or not: all begin alike, each goes further than the one before. */
function chats(conversation: number, model = 'warm'): Ask[] {
  const opening = [
    { role: 'system', content: 'You are terse.' },
    { role: 'user', content: `Question ${conversation}` },
  ];
  const more = ['And then?', 'Why?'].flatMap((content) => [
    { role: 'assistant', content: 'So.' },
    { role: 'user', content },
  ]);
  const turns = [opening, [...opening, ...more.slice(0, 2)], [...opening, ...more]];
  return turns.flatMap((messages) =>
    [true, false].map((stream) => ({ path: '/v1/chat/completions', body: { model, stream, messages } })),
  );
}

/** Text completions whose prompts begin alike and end differently. */
function completions(conversation: number): Ask[] {
  const beginning = `Document ${conversation}. `.padEnd(PREFIX_CHARACTERS, 'x');
  const prompts = [`${beginning} first`, `${beginning} second`];
  return prompts.flatMap((prompt) =>
    [true, false].map((stream) => ({ path: '/v1/completions', body: { model: 'warm', stream, prompt } })),
  );
}

/** The same conversations by responses: input in place of messages. */
function responses(conversation: number): Ask[] {
  return chats(conversation).map(({ body }) => {
    const { messages: input, ...rest }: { messages?: unknown } = body;
    return { path: '/v1/responses', body: { ...rest, input } };
  });
}

/** The first turn of each conversation. */
function openings(): Ask[] {
  return Array.from({ length: CONVERSATIONS }, (_, at) => chats(at).slice(0, 1)).flat();
}

const pageSchema = z.object({
  data: z.array(z.object({ id: z.string(), status: z.string(), backend: z.string().nullable(), attempts: z.number() })),
});
type Served = { readonly backend: string | null; readonly attempts: number };

/** Sends one after the other; tells what the receipts say of each, in order. At most 100. */
async function sendAll(asks: readonly Ask[]): Promise<Served[]> {
  const ids: string[] = [];
  for (const { path, body } of asks) {
    const answer = await call(gateway.url + path, { headers, body });
    expect(answer.status, answer.text()).toBe(200);
    await answer.whole();
    ids.push(answer.requestId);
  }
  const receipts = await poll(
    async () => {
      const text = await (await call(`${gateway.url}/v1/receipts?limit=100`, { headers })).whole();
      const byId = new Map(pageSchema.parse(JSON.parse(text)).data.map((receipt) => [receipt.id, receipt]));
      return ids.map((id) => byId.get(id));
    },
    (found) => found.every((receipt) => receipt?.status === 'completed'),
    5_000,
  );
  return receipts.map((receipt) => ({ backend: receipt?.backend ?? null, attempts: receipt?.attempts ?? 0 }));
}

async function findHomes(): Promise<(string | null)[]> {
  return (await sendAll(openings())).map(({ backend }) => backend);
}

test.each([
  ['/v1/chat/completions', (conversation: number) => chats(conversation)],
  ['/v1/completions', completions],
  ['/v1/responses', responses],
])('§6 affinity: on %s requests that begin alike meet at one backend, streamed or not', async (_path, build) => {
  const homes: (string | null)[] = [];
  for (let conversation = 0; conversation < 12; conversation += 1) {
    const served = await sendAll(build(conversation));
    const met = new Set(served.map(({ backend }) => backend));
    expect(met.size).toBe(1);
    expect(new Set(served.map(({ attempts }) => attempts))).toEqual(new Set([1]));
    homes.push(...met);
  }
  // Different beginnings use every backend: nothing here is one backend doing it all.
  expect(new Set(homes)).toEqual(new Set(BINDINGS));
});

test('§6 without affinity one conversation is spread over the backends', async () => {
  const served = await sendAll(Array.from({ length: 8 }, () => chats(0, 'drawn')).flat());
  expect(new Set(served.map(({ backend }) => backend))).toEqual(new Set(BINDINGS));
});

test('§6 affinity yields to health: a lost backend moves its own share alone, and gets it back', async () => {
  const before = await findHomes();
  const lost = 'UPSTREAM_2';
  expect(new Set(before)).toEqual(new Set(BINDINGS));
  upstreams.get(lost)?.play((exchange) => answerJson(exchange, 500, {}));
  const during = await sendAll(openings());
  const moved = during.filter((_, at) => before[at] === lost);
  expect(moved.length).toBeGreaterThan(3);
  const stayed = during.filter((_, at) => before[at] !== lost);
  expect(stayed).toEqual(before.filter((home) => home !== lost).map((backend) => ({ backend, attempts: 1 })));
  // Three failures teach the isolate; from then on the lost backend is not asked first.
  expect(moved.map(({ attempts }) => attempts)).toEqual(moved.map((_, at) => (at < 3 ? 2 : 1)));
  expect(new Set(moved.map(({ backend }) => backend))).toEqual(new Set(BINDINGS.filter((name) => name !== lost)));
  // What moved keeps meeting where it went.
  expect(await findHomes()).toEqual(during.map(({ backend }) => backend));
  upstreams.get(lost)?.play(answerAny);
  await pause(BREAKER_PAUSE_MS);
  expect(await findHomes()).toEqual(before);
});
