// The whole Worker inside workerd, with real KV, Durable Object, D1 and service binding: keys, limits, answers and
// receipts of chat completions. Process tests cover sockets; pure rooms have their own.

import { env } from 'cloudflare:workers';
import { reset, runDurableObjectAlarm } from 'cloudflare:test';
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import {
  addKey,
  chat,
  get,
  hash,
  post,
  prepare,
  readError,
  readEvents,
  readReceipt,
  readRecorded,
} from './fixtures.ts';

beforeAll(prepare);
afterAll(reset);

const ENVELOPE = ['code', 'message', 'param', 'type'];

describe('§1 a chat completion end to end', () => {
  it('§4 a JSON answer in normal form, with limits in the headers and a receipt', async () => {
    const token = await addKey('plain');
    const response = await post(token, chat());
    expect(response.status).toBe(200);
    expect(response.headers.get('x-request-id')).toMatch(/^req_[0-9a-z]{26}$/);
    expect(response.headers.get('x-ratelimit-limit-requests')).toBe('600');
    expect(response.headers.get('x-ratelimit-remaining-requests')).toBe('599');
    expect(await response.json()).toEqual({
      id: 'chatcmpl-engine',
      object: 'chat.completion',
      created: 1789516800,
      model: 'test-model',
      choices: [
        {
          index: 0,
          message: { role: 'assistant', content: 'Hi', refusal: null },
          logprobs: null,
          finish_reason: 'stop',
        },
      ],
      usage: { prompt_tokens: 3, completion_tokens: 2, total_tokens: 5 },
    });
    const receipt = await readReceipt(token, response);
    expect(receipt).toMatchObject({
      object: 'receipt',
      workspace: 'ws-plain',
      key: 'plain',
      requested_model: 'test-model',
      upstream_model: 'engine-model',
      served_model: 'engine-model',
      backend: 'UPSTREAM_1',
      attempts: 1,
      stream: false,
      status: 'completed',
      http_status: 200,
      finish_reason: 'stop',
      usage_source: 'engine',
      usage: { input_tokens: 3, output_tokens: 2 },
      cost_usd: '0.000001650',
    });
  });

  it('§7 a stream: role once, text, finish, one usage chunk, [DONE]; usage although the client did not ask', async () => {
    const token = await addKey('streaming');
    const response = await post(token, chat({ stream: true }));
    expect(response.headers.get('content-type')).toBe('text/event-stream; charset=utf-8');
    const events = await readEvents(response);
    expect(events.at(-1)).toBe('[DONE]');
    const chunks = events.slice(0, -1).map((event): Record<string, unknown> => JSON.parse(event));
    expect(chunks.map((chunk) => chunk['choices'])).toEqual([
      [{ index: 0, delta: { role: 'assistant', content: '' }, finish_reason: null }],
      [{ index: 0, delta: { content: 'Hi' }, finish_reason: null }],
      [{ index: 0, delta: {}, finish_reason: 'stop' }],
      [],
    ]);
    expect(chunks.at(-1)?.['usage']).toEqual({ prompt_tokens: 3, completion_tokens: 2, total_tokens: 5 });
    const identities = chunks.map(({ id, created, model }) => JSON.stringify([id, created, model]));
    expect(new Set(identities).size).toBe(1);
    const recorded = await readRecorded(response);
    expect(JSON.parse(recorded?.text ?? '')['stream_options']).toEqual({
      include_usage: true,
      continuous_usage_stats: true,
    });
    expect(await readReceipt(token, response)).toMatchObject({ status: 'completed', stream: true, attempts: 1 });
  });

  it('§4 usage on request only: not asked for, not shown; the receipt has it', async () => {
    const token = await addKey('on-request');
    const silent = await post(token, chat({ model: 'on-request', stream: true }));
    expect((await readEvents(silent)).some((event) => event.includes('"usage"'))).toBe(false);
    expect(await readReceipt(token, silent)).toMatchObject({ usage: { output_tokens: 2 } });
    const asked = await post(
      token,
      chat({ model: 'on-request', stream: true, stream_options: { include_usage: true } }),
    );
    expect((await readEvents(asked)).filter((event) => event.includes('"usage"'))).toHaveLength(1);
  });

  it('§2 alias, other case and revision lead to the same model; the answer says what was sent', async () => {
    const token = await addKey('names', { models: ['test-model'] });
    for (const [sent, upstream, revision] of [
      ['test-alias', 'engine-model', null],
      ['TEST-Model', 'engine-model', null],
      ['test-model@2026-11-01', 'engine-model-2026-11-01', '2026-11-01'],
    ] as const) {
      const response = await post(token, chat({ model: sent }));
      expect(await response.json()).toMatchObject({ model: sent });
      const receipt = await readReceipt(token, response);
      expect(receipt).toMatchObject({ requested_model: sent, upstream_model: upstream, revision });
    }
  });

  it('§9 the receipt is there from the moment the id was returned, mid-stream too', async () => {
    const token = await addKey('midstream');
    const script = {
      stream: [
        { json: { choices: [{ index: 0, delta: { content: 'a' }, finish_reason: null }] } },
        { wait: 1500, json: { choices: [{ index: 0, delta: {}, finish_reason: 'stop' }] } },
        { data: '[DONE]' },
      ],
    };
    const response = await post(token, chat({ stream: true }, script));
    expect(await readReceipt(token, response, 'in_progress')).toMatchObject({ status: 'in_progress', ended_at: null });
    await response.text();
    expect(await readReceipt(token, response)).toMatchObject({ status: 'completed', usage_source: 'estimated' });
  });

  it('§9 receipts reach D1 with the columns of the receipt, once', async () => {
    const token = await addKey('recorded');
    const response = await post(token, chat());
    await response.text();
    await readReceipt(token, response);
    const stub = env.LEDGER.getByName('ws-recorded');
    await vi.waitUntil(() => runDurableObjectAlarm(stub));
    const { results } = await env.DB.prepare('SELECT * FROM receipts WHERE workspace = ?').bind('ws-recorded').all();
    expect(results).toHaveLength(1);
    expect(results[0]).toMatchObject({
      id: response.headers.get('x-request-id'),
      rev: 1,
      status: 'completed',
      stream: 0,
      input_tokens: 3,
      output_tokens: 2,
      cost_nano_usd: 1650,
      rates: '{"input":"0.15","cached_input":"0.075","cache_write":"0.15","output":"0.60"}',
    });
  });

  it('§9 another key sees a receipt only with receipts:read; another workspace never', async () => {
    const token = await addKey('owner', { workspace: 'ws-shared' });
    const reader = await addKey('reader', { workspace: 'ws-shared', scopes: ['receipts:read'] });
    const other = await addKey('other', { workspace: 'ws-shared' });
    const stranger = await addKey('stranger', { scopes: ['receipts:read'] });
    const response = await post(token, chat());
    await readReceipt(token, response);
    const path = `/v1/receipts/${response.headers.get('x-request-id')}`;
    const statuses = await Promise.all(
      [token, reader, other, stranger].map(async (who) => (await get(who, path)).status),
    );
    expect(statuses).toEqual([200, 200, 404, 404]);
    const late = await get(token, '/v1/receipts/req_00000000000000000000000000');
    expect((await readError(late))['code']).toBe('receipt_not_found');
  });
});

