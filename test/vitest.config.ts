// Three kinds of tests: pure rooms on Node, the Worker inside workerd with real KV, D1 and Durable Object, and whole
// processes on the production bundle.

import { cloudflareTest, readD1Migrations } from '@cloudflare/vitest-plugin';
import { fileURLToPath } from 'node:url';
import { defineConfig } from 'vitest/config';

const root = fileURLToPath(new URL('..', import.meta.url));
// wrangler and Miniflare stay off the network: no telemetry, no cf.json, no banner.
process.env['WRANGLER_SEND_METRICS'] = 'false';
process.env['CLOUDFLARE_CF_FETCH_ENABLED'] = 'false';
process.env['WRANGLER_HIDE_BANNER'] = 'true';

/** Variables of this process that the tests inside workerd look at too. */
function passOn(...names: readonly string[]): Record<string, string> {
  return Object.fromEntries(names.filter((name) => process.env[name] !== undefined).map((name) => [name, '1']));
}

/** Only `npm run test:browser` asks for it: it needs a Chromium, which a bare machine does not have. */
const BROWSER = {
  root,
  test: {
    name: 'browser',
    globalSetup: ['test/process/serve.ts'],
    include: ['test/browser/**/*.test.ts'],
    testTimeout: 60_000,
    hookTimeout: 60_000,
  },
};

export default defineConfig({
  root,
  test: {
    reporters: ['default'],
    // Two files at once, on two cores too: a good deal of their time is waiting. Whole processes come alone, behind them.
    maxWorkers: 2,
    // The Workers' own log, a JSON object a line; tests that look at it capture it.
    onConsoleLog: (line) => !line.startsWith('{"event"'),
    projects: [
      {
        root,
        test: {
          name: 'node',
          include: ['test/{core,openai,gateway,http,backends,cli}/**/*.test.ts', 'test/*.test.ts'],
        },
      },
      {
        root,
        plugins: [
          cloudflareTest(async () => ({
            wrangler: { configPath: `${root}/wrangler.toml` },
            miniflare: {
              bindings: {
                TEST_MIGRATIONS: await readD1Migrations(`${root}/src/cloudflare/migrations`),
                TURNPIKE_LOCAL: '1',
                ...passOn('TURNPIKE_FIGURES', 'TURNPIKE_DEEP'),
              },
              r2Buckets: ['ARCHIVE'],
              ratelimits: { FAILED_KEYS: { namespace_id: '1001', simple: { limit: 5, period: 60 } } },
              workers: [
                {
                  name: 'turnpike-bridge',
                  modules: [{ type: 'ESModule', path: `${root}/test/cloudflare/scripted-engine.js` }],
                  compatibilityDate: '2026-11-01',
                  compatibilityFlags: ['enable_request_signal', 'request_signal_passthrough'],
                },
              ],
            },
          })),
        ],
        test: { name: 'workerd', include: ['test/cloudflare/**/*.test.ts'] },
      },
      {
        root,
        test: {
          name: 'process',
          globalSetup: ['test/process/serve.ts'],
          include: ['test/process/**/*.test.ts'],
          testTimeout: 60_000,
          hookTimeout: 60_000,
          fileParallelism: false,
          sequence: { groupOrder: 1 },
        },
      },
      ...(process.env['TURNPIKE_BROWSER'] === '1' ? [BROWSER] : []),
    ],
  },
});
