// What is measured: each variant is one workerd with its Workers and a bridge of its own to the same engine. A row of the
// gateway is one entry of GATEWAY_ROWS.

import { createHash } from 'node:crypto';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

import { readBundle } from '../../src/cli/bundle-workers.ts';
import { readLocalConfig } from '../../src/cli/local-config.ts';
import { startMiniflare } from '../../src/cli/miniflare-host.ts';
import { guardWorkerd } from '../../src/cli/workerd-guard.ts';
import { bundleOnce, findFreePort, ROOT, serve } from '../process/serve.ts';
import { type StreamOrder, type UsageShape, writeOrder } from './engine-events.ts';
import type { SLOPE_GOALS } from './loads.ts';

export type GoalName = keyof typeof SLOPE_GOALS.fast;

export type Variant = {
  readonly name: string;
  readonly goal: GoalName | null;
  readonly url: string;
  readonly pid: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly buildBody: (events: number, paceMs: number) => string;
  /** What else proves that `requests` streams were done right; null when all is well. */
  readonly findFault: (requests: number) => Promise<string | null>;
  readonly stop: () => Promise<void>;
};

type GatewayRow = {
  readonly name: string;
  readonly goal: GoalName | null;
  readonly lane: 'exact' | 'native';
  /** As the catalog calls it: decides what usage the gateway asks for. */
  readonly engine: 'vllm' | 'openai';
  readonly usage: UsageShape;
  /** Further members of the request. */
  readonly request?: Readonly<Record<string, unknown>>;
};

const GATEWAY_ROWS: readonly GatewayRow[] = [
  { name: 'exact, usage each', goal: 'exact', lane: 'exact', engine: 'vllm', usage: 'each' },
  { name: 'native', goal: 'native', lane: 'native', engine: 'openai', usage: 'end' },
  { name: 'exact, usage last', goal: null, lane: 'exact', engine: 'openai', usage: 'end' },
];

const MODEL = 'bench';
const PATH = '/v1/chat/completions';
const SECRET = createHash('sha256').update('a secret of the bench').digest('base64url');
const TOKEN = `tp_bench_${SECRET}`;
const HASH = createHash('sha256').update(TOKEN).digest('hex');
/** Receipts reach D1 seconds after their requests. */
const RECEIPTS_WITHIN_MS = 20_000;
const POLL_MS = 250;

/** Starts all variants, `bare` first. One after the other: the guard tells the process that was started last. */
export async function startVariants(baseUrl: string): Promise<readonly Variant[]> {
  const variants: Variant[] = [];
  try {
    variants.push(await startWorker('bare', null, baseUrl));
    variants.push(await startWorker('plain', 'plain', baseUrl));
    for (const row of GATEWAY_ROWS) variants.push(await startGateway(row, baseUrl));
    return variants;
  } catch (error) {
    await stopVariants(variants);
    throw error;
  }
}

/** Ends all of them. */
export async function stopVariants(variants: readonly Variant[]): Promise<void> {
  await Promise.all(variants.map((variant) => variant.stop()));
}

/** A Worker of workers/ in front of the bridge, with the bridge's compatibility date and flags, which are the gateway's too. */
async function startWorker(name: 'bare' | 'plain', goal: GoalName | null, baseUrl: string): Promise<Variant> {
  const { bridge } = await readLocalConfig(ROOT);
  const { root, modules } = readBundle(await bundleOnce(), 'bridge');
  const port = await findFreePort();
  const path = join(import.meta.dirname, 'workers', `${name}.js`);
  const guard = guardWorkerd();
  const stateDir = mkdtempSync(join(tmpdir(), 'turnpike-bench-'));
  const miniflare = await startMiniflare(
    [
      {
        ...bridge.options,
        name,
        modulesRoot: join(import.meta.dirname, 'workers'),
        modules: [{ type: 'ESModule', path, contents: readFileSync(path, 'utf8') }],
        serviceBindings: { UPSTREAM: { name: 'bridge', entrypoint: 'Bridge' } },
        unsafeDirectSockets: [{ host: '127.0.0.1', port }],
      },
      { ...bridge.options, name: 'bridge', modulesRoot: root, modules: [...modules], bindings: { BASE_URL: baseUrl } },
    ],
    stateDir,
    () => undefined,
  );
  return {
    name,
    goal,
    url: `http://127.0.0.1:${port}${PATH}`,
    pid: readPid(guard.pid()),
    headers: {},
    buildBody: (events, paceMs) => buildBody({ events, paceMs, usage: 'each' }),
    findFault: () => Promise.resolve(null),
    async stop() {
      await miniflare.dispose();
      guard.release();
      rmSync(stateDir, { recursive: true, force: true });
    },
  };
}

/** The whole gateway on real stores, with one model in the row's lane. */
async function startGateway(row: GatewayRow, baseUrl: string): Promise<Variant> {
  const gateway = await serve({
    demo: false,
    upstreams: [{ binding: 'UPSTREAM_1', baseUrl }],
    catalog: { text: JSON.stringify(buildCatalog(row)), origin: 'given' },
    keys: {
      'workspace:bench': JSON.stringify({ name: 'Bench', limits: { rpm: null, tpm: null, concurrency: null } }),
      'key:bench': JSON.stringify({ workspace: 'bench', hash: `sha256:${HASH}` }),
    },
    vars: {},
    onLog: () => undefined,
  });
  return {
    name: row.name,
    goal: row.goal,
    url: gateway.url + PATH,
    pid: readPid(gateway.workerdPid()),
    headers: { authorization: `Bearer ${TOKEN}` },
    buildBody: (events, paceMs) => buildBody({ events, paceMs, usage: row.usage }, row.request),
    async findFault(requests) {
      const db = await gateway.getD1Database();
      const count = db.prepare("SELECT count(*) AS n FROM receipts WHERE status = 'completed' AND output_tokens > 0");
      const deadlineMs = Date.now() + RECEIPTS_WITHIN_MS;
      for (;;) {
        const found = (await count.first<number>('n')) ?? 0;
        if (found === requests) return null;
        if (Date.now() > deadlineMs) return `${found} good receipts for ${requests} requests`;
        await new Promise((resolve) => setTimeout(resolve, POLL_MS));
      }
    },
    stop: gateway.stop,
  };
}

function buildCatalog({ lane, engine }: GatewayRow): unknown {
  const model = {
    lane,
    // A model that must be renamed is no stream to leave as it is.
    policy: lane === 'native' ? { response_model: 'engine' } : {},
    endpoints: [PATH],
    context_length: 8192,
    max_output_tokens: 4096,
    pricing: { input: '0.15', cached_input: '0.075', output: '0.60' },
    backends: [{ binding: 'UPSTREAM_1', upstream_model: 'engine/m', engine }],
  };
  return { version: 1, models: { [MODEL]: model } };
}

function buildBody(order: StreamOrder, more: Readonly<Record<string, unknown>> = {}): string {
  const messages = [{ role: 'user', content: writeOrder(order) }];
  return JSON.stringify({ model: MODEL, stream: true, max_tokens: order.events, messages, ...more });
}

function readPid(pid: number | undefined): number {
  if (pid === undefined) throw new Error('workerd told no process id');
  return pid;
}
