// `npm run deploy -- --dry-run` as a person runs it, without a way to the internet: it builds, says the size and ends
// well; and the size has a limit (SPEC §11).

import { execFile } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { gzipSync } from 'node:zlib';
import { expect, test } from 'vitest';
import * as z from 'zod';
import { bundleOnce, ROOT } from './serve.ts';

const run = promisify(execFile);
const KIB = 1024;
const GZIP_KIB_MAX = 250;

test('§11 --dry-run works offline, prints the size of the bundle and names the bindings', async () => {
  const nowhere = 'http://127.0.0.1:9';
  const env = { ...process.env, HTTP_PROXY: nowhere, HTTPS_PROXY: nowhere, CLOUDFLARE_API_TOKEN: '' };
  const { stdout } = await run('npm', ['run', '--silent', 'deploy', '--', '--dry-run'], { cwd: ROOT, env });
  expect(stdout).toContain('deploy: wrangler deploy --dry-run');
  const [, gzipKib] = /gzip: ([\d.]+) KiB/.exec(stdout) ?? [];
  expect(Number(gzipKib)).toBeGreaterThan(50);
  expect(Number(gzipKib)).toBeLessThan(GZIP_KIB_MAX);
  for (const binding of ['KEYS', 'CATALOG', 'DB', 'LEDGER', 'UPSTREAM_1']) expect(stdout).toContain(`env.${binding}`);
  expect(stdout).not.toMatch(/DEMO|TURNPIKE_LOCAL/);
});

test(`§11 the gateway’s bundle stays below ${GZIP_KIB_MAX} KiB gzip`, async () => {
  const bundle = readFileSync(join(await bundleOnce(), 'gateway/index.js'));
  const gzipKib = gzipSync(bundle).length / KIB;
  expect(gzipKib).toBeLessThan(GZIP_KIB_MAX);
});

test('§1 openapi.json tells the version of package.json', async () => {
  const { version } = z
    .object({ version: z.string() })
    .parse(JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8')));
  const bundle = readFileSync(join(await bundleOnce(), 'gateway/index.js'), 'utf8');
  expect(bundle).toContain(`VERSION = "${version}"`);
});