describe('§3 errors in the envelope', () => {
  it.each([
    ['broken JSON', '{"model":', 400, 'invalid_json', null],
    ['an array', '[]', 400, 'invalid_json', null],
    ['a key twice', '{"model":"test-model","mod\\u0065l":"private","messages":[]}', 400, 'invalid_json', null],
    ['no model', '{"messages":[]}', 400, 'missing_required_parameter', 'model'],
    ['a model that is no string', '{"model":1}', 400, 'invalid_type', 'model'],
    ['an unknown model', chat({ model: 'nope' }), 404, 'model_not_found', 'model'],
    ['an unknown model with a bad field', chat({ model: 'nope', temperature: 9 }), 404, 'model_not_found', 'model'],
    ['a private model of others', chat({ model: 'private' }), 404, 'model_not_found', 'model'],
    ['an unknown revision', chat({ model: 'test-model@1999' }), 404, 'model_not_found', 'model'],
    ['a damaged catalog entry', chat({ model: 'broken' }), 503, 'catalog_unavailable', null],
    ['a model without this endpoint', chat({ model: 'completions-only' }), 400, 'unsupported_value', 'model'],
    ['no messages', '{"model":"test-model"}', 400, 'missing_required_parameter', 'messages'],
    ['a wrong type', chat({ temperature: 'hot' }), 400, 'invalid_type', 'temperature'],
    ['out of range', chat({ max_tokens: 0 }), 400, 'integer_below_min_value', 'max_tokens'],
    ['a bad role', chat({ messages: [{ role: 'king', content: '' }] }), 400, 'invalid_value', 'messages[0].role'],
    ['more choices than allowed', chat({ n: 2 }), 400, 'unsupported_value', 'n'],
  ])('§3 %s', async (_name, body, status, code, param) => {
    const token = await addKey('errors', {}, {});
    const response = await post(token, body);
    const error = await readError(response);
    expect([response.status, error['code'], error['param']]).toEqual([status, code, param]);
    expect(Object.keys(error).toSorted()).toEqual(ENVELOPE);
    expect(response.headers.get('x-request-id')).toMatch(/^req_/);
    expect(response.headers.get('access-control-allow-origin')).toBe('*');
  });

  it('§3 a body over 5 MiB is refused with and without content-length, exactly 5 MiB passes', async () => {
    const token = await addKey('large', {}, { limits: { tpm: null } });
    const sized = (bytes: number): string => {
      const empty = chat({ messages: [{ role: 'user', content: '' }] });
      return chat({ messages: [{ role: 'user', content: 'x'.repeat(bytes - empty.length) }] });
    };
    const limit = 5 * 1024 * 1024;
    expect((await post(token, sized(limit).replace('test-model', 'on-request'))).status).toBe(200);
    expect((await post(token, sized(limit + 1))).status).toBe(413);
    const chunked = new Blob([sized(limit + 1)]).stream();
    const response = await post(token, chunked);
    expect([response.status, (await readError(response))['code']]).toEqual([413, 'request_too_large']);
  });

  it('§3 content types and encodings', async () => {
    const token = await addKey('types');
    const text = await post(token, chat(), { 'content-type': 'text/plain' });
    expect([text.status, (await readError(text))['code']]).toEqual([415, 'unsupported_content_type']);
    expect((await post(token, chat(), { 'content-type': 'application/json; charset=utf-8' })).status).toBe(200);
    expect((await post(token, chat(), { 'content-type': 'application/vnd.api+json' })).status).toBe(200);
    const brotli = await post(token, chat(), { 'content-encoding': 'br' });
    expect([brotli.status, (await readError(brotli))['code']]).toEqual([415, 'unsupported_content_encoding']);
    const zip = new Blob([chat()]).stream().pipeThrough(new CompressionStream('gzip'));
    expect((await post(token, zip, { 'content-encoding': 'gzip' })).status).toBe(200);
    const bomb = new Blob(['x'.repeat(4_500_000)]).stream().pipeThrough(new CompressionStream('gzip'));
    expect((await post(token, bomb, { 'content-encoding': 'gzip' })).status).toBe(413);
  });

  it('§1 method, route and preflight come before the key', async () => {
    const wrong = await get(null, '/v1/chat/completions');
    expect([wrong.status, wrong.headers.get('allow')]).toEqual([405, 'POST, OPTIONS']);
    expect((await readError(await get(null, '/v1/nope')))['code']).toBe('unknown_url');
    const preflight = await post(null, '', {}, '/v1/nope');
    expect(preflight.status).toBe(404);
    expect(await (await get(null, '/health')).json()).toEqual({ status: 'ok' });
  });
});

