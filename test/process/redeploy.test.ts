// A deploy under open streams: the isolates of before go on with theirs, the ledger object is replaced by the next
// bundle's on the same storage, new requests come to the next gateway. Everything ends and is settled once (SPEC §11).
// Three runtimes play this: Miniflare's registry lets the two gateways reach the one ledger host.

import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

import { convertV4MiniflareOptions, Miniflare, type V4WorkerOptions } from 'miniflare';
import { afterAll, beforeAll, expect, test } from 'vitest';
import * as z from 'zod';

import { readBundle } from '../../src/cli/bundle-workers.ts';
import { type LocalConfig, readLocalConfig, type WorkerName } from '../../src/cli/local-config.ts';
import { fillStore } from '../../src/cli/local-store.ts';
import { guardWorkerd } from '../../src/cli/workerd-guard.ts';
import { WIRES, type Wire } from './endpoint-wire.ts';
import { buildKey, pause, toToken } from './scripted-gateway.ts';
import { countUsage, type Exchange, type ScriptedUpstream, startScriptedUpstream } from './scripted-upstream.ts';
import { bundleOnce, findFreePort, ROOT } from './serve.ts';

const HOST = 'ledger-host';
const GRANTED_USD = 1;
const PRICING = { input: '10', output: '10' };
const CATALOG = {
  version: 1,
  models: {
    demo: {
      context_length: 4096,
      pricing: PRICING,
      backends: [{ binding: 'UPSTREAM_1', upstream_model: 'engine/m', engine: 'vllm' }],
    },
  },
};
const dir = mkdtempSync(join(tmpdir(), 'turnpike-redeploy-'));
const runtimes: Miniflare[] = [];
const guard = guardWorkerd();
const WORD_MS = 50;
let config: LocalConfig;
let upstream: ScriptedUpstream;
const engine = { isOver: false };

/** An engine that speaks until it is told to come to its end. */
async function speak(exchange: Exchange): Promise<void> {
  const wire = WIRES.find(({ path }) => path.endsWith(exchange.url.replace('/v1', '')));
  if (wire === undefined) throw new Error(`not for ${exchange.url}`);
  exchange.head(200);
  let words = 0;
  for (; !engine.isOver; words += 1) {
    if (!exchange.write(wire.event({ content: 'word ' }))) return;
    await pause(WORD_MS);
  }
  exchange.write(wire.event({ finish: 'stop' }));
  exchange.end(`${wire.event({ usage: countUsage(words) })}data: [DONE]\n\n`);
}

beforeAll(async () => {
  config = await readLocalConfig(ROOT);
  upstream = await startScriptedUpstream();
  upstream.play(speak);
  const keys = {
    'workspace:acme': JSON.stringify({ billing: 'prepaid' }),
    'key:main': JSON.stringify(buildKey('main', { scopes: ['inference:write', 'receipts:read'] })),
  };
  const catalog = { text: JSON.stringify(CATALOG), origin: 'given' } as const;
  for (const store of ['before', 'next', 'ledger']) {
    await fillStore(config, join(dir, store), { keys, catalog }, () => undefined);
  }
});
afterAll(async () => {
  await Promise.all(runtimes.map((runtime) => runtime.dispose()));
  await upstream.stop();
  guard.release();
  rmSync(dir, { recursive: true, force: true });
});

/** A Worker of the bundle; the next version of it says so in its health. */
async function buildWorker(worker: WorkerName, name: string, isNext: boolean): Promise<V4WorkerOptions> {
  const { root, modules } = readBundle(await bundleOnce(), worker);
  const marked = modules.map((module) => {
    if (!isNext || !module.path.endsWith('index.js')) return module;
    const text = new TextDecoder().decode(module.contents).replace('{ status: "ok" }', '{ status: "ok", next: true }');
    return { ...module, contents: new TextEncoder().encode(text) };
  });
  const vars = { ...config[worker].vars, TURNPIKE_LOCAL: '1', LEASE_MS: '2000', BASE_URL: upstream.baseUrl };
  return { ...config[worker].options, name, modulesRoot: root, modules: marked, bindings: vars };
}

function toOptions(store: string, workers: V4WorkerOptions[]): ConstructorParameters<typeof Miniflare>[0] {
  return convertV4MiniflareOptions({
    cf: false,
    host: '127.0.0.1',
    handleStructuredLogs: () => undefined,
    resourcePersistencePath: join(dir, store),
    unsafeDevRegistryPath: join(dir, 'registry'),
    workers,
  });
}

async function start(store: string, workers: V4WorkerOptions[]): Promise<Miniflare> {
  const runtime = new Miniflare(toOptions(store, workers));
  runtimes.push(runtime);
  await runtime.ready;
  return runtime;
}

/** A gateway whose ledgers live with the host; returns its address. */
async function startGateway(store: string, isNext: boolean): Promise<string> {
  const port = await findFreePort();
  const gateway: V4WorkerOptions = {
    ...(await buildWorker('gateway', `turnpike-${store}`, isNext)),
    serviceBindings: { UPSTREAM_1: { name: `bridge-${store}`, entrypoint: 'Bridge' } },
    durableObjects: { LEDGER: { className: 'Ledger', scriptName: HOST } },
    unsafeDirectSockets: [{ host: '127.0.0.1', port }],
  };
  await start(store, [gateway, await buildWorker('bridge', `bridge-${store}`, false)]);
  return `http://127.0.0.1:${port}`;
}

