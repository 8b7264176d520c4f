// Builds the Workers as `wrangler deploy` would and leaves them in a folder: the production bundle, not a dev build.
// It runs nothing. Wrangler's command is used rather than esbuild, because what is served here must be what is deployed,
// and three of them in parallel take 2.5 s on two cores.

import { spawn } from 'node:child_process';
import { readdirSync, readFileSync } from 'node:fs';
import { extname, join } from 'node:path';
import { stripVTControlCharacters } from 'node:util';

import { SILENT_ENV, toConfigPath, WORKER_NAMES, type WorkerName } from './local-config.ts';
import { StartError } from './start-error.ts';
import { WRANGLER_PATH } from './wrangler-path.ts';

export type BundleModule = {
  readonly type: 'ESModule' | 'CompiledWasm' | 'Text' | 'Data';
  readonly path: string;
  readonly contents: Uint8Array<ArrayBuffer>;
};

export type Bundle = { readonly root: string; readonly modules: readonly BundleModule[] };

/**
 * Bundles the Workers of the repository at `root` into `outDir/gateway`, `outDir/demo` and `outDir/bridge`.
 *
 * @param signal ends the builds that still run
 * @throws StartError with wrangler's own message when a Worker does not build.
 */
export async function bundleWorkers(
  root: string,
  outDir: string,
  workers: readonly WorkerName[] = WORKER_NAMES,
  signal?: AbortSignal,
): Promise<void> {
  await Promise.all(workers.map((worker) => bundleWorker(root, join(outDir, worker), worker, signal)));
}

/** Reads one bundled Worker into memory, its main module first, so that the folder may go while the Worker runs. */
export function readBundle(outDir: string, worker: WorkerName): Bundle {
  const root = join(outDir, worker);
  const modules = readdirSync(root, { recursive: true, encoding: 'utf8' })
    .toSorted((a, b) => Number(b === 'index.js') - Number(a === 'index.js'))
    .flatMap((name): BundleModule[] => {
      const type = MODULE_TYPES.get(extname(name));
      // Source maps and wrangler's README are not modules.
      return type === undefined ? [] : [{ type, path: join(root, name), contents: read(join(root, name)) }];
    });
  return { root, modules };
}

// Wrangler's default rules for what an import may name, and the files it writes for them.
const MODULE_TYPES: ReadonlyMap<string, BundleModule['type']> = new Map([
  ['.js', 'ESModule'],
  ['.wasm', 'CompiledWasm'],
  ['.txt', 'Text'],
  ['.html', 'Text'],
  ['.sql', 'Text'],
  ['.bin', 'Data'],
]);

function read(path: string): Uint8Array<ArrayBuffer> {
  return new Uint8Array(readFileSync(path));
}

function bundleWorker(root: string, outDir: string, worker: WorkerName, signal?: AbortSignal): Promise<void> {
  const args = ['deploy', '--dry-run', '--outdir', outDir, '--config', toConfigPath(root, worker)];
  return new Promise((resolve, reject) => {
    const child = spawn(process.execPath, ['--no-warnings', WRANGLER_PATH, ...args], {
      cwd: root,
      env: { ...process.env, ...SILENT_ENV },
      stdio: ['ignore', 'ignore', 'pipe'],
      ...(signal === undefined ? {} : { signal }),
    });
    let complaint = '';
    child.stderr.setEncoding('utf8').on('data', (text: string) => (complaint += text));
    child.once('error', reject);
    child.once('close', (code) => {
      if (code === 0) resolve();
      else reject(new StartError(`the ${worker} Worker does not build: ${stripVTControlCharacters(complaint).trim()}`));
    });
  });
}