describe('§2 keys in KV', () => {
  it('§3 missing, malformed, unknown, wrong, expired, disabled: one and the same 401', async () => {
    const token = await addKey('good');
    const expired = await addKey('expired', { expires_at: '2020-01-01T00:00:00Z' });
    const disabled = await addKey('disabled', { disabled: true });
    const closed = await addKey('closed', {}, { disabled: true });
    const typo = `${token.slice(0, -1)}1`;
    for (const bad of [null, 'tp_', 'sk-123', token.replace('good', 'nobody'), typo, expired, disabled, closed]) {
      const response = await post(bad, chat());
      expect([response.status, (await readError(response))['code']]).toEqual([401, 'invalid_api_key']);
      expect(response.headers.get('www-authenticate')).toBe('Bearer');
    }
  });

  it('§2 bad keys from one address are damped; good ones from there, and bad ones from elsewhere, are not', async () => {
    const token = await addKey('damped');
    const from = (address: string) => ({ 'cf-connecting-ip': address });
    const statuses: number[] = [];
    for (let tries = 0; tries < 7; tries += 1) statuses.push((await post('tp_bad', chat(), from('192.0.2.1'))).status);
    expect(statuses).toEqual([401, 401, 401, 401, 401, 429, 429]);
    expect((await post(token, chat(), from('192.0.2.1'))).status).toBe(200);
    expect((await post('tp_bad', chat(), from('192.0.2.2'))).status).toBe(401);
  });

  it('§2 a rotation keeps the old secret until its grace ends', async () => {
    const token = await addKey('rotated');
    const fresh = `${token.slice(0, -1)}4`;
    const entry = async (ends: string): Promise<string> =>
      JSON.stringify({
        workspace: 'ws-rotated',
        hash: await hash(fresh),
        previous: { hash: await hash(token), expires_at: ends },
      });
    await env.KEYS.put('key:rotated', await entry('2099-01-01T00:00:00Z'));
    expect([(await post(token, chat())).status, (await post(fresh, chat())).status]).toEqual([200, 200]);
    const ended = token.replace('rotated', 'rotated2');
    const freshEnded = fresh.replace('rotated', 'rotated2');
    await env.KEYS.put(
      'key:rotated2',
      JSON.stringify({
        workspace: 'ws-rotated',
        hash: await hash(freshEnded),
        previous: { hash: await hash(ended), expires_at: '2020-01-01T00:00:00Z' },
      }),
    );
    expect([(await post(ended, chat())).status, (await post(freshEnded, chat())).status]).toEqual([401, 200]);
  });

  it('§3 a scope that is missing: 403', async () => {
    const token = await addKey('reads', { scopes: ['models:read'] });
    const response = await post(token, chat());
    expect([response.status, (await readError(response))['code']]).toEqual([403, 'insufficient_scope']);
    expect((await get(token, '/v1/models')).status).toBe(200);
  });

  it.each([
    ['not JSON', '{"workspace":', '{}'],
    ['no hash', '{"workspace":"ws-damaged"}', '{}'],
    ['a workspace that is missing', null, null],
    ['a damaged workspace', null, '{"limits":{"rpm":"many"}}'],
    ['a workspace billed in a way that is unknown', null, '{"billing":"barter"}'],
  ])('§2 a damaged entry is 503 and never admitted: %s', async (name, entry, workspace) => {
    const id = `damaged-${name.length}`;
    const token = `tp_${id}_workerd-test-secret-not-for-use-anywhere-00`;
    const sound = JSON.stringify({ workspace: `ws-${id}`, hash: await hash(token) });
    await env.KEYS.put(`key:${id}`, entry ?? sound);
    if (workspace !== null) await env.KEYS.put(`workspace:ws-${id}`, workspace);
    const response = await post(token, chat());
    expect([response.status, (await readError(response))['code']]).toEqual([503, 'auth_unavailable']);
    expect(response.headers.get('retry-after')).toBe('1');
    expect(response.headers.get('x-should-retry')).toBe('true');
  });
});

