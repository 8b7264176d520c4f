// The state folder: what --fresh may delete, and that two gateways do not share one.

import { mkdirSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

import { afterEach, beforeEach, describe, expect, test } from 'vitest';

import { claimStateFolder, clearStateFolder, readBoundBackends } from '../../src/cli/state-folder.ts';

let dir: string;
beforeEach(() => {
  dir = mkdtempSync(join(tmpdir(), 'turnpike-test-'));
});
afterEach(() => rmSync(dir, { recursive: true, force: true }));

// Nothing listens on port 1, so the claim of this living process does not count as in use.
const IDLE_PORT = 1;

describe('§11 npm start --fresh', () => {
  test('clears the state of an earlier start and nothing else', async () => {
    await claimStateFolder(dir, IDLE_PORT);
    mkdirSync(join(dir, 'v3/kv'), { recursive: true });
    writeFileSync(join(dir, 'notes.txt'), 'mine');
    await clearStateFolder(dir);
    expect(readdirSync(dir)).toEqual(['notes.txt']);
  });

  test.each(['src', 'v3'])(
    'refuses a folder that does not look like a Turnpike state folder (%s in it)',
    async (name) => {
      mkdirSync(join(dir, name));
      await expect(clearStateFolder(dir)).rejects.toThrow('does not look like a Turnpike state folder');
      expect(readdirSync(dir)).toEqual([name]);
    },
  );

  test('an empty or missing folder is clear already', async () => {
    await clearStateFolder(dir);
    await clearStateFolder(join(dir, 'missing'));
    expect(readdirSync(dir)).toEqual([]);
  });

  test('a foreign v3 folder is never taken over, so never cleared', async () => {
    mkdirSync(join(dir, 'v3/my-api'), { recursive: true });
    await expect(claimStateFolder(dir, IDLE_PORT)).rejects.toThrow("is not wrangler's");
  });

  test('state that wrangler made is taken over', async () => {
    mkdirSync(join(dir, 'v3/kv'), { recursive: true });
    await claimStateFolder(dir, IDLE_PORT);
    await clearStateFolder(dir);
    expect(readdirSync(dir)).toEqual([]);
  });
});

describe('§11 npm start: one gateway per state folder', () => {
  test('a folder in use is neither shared nor cleared', async () => {
    const server = createServer().listen(0, '127.0.0.1');
    await new Promise((resolve) => server.once('listening', resolve));
    const address = server.address();
    const port = typeof address === 'object' ? (address?.port ?? 0) : 0;
    try {
      await claimStateFolder(dir, port);
      await expect(claimStateFolder(dir, IDLE_PORT)).rejects.toThrow(`in use by the gateway on port ${port}`);
      await expect(clearStateFolder(dir)).rejects.toThrow('in use');
    } finally {
      server.close();
    }
    await claimStateFolder(dir, IDLE_PORT);
  });

  test.each(['', '{', '{"pid":"x"}'])('a marker cut short (%j) claims nothing', async (text) => {
    writeFileSync(join(dir, 'turnpike-state.json'), text);
    await claimStateFolder(dir, IDLE_PORT);
  });

  test('a folder that cannot be made is told in one line', async () => {
    writeFileSync(join(dir, 'file'), '');
    await expect(claimStateFolder(join(dir, 'file'), IDLE_PORT)).rejects.toThrow(/ENOTDIR/);
  });
});

test('§2 the folder remembers the backends that were bound; one that was never claimed says nothing', async () => {
  expect(readBoundBackends(dir)).toBe(null);
  await claimStateFolder(dir, IDLE_PORT, ['DEMO', 'UPSTREAM_1']);
  expect(readBoundBackends(dir)).toEqual(['DEMO', 'UPSTREAM_1']);
});
