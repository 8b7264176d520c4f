// The folder given with --state: what may be cleared in it, and that one gateway at a time uses it. It only looks after
// its own marker and wrangler's `v3` folder beside it, never after anything else that lies there.

import { existsSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';

import * as z from 'zod';

import { isPortFree } from './local-port.ts';
import { StartError, toReason } from './start-error.ts';

const MARKER = 'turnpike-state.json';

// Wrangler keeps local state in DIR/v3; these are the folders it makes there for our kinds of binding.
const STORE_FOLDER = 'v3';
const STORE_CONTENT = new Set(['cache', 'd1', 'do', 'kv', 'r2', 'ratelimits', 'workflows']);

const markerSchema = z.object({
  pid: z.int().positive(),
  port: z.int().positive(),
  /** The backends that were bound; markers of older versions do not say. */
  bindings: z.array(z.string()).optional(),
});

/** Where Miniflare keeps the stores of a `--persist-to` folder, as wrangler does. */
export function toStorePath(stateDir: string): string {
  return join(stateDir, STORE_FOLDER);
}

/**
 * Clears the stores in `stateDir`. A folder that does not exist or is empty is clear already.
 *
 * @throws StartError when the folder holds things but not the marker of a Turnpike state, or is in use.
 */
export async function clearStateFolder(stateDir: string): Promise<void> {
  const names = listNames(stateDir);
  if (names.length === 0) return;
  if (!names.includes(MARKER)) {
    throw new StartError(`${stateDir} does not look like a Turnpike state folder (no ${MARKER} in it): not cleared`);
  }
  await checkNotInUse(stateDir);
  rmSync(toStorePath(stateDir), { recursive: true, force: true });
  rmSync(join(stateDir, MARKER));
}

/**
 * Takes the folder for the gateway on `port`: two runtimes on the same Durable Objects would each trust a memory of
 * their own. `bindings` are noted for commands that look at the folder meanwhile or later. It is free again when that process has ended, in whatever way, so there is nothing to give back.
 *
 * @throws StartError when a running gateway has it or it cannot be made.
 */
export async function claimStateFolder(
  stateDir: string,
  port: number,
  bindings: readonly string[] = [],
): Promise<void> {
  await checkNotInUse(stateDir);
  const marker = join(stateDir, MARKER);
  // The marker allows --fresh to delete `v3`, so a `v3` of another origin never gets one.
  const isOurs = existsSync(marker) || listNames(toStorePath(stateDir)).every((name) => STORE_CONTENT.has(name));
  if (!isOurs) throw new StartError(`${toStorePath(stateDir)} is not wrangler's: choose another --state folder`);
  try {
    await mkdir(stateDir, { recursive: true });
    await writeFile(marker, JSON.stringify({ pid: process.pid, port, bindings }));
  } catch (error) {
    throw new StartError(`cannot write to the state folder ${stateDir} (${toReason(error)})`);
  }
}

// Process ids are used again, so a living one counts only while something answers on the port it had.
async function checkNotInUse(stateDir: string): Promise<void> {
  const marker = readMarker(stateDir);
  if (marker === null || !isAlive(marker.pid) || (await isPortFree(marker.port))) return;
  throw new StartError(`${stateDir} is in use by the gateway on port ${marker.port} (process ${marker.pid})`);
}

/** The backends of the gateway that has, or had, the folder; null when it does not say. */
export function readBoundBackends(stateDir: string): readonly string[] | null {
  return readMarker(stateDir)?.bindings ?? null;
}

function readMarker(stateDir: string): z.infer<typeof markerSchema> | null {
  try {
    return markerSchema.parse(JSON.parse(readFileSync(join(stateDir, MARKER), 'utf8')));
  } catch {
    // No marker, or one cut short by a crash: either way nobody claims the folder.
    return null;
  }
}

function isAlive(pid: number): boolean {
  try {
    return process.kill(pid, 0);
  } catch {
    return false;
  }
}

function listNames(dir: string): string[] {
  try {
    return readdirSync(dir);
  } catch (error) {
    if (error instanceof Error && 'code' in error && error.code === 'ENOENT') return [];
    throw new StartError(`cannot read the state folder ${dir} (${toReason(error)})`);
  }
}
