// What keeps the backends off the internet: their wrangler.toml, read by wrangler's own reader, and the Worker files'
// two exports. `cloudflare:workers` exists only in workerd, so its one class is put in here.

import { fileURLToPath } from 'node:url';
import { experimental_readRawConfig as readRawConfig } from 'wrangler';
import { describe, expect, it, vi } from 'vitest';

vi.mock('cloudflare:workers', () => ({
  WorkerEntrypoint: class {
    ctx: unknown;
    env: unknown;
    constructor(ctx: unknown, env: unknown) {
      this.ctx = ctx;
      this.env = env;
    }
  },
}));

type EntrypointClass = new (ctx: object, env: object) => { fetch: (request: Request) => Promise<Response> };
interface WorkerModule {
  readonly default: { readonly fetch: () => Response };
  readonly Bridge?: EntrypointClass;
  readonly Demo?: EntrypointClass;
}

const gatewayFlags = ['enable_request_signal', 'request_signal_passthrough'];

// Whatever else is added to these files is a decision: it may be an address, a schedule or a queue.
const allowedFields = new Set([
  'name',
  'main',
  'compatibility_date',
  'compatibility_flags',
  'workers_dev',
  'preview_urls',
  'observability',
  'vars',
]);

describe.each<[string, string, 'Bridge' | 'Demo']>([
  ['bridge', 'turnpike-bridge', 'Bridge'],
  ['demo', 'turnpike-demo', 'Demo'],
])(
  '§6 %s: workers_dev = false, no previews, no routes, a named entrypoint, default export 404',
  (room, name, entry) => {
    const folder = fileURLToPath(new URL(`../../src/backends/${room}/`, import.meta.url));
    const { rawConfig } = readRawConfig({ config: `${folder}wrangler.toml` });

    it('wrangler.toml names the Worker and has both signal flags', () => {
      expect(rawConfig).toMatchObject({ name, main: 'index.ts', compatibility_date: '2026-11-01' });
      expect(rawConfig.compatibility_flags).toEqual(gatewayFlags);
    });

    it('wrangler.toml gives it no address: no workers.dev, preview, route, custom domain or trigger', () => {
      expect(rawConfig.workers_dev).toBe(false);
      expect(rawConfig.preview_urls).toBe(false);
      expect(rawConfig).not.toHaveProperty('route');
      expect(rawConfig).not.toHaveProperty('routes');
      expect(rawConfig).not.toHaveProperty('triggers');
      expect(Object.keys(rawConfig).filter((field) => !allowedFields.has(field))).toEqual([]);
    });

    it('wrangler.toml holds no secret and no server', () => {
      expect(Object.keys(rawConfig.vars ?? {})).toEqual(room === 'demo' ? ['TOKENS_PER_SECOND'] : []);
    });

    it('index.ts exports the entrypoint class and a default that answers 404, nothing else', async () => {
      const worker: WorkerModule = await import(`${folder}index.ts`);
      expect(Object.keys(worker).toSorted()).toEqual([entry, 'default']);
      expect(worker.default.fetch().status).toBe(404);
    });

    it('the entrypoint class serves the Worker’s routes and nothing else', async () => {
      const worker: WorkerModule = await import(`${folder}index.ts`);
      const Entrypoint = worker[entry];
      if (Entrypoint === undefined) throw new Error(`index.ts does not export ${entry}`);
      const instance = new Entrypoint({}, {});
      expect((await instance.fetch(new Request('http://x/'))).status).toBe(404);
      // The bridge has no BASE_URL here, and says so.
      const expected = room === 'demo' ? 200 : 500;
      expect((await instance.fetch(new Request('http://x/v1/models'))).status).toBe(expected);
    });
  },
);
