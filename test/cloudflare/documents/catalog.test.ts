// The catalog from the caller's side (SPEC §2): ids of every spelling, aliases, pins, clashes, bad entries beside good
// ones, and the shape of /v1/models.

import { reset } from 'cloudflare:test';
import { exports } from 'cloudflare:workers';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { addKey, get, prepare, readError, UNLIMITED } from '../fixtures.ts';
import { call, type Fields } from './call.ts';

beforeAll(prepare);
afterAll(reset);

/** Reads one model with a key of its own: reads are limited per key. */
async function read(path: string, key: Fields = {}): Promise<Response> {
  keys += 1;
  return get(await addKey(`catalog-${keys}`, key, UNLIMITED), path);
}
let keys = 0;

describe('§1 GET /v1/models/{id}', () => {
  it.each([
    ['/v1/models/test-model', 'test-model'],
    ['/v1/models/org/Model-7B', 'org/Model-7B'],
    ['/v1/models/org%2FModel-7B', 'org/Model-7B'],
    ['/v1/models/org%2fModel-7B', 'org/Model-7B'],
    ['/v1/models/ORG/model-7b', 'org/Model-7B'],
    ['/v1/models/org/alias/of%20it', 'org/Model-7B'],
    ['/v1/models/org/alias/of it', 'org/Model-7B'],
    ['/v1/models/model-7b-2026-11-30', 'org/Model-7B'],
    ['/v1/models/name with spaces', 'name with spaces'],
    ['/v1/models/name%20with%20spaces', 'name with spaces'],
    ['/v1/models/at@home', 'at@home'],
    ['/v1/models/at%40home', 'at@home'],
    ['/v1/models/at@home@r/1', 'at@home'],
    ['/v1/models/at%40home%40r%2F1', 'at@home'],
    ['/v1/models/test-model@2026-11-01', 'test-model'],
    ['/v1/models/test-alias%402026-11-01', 'test-model'],
    ['/v1/models/ünï-码/🙂', 'ünï-码/🙂'],
    [`/v1/models/${encodeURIComponent('ünï-码/🙂')}`, 'ünï-码/🙂'],
    ['/v1/models/test%2Dmodel', 'test-model'],
    ['/v1/models/test-model?x=1', 'test-model'],
  ])('§1 %s is %s', async (path, id) => {
    const response = await read(path);
    expect(response.status).toBe(200);
    expect(await response.json()).toMatchObject({ id, object: 'model' });
    expect(response.headers.get('x-request-id')).toMatch(/^req_/);
  });

  it.each([
    '/v1/models/nope',
    '/v1/models/org',
    '/v1/models/Model-7B',
    '/v1/models/org%252FModel-7B',
    '/v1/models/name+with+spaces',
    '/v1/models/test-model@nope',
    '/v1/models/at',
    '/v1/models/at@home@',
    '/v1/models/@',
    '/v1/models/private',
    '/v1/models/100%',
    '/v1/models/__proto__',
    '/v1/models/test-model@constructor',
  ])('§2 %s: one and the same 404', async (path) => {
    const response = await read(path);
    expect(response.status).toBe(404);
    expect(await readError(response)).toMatchObject({
      type: 'invalid_request_error',
      code: 'model_not_found',
      param: 'model',
    });
  });

  it('§2 of a name that is no name the error repeats no more than its head', async () => {
    const token = await addKey('catalog-long', {}, UNLIMITED);
    const { status, text } = await call(token, 'chat', { model: 'x'.repeat(1_000_000) });
    expect([status, text.length < 1000]).toEqual([404, true]);
  });

  it('§2 a private model is there for its workspace, and in its list', async () => {
    expect((await read('/v1/models/private', { workspace: 'ws-owner' })).status).toBe(200);
    const list = await (await read('/v1/models', { workspace: 'ws-owner' })).json<{ data: { id: string }[] }>();
    expect(list.data.map(({ id }) => id)).toContain('private');
  });

  it('§2 a key’s list of models holds for aliases, other cases and pins', async () => {
    const key = { models: ['org/Model-7B'] };
    for (const path of ['org/model-7b', 'model-7b-2026-11-30']) {
      expect((await read(`/v1/models/${path}`, key)).status).toBe(200);
    }
    for (const path of ['test-model', 'test-alias', 'test-model@2026-11-01']) {
      expect((await read(`/v1/models/${path}`, key)).status).toBe(404);
    }
  });

  it('§1 reading models needs a key and models:read', async () => {
    const without = await exports.default.fetch('https://turnpike.test/v1/models');
    expect([without.status, without.headers.get('www-authenticate')]).toEqual([401, 'Bearer']);
    const response = await read('/v1/models/test-model', { scopes: ['inference:write'] });
    expect([response.status, (await readError(response))['code']]).toEqual([403, 'insufficient_scope']);
  });

  it('§1 /v1/models/ without an id is no route; HEAD goes with GET', async () => {
    expect((await readError(await read('/v1/models/')))['code']).toBe('unknown_url');
    const authorization = `Bearer ${await addKey('catalog-head')}`;
    const url = 'https://turnpike.test/v1/models/org/Model-7B';
    const response = await exports.default.fetch(url, { method: 'HEAD', headers: { authorization } });
    expect([response.status, await response.text()]).toEqual([200, '']);
  });
});

