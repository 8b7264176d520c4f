// The key store and the catalog store while KV misbehaves: what the isolate remembers, for how long, and what it asks
// KV for. The KV here is a stand-in that can fail; the same adapters run on the real one in test/cloudflare.

import { describe, expect, it } from 'vitest';
import { createKvCatalog } from '../../src/cloudflare/kv-catalog.ts';
import { createKvKeyStore } from '../../src/cloudflare/kv-key-store.ts';

type Entry = { readonly event: string } & Readonly<Record<string, unknown>>;

function createFakeKv(entries: Record<string, string>) {
  const asked: string[] = [];
  const state = { failing: false, asked, entries };
  const kv = {
    async get(name: string): Promise<string | null> {
      asked.push(name);
      if (state.failing) throw new Error('KV is down');
      return state.entries[name] ?? null;
    },
  };
  return { kv, state };
}

const HASH = `sha256:${'0'.repeat(64)}`;
const SOUND = { 'key:a': JSON.stringify({ workspace: 'w', hash: HASH }), 'workspace:w': '{}' };

function openKeys(entries: Record<string, string>) {
  const { kv, state } = createFakeKv(entries);
  const clock = { now: 0 };
  const log: Entry[] = [];
  const store = createKvKeyStore(
    kv,
    30_000,
    () => clock.now,
    (entry) => log.push(entry),
  );
  return { store, state, clock, log };
}

describe('§2 keys', () => {
  it('§2 a record is asked for once in 30 s', async () => {
    const { store, state, clock } = openKeys(SOUND);
    await store.find('a');
    clock.now = 29_999;
    await store.find('a');
    expect(state.asked).toEqual(['key:a', 'workspace:w']);
    clock.now = 30_000;
    await store.find('a');
    expect(state.asked).toHaveLength(4);
  });

  it('§2 when KV fails, a record known for less than five minutes still serves; then 503', async () => {
    const { store, state, clock, log } = openKeys(SOUND);
    await store.find('a');
    state.failing = true;
    clock.now = 299_999;
    expect(await store.find('a')).toMatchObject({ ok: true, value: { id: 'a' } });
    clock.now = 300_000;
    expect(await store.find('a')).toEqual({ ok: false, error: { kind: 'auth_unavailable' } });
    expect(log.every((entry) => entry.event === 'auth_unavailable' && entry['key'] === 'a')).toBe(true);
    state.failing = false;
    expect(await store.find('a')).toMatchObject({ ok: true, value: { id: 'a' } });
  });

  it('§2 an unknown key while KV fails is 503, never admitted', async () => {
    const { store, state } = openKeys(SOUND);
    state.failing = true;
    expect(await store.find('a')).toEqual({ ok: false, error: { kind: 'auth_unavailable' } });
  });

  it('§2 an entry that was damaged after it was known is 503 at once: the fault is the operator’s to see', async () => {
    const { store, state, clock, log } = openKeys({ ...SOUND });
    await store.find('a');
    state.entries['key:a'] = '{"workspace":';
    clock.now = 30_000;
    expect(await store.find('a')).toEqual({ ok: false, error: { kind: 'auth_unavailable' } });
    expect(log).toEqual([{ event: 'auth_unavailable', key: 'a', entry: 'key:a', fault: 'not JSON' }]);
  });

  it('§2 an unknown id is remembered for 30 s, at most a thousand of them', async () => {
    const { store, state, clock } = openKeys(SOUND);
    for (let round = 0; round < 3; round += 1) await store.find('nobody');
    expect(state.asked).toEqual(['key:nobody']);
    for (let index = 0; index < 1000; index += 1) await store.find(`flood-${index}`);
    expect(state.asked).toHaveLength(1001);
    await store.find('flood-999');
    expect(state.asked).toHaveLength(1001);
    await store.find('nobody');
    expect(state.asked).toHaveLength(1002);
    clock.now = 30_001;
    await store.find('flood-999');
    expect(state.asked).toHaveLength(1003);
  });

  it('§2 a key that was deleted is gone when its record is read again', async () => {
    const { store, state, clock } = openKeys({ ...SOUND });
    await store.find('a');
    delete state.entries['key:a'];
    clock.now = 30_000;
    expect(await store.find('a')).toEqual({ ok: true, value: null });
    state.failing = true;
    clock.now = 60_001;
    expect(await store.find('a')).toEqual({ ok: false, error: { kind: 'auth_unavailable' } });
  });
});

function openCatalog(entries: Record<string, string>) {
  const { kv, state } = createFakeKv(entries);
  const clock = { now: 0 };
  const log: Entry[] = [];
  const store = createKvCatalog(
    kv,
    new Set(['B']),
    30_000,
    () => clock.now,
    (entry) => log.push(entry),
  );
  return { store, state, clock, log };
}

const GOOD = JSON.stringify({
  version: 1,
  models: { good: { backends: [{ binding: 'B', upstream_model: 'm', engine: 'vllm' }] }, bad: { backends: [] } },
});

describe('§2 the catalog', () => {
  it('§2 one bad model is named in the log once, the others serve', async () => {
    const { store, clock, log } = openCatalog({ catalog: GOOD });
    const first = await store.read();
    expect(first.ok && first.value.models.map(({ id }) => id)).toEqual(['good']);
    clock.now = 30_000;
    await store.read();
    expect(log.map((entry) => entry['model'])).toEqual(['bad']);
  });

  it('§2 text that does not parse: the isolate’s last good document', async () => {
    const { store, state, clock } = openCatalog({ catalog: GOOD });
    await store.read();
    for (const text of ['{', '{"version":2,"models":{}}']) {
      state.entries['catalog'] = text;
      clock.now += 30_000;
      const read = await store.read();
      expect(read.ok && read.value.models.map(({ id }) => id)).toEqual(['good']);
    }
  });

  it('§2 without a last good one in the isolate: catalog:last-good, else 503', async () => {
    const saved = openCatalog({ catalog: '{', 'catalog:last-good': GOOD });
    expect((await saved.store.read()).ok).toBe(true);
    const nothing = openCatalog({ catalog: '{' });
    expect(await nothing.store.read()).toEqual({ ok: false, error: { kind: 'catalog_unavailable' } });
  });

  it('§2 KV failing: the last good document serves, and a fresh isolate has none', async () => {
    const { store, state, clock } = openCatalog({ catalog: GOOD });
    await store.read();
    state.failing = true;
    clock.now = 30_000;
    expect((await store.read()).ok).toBe(true);
    const fresh = openCatalog({ catalog: GOOD });
    fresh.state.failing = true;
    expect((await fresh.store.read()).ok).toBe(false);
    fresh.state.failing = false;
    expect((await fresh.store.read()).ok).toBe(true);
  });
});