describe('§5 limits in the Durable Object', () => {
  it('§5 the request bucket: exactly its capacity is admitted under parallel calls, the rest is 429', async () => {
    const token = await addKey('rpm', {}, { limits: { rpm: 5 } });
    const responses = await Promise.all(Array.from({ length: 20 }, () => post(token, chat())));
    const statuses = responses.map(({ status }) => status);
    expect(statuses.filter((status) => status === 200)).toHaveLength(5);
    const refused = responses.find(({ status }) => status === 429);
    expect(refused?.headers.get('x-ratelimit-limit-requests')).toBe('5');
    expect(refused?.headers.get('x-ratelimit-remaining-requests')).toBe('0');
    expect(Number(refused?.headers.get('retry-after'))).toBeGreaterThanOrEqual(1);
    expect(refused?.headers.get('x-should-retry')).toBe('true');
    const error = refused === undefined ? {} : await readError(refused);
    expect(error).toMatchObject({ type: 'requests', code: 'rate_limit_exceeded' });
    expect(String(error['message'])).toMatch(/this workspace on requests per minute: Limit 5, Used 5, Requested 1/);
  });

  it('§5 the token bucket: the reservation is replaced by what was used', async () => {
    const token = await addKey('tpm', {}, { limits: { tpm: 150 } });
    const first = await post(token, chat({ max_tokens: 100 }));
    expect(first.status).toBe(200);
    await readReceipt(token, first);
    const second = await post(token, chat({ max_tokens: 100 }));
    expect(second.status).toBe(200);
    expect(Number(second.headers.get('x-ratelimit-remaining-tokens'))).toBeLessThan(50);
    const large = await post(token, chat({ max_tokens: 500 }));
    expect([large.status, large.headers.get('x-should-retry')]).toEqual([429, 'false']);
    expect(await readError(large)).toMatchObject({ type: 'tokens', code: 'rate_limit_exceeded' });
  });

  it('§5 a key with limits of its own is held to them, and refusals name the key', async () => {
    const token = await addKey('keylimit', { limits: { rpm: 1 } });
    expect((await post(token, chat())).status).toBe(200);
    const refused = await post(token, chat());
    expect(String((await readError(refused))['message'])).toContain('this key on requests per minute');
  });

  it('§5 in flight: a stream holds its slot until it ends', async () => {
    const token = await addKey('slots', {}, { limits: { concurrency: 1 } });
    const script = {
      stream: [
        { json: { choices: [{ index: 0, delta: { content: 'a' }, finish_reason: null }] } },
        { wait: 400, json: { choices: [{ index: 0, delta: {}, finish_reason: 'stop' }] } },
        { data: '[DONE]' },
      ],
    };
    const stream = await post(token, chat({ stream: true }, script));
    const refused = await post(token, chat());
    expect(refused.status).toBe(429);
    expect(await readError(refused)).toMatchObject({ type: 'requests', code: 'concurrency_limit_exceeded' });
    await stream.text();
    await readReceipt(token, stream);
    expect((await post(token, chat())).status).toBe(200);
  });

  it('§9 a refused request has no receipt', async () => {
    const token = await addKey('norecord', {}, { limits: { rpm: 1 } });
    await (await post(token, chat())).text();
    const refused = await post(token, chat());
    expect(refused.status).toBe(429);
    expect((await get(token, `/v1/receipts/${refused.headers.get('x-request-id')}`)).status).toBe(404);
  });
});