describe('§2 the same names in a request', () => {
  it.each([
    ['org/Model-7B', 'engine-model'],
    ['ORG/MODEL-7b', 'engine-model'],
    ['org/alias/of it', 'engine-model'],
    ['model-7b-2026-11-30', 'engine-model'],
    ['name with spaces', 'engine-model'],
    ['at@home', 'engine-model'],
    ['AT@HOME@r/1', 'at-home-r1'],
    ['ünï-码/🙂', 'engine-model'],
    ['test-alias@2026-11-01', 'engine-model-2026-11-01'],
  ])('§2 %s goes up as %s and comes back as it was sent', async (model, upstream) => {
    const token = await addKey('catalog-calls', {}, UNLIMITED);
    for (const endpoint of ['chat', 'text', 'responses'] as const) {
      const { answer, sent } = await call(token, endpoint, { model });
      expect([answer['model'], sent?.['model']]).toEqual([model, upstream]);
    }
  });

  it.each([
    ['a clash', 'clash-one', 503],
    ['a clash, the other', 'clash-two', 503],
    ['a clash by its alias', 'clashing', 503],
    ['a clash in another case', 'CLASHING', 503],
    ['an engine nobody knows', 'misspelt', 503],
    ['by its alias', 'misspelt-alias', 503],
    ['a pin of it', 'misspelt@1', 503],
    ['a binding that is absent', 'broken', 503],
    ['a good model beside them', 'test-model', 200],
  ])('§2 %s: %s answers %i', async (_name, model, status) => {
    const token = await addKey('catalog-faults', {}, UNLIMITED);
    const called = await call(token, 'chat', { model });
    const shown = await read(`/v1/models/${model}`);
    expect([called.status, shown.status]).toEqual([status, status]);
    if (status === 200) return;
    expect(called.error).toMatchObject({ type: 'server_error', code: 'catalog_unavailable', param: null });
    expect(called.headers.get('retry-after')).toBe('1');
    expect(called.text).not.toMatch(/UPSTREAM|vlllm|clash/);
  });
});

describe('§2 the shape of /v1/models', () => {
  it('§2 a list of what this key may call; faulty and private entries are not in it', async () => {
    const list = await (await read('/v1/models')).json<{ object: string; data: { id: string; object: string }[] }>();
    expect(list.object).toBe('list');
    expect(list.data.every(({ object }) => object === 'model')).toBe(true);
    const ids = list.data.map(({ id }) => id);
    for (const id of ['test-model', 'org/Model-7B', 'at@home', 'ünï-码/🙂', 'support-agent']) expect(ids).toContain(id);
    for (const id of ['private', 'broken', 'misspelt', 'clash-one', 'clash-two']) expect(ids).not.toContain(id);
    expect(new Set(ids).size).toBe(ids.length);
  });

  it('§2 an entry with everything', async () => {
    expect(await (await read('/v1/models/full-alias')).json()).toEqual({
      id: 'full-entry',
      object: 'model',
      created: 1789516800,
      owned_by: 'acme',
      aliases: ['full-alias'],
      context_length: 32768,
      max_output_tokens: 8192,
      supported_endpoints: ['/v1/chat/completions', '/v1/completions'],
      tool_calling: { supported: true, required: true, named: true, parallel: true, strict: false },
      response_formats: { '/v1/chat/completions': ['text', 'json_object'] },
      thinking_toggle: true,
      reasoning_levels: ['none', 'high'],
      images: false,
      max_n: 8,
      revisions: ['2026-11-01'],
      pricing: { input: '0.15', cached_input: '0.075', cache_write: '0.15', output: '0.60' },
    });
  });

  it('§2 an entry with backends alone: every field is there', async () => {
    expect(await (await read('/v1/models/unlimited-model')).json()).toEqual({
      id: 'unlimited-model',
      object: 'model',
      created: 0,
      owned_by: 'turnpike',
      aliases: [],
      context_length: null,
      max_output_tokens: null,
      supported_endpoints: ['/v1/chat/completions', '/v1/completions', '/v1/responses'],
      tool_calling: { supported: false, required: false, named: false, parallel: false, strict: false },
      response_formats: { '/v1/chat/completions': ['text'], '/v1/responses': ['text'] },
      thinking_toggle: false,
      reasoning_levels: [],
      images: false,
      max_n: 1,
      revisions: [],
      pricing: null,
    });
  });

  it('§2 the list and the single entry say the same', async () => {
    const { data } = await (await read('/v1/models')).json<{ data: { id: string }[] }>();
    const listed = data.find(({ id }) => id === 'full-entry');
    expect(await (await read('/v1/models/full-entry')).json()).toEqual(listed);
  });
});