async function buildHost(isNext: boolean): Promise<V4WorkerOptions[]> {
  return [{ ...(await buildWorker('gateway', HOST, isNext)), serviceBindings: {} }];
}

type Stream = {
  readonly id: string;
  readonly wire: Wire;
  readonly text: Promise<string>;
  readonly leave: () => void;
};

async function open(url: string, wire: Wire): Promise<Stream> {
  const controller = new AbortController();
  const response = await fetch(url + wire.path, {
    method: 'POST',
    headers: { authorization: `Bearer ${toToken('main')}`, 'content-type': 'application/json' },
    body: JSON.stringify(wire.ask('demo', true, { [wire.limitField]: 2000 })),
    signal: controller.signal,
  });
  expect(response.status).toBe(200);
  const text = response.text().catch((error: unknown) => String(error));
  return { id: response.headers.get('x-request-id') ?? '', wire, text, leave: () => controller.abort() };
}

/** One stream of each endpoint. */
const openAll = (url: string): Promise<Stream[]> => Promise.all(WIRES.map((wire) => open(url, wire)));

async function read<T>(url: string, path: string, schema: z.ZodType<T>): Promise<T> {
  const response = await fetch(url + path, { headers: { authorization: `Bearer ${toToken('main')}` } });
  return schema.parse(await response.json());
}

const receiptSchema = z.object({ id: z.string(), status: z.string(), cost_usd: z.string() });
const creditsSchema = z.object({
  balance_usd: z.string(),
  held_usd: z.string(),
  spent_usd: z.string(),
  limits: z.object({ concurrency: z.object({ in_use: z.number() }) }),
});

test('§11 streams open across a deploy end and are settled; limits and balance are right on both sides of it', async () => {
  const host = await start('ledger', await buildHost(false));
  const db = await host.getD1Database('DB', HOST);
  await db.prepare("INSERT INTO credit_grants (workspace, amount_usd) VALUES ('acme', ?)").bind(`${GRANTED_USD}`).run();
  const before = await startGateway('before', false);
  const [left, ...streams] = [...(await openAll(before)), ...(await openAll(before))];
  const readCredits = (): Promise<z.infer<typeof creditsSchema>> => read(next, '/v1/credits', creditsSchema);
  const countOpen = async (): Promise<number> => (await readCredits()).limits.concurrency.in_use;

  await host.setOptions(toOptions('ledger', await buildHost(true)));
  const next = await startGateway('next', true);
  expect(await read(next, '/health', z.unknown())).toEqual({ status: 'ok', next: true });
  expect(await read(before, '/health', z.unknown())).toEqual({ status: 'ok' });
  const known = expect.poll(countOpen, { timeout: 10_000, interval: 500 });
  await known.toBe(2 * WIRES.length);
  left?.leave();
  const later = await openAll(next);
  await expect.poll(countOpen, { timeout: 10_000, interval: 500 }).toBe(3 * WIRES.length - 1);
  engine.isOver = true;

  const whole = [...streams, ...later];
  for (const { wire, text } of whole)
    expect(wire.readStream(await text)).toMatchObject({ finish: 'stop', error: null });
  await expect.poll(countOpen, { timeout: 10_000, interval: 500 }).toBe(0);

  const ids = [left, ...streams, ...later].map((stream) => stream?.id ?? '');
  const receipts = await Promise.all(ids.map((id) => read(next, `/v1/receipts/${id}`, receiptSchema)));
  expect(receipts.map(({ status }) => status)).toEqual(['interrupted', ...whole.map(() => 'completed')]);
  const spent = receipts.reduce((sum, { cost_usd: cost }) => sum + Number(cost), 0);
  const credits = await readCredits();
  expect(spent).toBeGreaterThan(0);
  expect([Number(credits.spent_usd), Number(credits.held_usd)]).toEqual([expect.closeTo(spent, 9), 0]);
  expect(Number(credits.balance_usd)).toBeCloseTo(GRANTED_USD - spent, 9);

  const nextDb = await host.getD1Database('DB', HOST);
  const query = 'SELECT id FROM receipts ORDER BY id';
  const recorded = async (): Promise<string[]> =>
    (await nextDb.prepare(query).all<{ id: string }>()).results.map(({ id }) => id);
  await expect.poll(recorded, { timeout: 15_000, interval: 200 }).toEqual(ids.toSorted());

  const worker = await host.getWorker(HOST);
  await worker.scheduled({ scheduledTime: new Date(Date.now() + 2 * 24 * 3_600_000), cron: '17 3 * * *' });
  const sums = 'SELECT SUM(requests) AS requests, SUM(cost_nano_usd) AS cost FROM usage_daily';
  const day = await nextDb.prepare(sums).first<{ requests: number; cost: number }>();
  expect([day?.requests, Number(day?.cost) / 1e9], 'the daily run of the bundle').toEqual([
    ids.length,
    expect.closeTo(spent, 9),
  ]);
}, 60_000);