describe('§2 revocation', () => {
  const revoke = async (id: string): Promise<void> => {
    await env.DB.prepare('INSERT INTO revoked_keys (key_id) VALUES (?)').bind(id).run();
  };

  it('§2 a row in revoked_keys stops a key at the ledger; taking it out lets it in again', async () => {
    const token = await addKey('revoked');
    await revoke('revoked');
    const response = await post(token, chat());
    expect([response.status, (await readError(response))['code']]).toEqual([401, 'invalid_api_key']);
    const other = await addKey('revoked-other', { workspace: 'ws-revoked', scopes: ['receipts:read'] });
    expect((await get(other, `/v1/receipts/${response.headers.get('x-request-id')}`)).status).toBe(404);
  });

  it.each([
    '/v1/models',
    '/v1/models/test-model',
    '/v1/receipts',
    '/v1/receipts/req_x',
    '/v1/credits',
    '/v1/usage?from=2026-12-01&to=2026-12-02',
  ])('§2 a row in revoked_keys ends reads too: %s', async (path) => {
    const id = `reader-${path.replaceAll(/[^a-z]/g, '-')}`;
    const token = await addKey(id, { scopes: ['models:read', 'receipts:read'] });
    await revoke(id);
    const response = await get(token, path);
    expect([response.status, (await readError(response))['code']]).toEqual([401, 'invalid_api_key']);
  });

  it('§2 a key that reads while it is revoked is refused within ten seconds', async () => {
    const token = await addKey('reads-on', { scopes: ['models:read'] });
    expect((await get(token, '/v1/models')).status).toBe(200);
    await revoke('reads-on');
    const read = async (): Promise<number> => (await get(token, '/v1/models')).status;
    await expect.poll(read, { timeout: 10_000, interval: 500 }).toBe(401);
  }, 15_000);

  it('§2 a stream under way is stopped within ten seconds: error, [DONE], a failed receipt', async () => {
    const token = await addKey('stopped');
    const step = { json: { choices: [{ index: 0, delta: { content: 'a' }, finish_reason: null }] }, wait: 200 };
    const response = await post(token, chat({ stream: true }, { stream: Array.from({ length: 100 }, () => step) }));
    await revoke('stopped');
    const startMs = Date.now();
    const events = await readEvents(response);
    expect(Date.now() - startMs).toBeLessThan(10_000);
    expect(events.at(-1)).toBe('[DONE]');
    expect(JSON.parse(events.at(-2) ?? '')).toMatchObject({ error: { type: 'server_error', code: 'request_stopped' } });
    expect((await readRecorded(response))?.aborted).toBe(true);
    const reader = await addKey('stopped-reader', { workspace: 'ws-stopped', scopes: ['receipts:read'] });
    const receipt = await readReceipt(reader, response);
    expect(receipt).toMatchObject({ status: 'failed', http_status: 200, error_code: 'request_stopped' });
  }, 15_000);
});

describe('§1 models', () => {
  it('§2 only what the key may call, with what each can do', async () => {
    const token = await addKey('lister', { models: ['test-model', 'private'] });
    const { data } = await (await get(token, '/v1/models')).json<{ data: Record<string, unknown>[] }>();
    expect(data.map((model) => model['id'])).toEqual(['test-model']);
    expect(data[0]).toMatchObject({ object: 'model', owned_by: 'acme', context_length: 4096, aliases: ['test-alias'] });
    expect(await (await get(token, '/v1/models/test-alias')).json()).toMatchObject({ id: 'test-model' });
    expect((await get(token, '/v1/models/test-model%402026-11-01')).status).toBe(200);
    expect((await get(token, '/v1/models/private')).status).toBe(404);
  });
});
