// How process tests and the bench start the gateway: the production bundle on real stores, on a free port of the loopback
// address, in this process. The bundle is built once per run. It holds no tests.

import { mkdtempSync, rmSync } from 'node:fs';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';

import { bundleWorkers } from '../../src/cli/bundle-workers.ts';
import { runLocally, type LocalGateway, type RunOptions } from '../../src/cli/run-locally.ts';

export const ROOT = resolve(import.meta.dirname, '../..');

// Where a vitest globalSetup, or a script that starts several processes, says that the bundle is built already.
const BUNDLE_DIR = 'TURNPIKE_BUNDLE_DIR';

let bundled: Promise<string> | undefined;

/** The bundled Workers: those named by TURNPIKE_BUNDLE_DIR, else built at the first call in this process. */
export function bundleOnce(): Promise<string> {
  const built = process.env[BUNDLE_DIR];
  if (built !== undefined) return Promise.resolve(built);
  return (bundled ??= bundleIntoTemporary());
}

/**
 * For vitest's globalSetup: bundles once for all test files.
 *
 * @returns the teardown.
 */
export async function setup(): Promise<() => void> {
  process.env[BUNDLE_DIR] = await bundleOnce();
  return () => delete process.env[BUNDLE_DIR];
}

/** Starts a gateway; without `stateDir` its state ends with it. The caller stops it. */
export async function serve(
  options: Omit<RunOptions, 'root' | 'bundleDir' | 'port'> & { readonly port?: number } = {},
): Promise<LocalGateway> {
  return runLocally({ port: await findFreePort(), ...options, root: ROOT, bundleDir: bundleOnce() });
}

/** A port that was free a moment ago. */
export function findFreePort(): Promise<number> {
  return new Promise((resolvePort, reject) => {
    const probe = createServer().once('error', reject);
    probe.listen(0, '127.0.0.1', () => {
      const address = probe.address();
      probe.close(() => (typeof address === 'object' && address !== null ? resolvePort(address.port) : reject()));
    });
  });
}

async function bundleIntoTemporary(): Promise<string> {
  const dir = mkdtempSync(join(tmpdir(), 'turnpike-bundle-'));
  process.once('exit', () => rmSync(dir, { recursive: true, force: true }));
  await bundleWorkers(ROOT, dir);
  return dir;
}
