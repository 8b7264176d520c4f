// Holds the rooms to their rules: who may import whom, which packages live where, no cycles, and no Cloudflare or hono
// name outside its room.

import { readdirSync, readFileSync } from 'node:fs';
import { dirname, join, relative } from 'node:path';
import { fileURLToPath } from 'node:url';
import { describe, expect, it } from 'vitest';

const SRC = fileURLToPath(new URL('../src', import.meta.url));

type Room = { readonly rooms: readonly string[]; readonly packages: readonly RegExp[] };

/** Per room: the rooms and packages it may import; itself always. */
const ROOMS: Readonly<Record<string, Room>> = {
  core: { rooms: [], packages: [/^zod$/] },
  openai: { rooms: ['core'], packages: [/^zod$/] },
  gateway: { rooms: ['core', 'openai'], packages: [] },
  http: { rooms: ['core', 'openai', 'gateway'], packages: [/^hono$/] },
  cloudflare: { rooms: ['core'], packages: [/^zod$/, /^cloudflare:workers$/] },
  'backends/bridge': { rooms: ['core'], packages: [/^zod$/, /^cloudflare:workers$/] },
  'backends/demo': { rooms: ['core'], packages: [/^zod$/, /^cloudflare:workers$/] },
  cli: {
    rooms: ['core'],
    packages: [/^node:/, /^zod$/, /^miniflare$/, /^wrangler$/, /^commander$/, /^cli-table3$/, /^cli-progress$/],
  },
  index: { rooms: ['http', 'cloudflare'], packages: [] },
};

/** What the adapters may know of the use cases: the ports' types, and waiting with an end. */
const OPEN_TO_CLOUDFLARE = ['gateway/ports.ts', 'gateway/deadline.ts'];

const CLOUDFLARE_NAMES =
  /\b(KVNamespace|D1Database|DurableObject\w*|Fetcher|IdentityTransformStream|ExecutionContext|ExportedHandler|HTMLRewriter|WorkerEntrypoint|SqlStorage\w*)\b/;

type Import = { readonly from: string; readonly to: string };

const files = readdirSync(SRC, { recursive: true, encoding: 'utf8' })
  .filter((name) => name.endsWith('.ts'))
  .map((name) => name.replaceAll('\\', '/'));
const imports = files.flatMap(readImports);

function readImports(file: string): readonly Import[] {
  const text = readFileSync(join(SRC, file), 'utf8');
  const found = text.matchAll(/^(?:import|export)\b[^;]*?\bfrom\s+'([^']+)'|\bimport\('([^']+)'\)/gms);
  return [...found].map((match) => {
    const target = match[1] ?? match[2] ?? '';
    const local = target.startsWith('.') ? relative(SRC, join(SRC, dirname(file), target)) : target;
    return { from: file, to: local };
  });
}

function roomOf(file: string): string {
  if (file === 'index.ts') return 'index';
  const parts = file.split('/');
  return parts[0] === 'backends' ? parts.slice(0, 2).join('/') : (parts[0] ?? '');
}

function isLocal(target: string): boolean {
  return target.endsWith('.ts');
}

describe('rooms', () => {
  it('every file lies in a room, and every import was understood', () => {
    expect(files.filter((file) => ROOMS[roomOf(file)] === undefined)).toEqual([]);
    expect(files.length).toBeGreaterThan(40);
    expect(imports.length).toBeGreaterThan(files.length);
    expect(imports.filter(({ to }) => isLocal(to) && !files.includes(to))).toEqual([]);
  });

  it('arrows point inward only', () => {
    const forbidden = imports.filter(({ from, to }) => {
      if (!isLocal(to)) return false;
      const room = roomOf(from);
      if (roomOf(to) === room) return false;
      if (room === 'cloudflare' && OPEN_TO_CLOUDFLARE.includes(to)) return false;
      return !(ROOMS[room]?.rooms.includes(roomOf(to)) ?? false);
    });
    expect(forbidden).toEqual([]);
  });

  it('packages stay in their rooms', () => {
    const forbidden = imports.filter(({ from, to }) => {
      if (isLocal(to)) return false;
      return !(ROOMS[roomOf(from)]?.packages.some((name) => name.test(to)) ?? false);
    });
    expect(forbidden).toEqual([]);
  });

  it('Cloudflare names stay in the cloudflare room, the backends and the door', () => {
    const named = files.filter((file) => {
      const room = roomOf(file);
      if (room === 'cloudflare' || room === 'index' || room === 'cli' || room.startsWith('backends/')) return false;
      return CLOUDFLARE_NAMES.test(readFileSync(join(SRC, file), 'utf8'));
    });
    expect(named).toEqual([]);
  });

  it('zod is imported whole: the other form quadruples the bundle', () => {
    const wrong = files.filter((file) => /import \{[^}]*\} from 'zod'/.test(readFileSync(join(SRC, file), 'utf8')));
    expect(wrong).toEqual([]);
  });

  it('there is no cycle', () => {
    const edges = new Map<string, string[]>();
    for (const { from, to } of imports) if (isLocal(to)) edges.set(from, [...(edges.get(from) ?? []), to]);
    const done = new Set<string>();
    const walk = (file: string, path: readonly string[]): readonly string[] | null => {
      if (path.includes(file)) return [...path.slice(path.indexOf(file)), file];
      if (done.has(file)) return null;
      for (const next of edges.get(file) ?? []) {
        const cycle = walk(next, [...path, file]);
        if (cycle !== null) return cycle;
      }
      done.add(file);
      return null;
    };
    for (const file of files) expect(walk(file, [])).toBeNull();
  });

  it('no folder is called by what it is not', () => {
    const names = files.flatMap((file) => file.split('/').slice(0, -1));
    expect(names.filter((name) => /^(utils?|helpers?|types|services|common|managers?|lib|shared)$/.test(name))).toEqual(
      [],
    );
  });
});

describe('files', () => {
  it('each opens by saying what it does', () => {
    const silent = files.filter((file) => !readFileSync(join(SRC, file), 'utf8').startsWith('// '));
    expect(silent).toEqual([]);
  });
});
