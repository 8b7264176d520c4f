// The HTTP surface inside workerd: preflights, methods, encodings, sizes, and bodies made to hurt. Every answer is in the
// envelope, none is a 500, none stalls (SPEC §1, §3, §10).

import { reset } from 'cloudflare:test';
import { exports } from 'cloudflare:workers';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { addKey, chat, get, INFERENCE_PATHS, post, prepare, readError, readReceipt, readRecorded } from './fixtures.ts';

beforeAll(prepare);
afterAll(reset);

const ENDPOINTS = INFERENCE_PATHS;

async function call(method: string, path: string, headers: Record<string, string> = {}): Promise<Response> {
  return exports.default.fetch(`https://turnpike.test${path}`, { method, headers });
}

describe('§1 CORS', () => {
  it.each([...ENDPOINTS, '/v1/models', '/v1/models/x', '/v1/receipts', '/v1/receipts/req_1', '/v1/usage', '/health'])(
    '§1 a preflight of %s is answered before the key, naming authorization and the x-stainless headers asked for',
    async (path) => {
      const response = await call('OPTIONS', path, {
        origin: 'https://app.example',
        'access-control-request-method': 'POST',
        'access-control-request-headers': 'authorization, x-stainless-lang,X-Stainless-Retry-Count, x-evil',
      });
      expect(response.status).toBe(204);
      const allowed = (response.headers.get('access-control-allow-headers') ?? '').split(', ');
      for (const name of ['authorization', 'content-type', 'openai-organization', 'openai-project']) {
        expect(allowed).toContain(name);
      }
      expect(allowed).toContain('x-stainless-lang');
      expect(allowed).toContain('x-stainless-retry-count');
      expect(allowed).not.toContain('x-evil');
      expect(response.headers.get('access-control-allow-origin')).toBe('*');
      expect(response.headers.get('x-request-id')).toMatch(/^req_/);
    },
  );

  it('§1 OPTIONS on an unknown route: 404 with CORS headers', async () => {
    const response = await call('OPTIONS', '/v1/nope', { origin: 'https://app.example' });
    expect([response.status, response.headers.get('access-control-allow-origin')]).toEqual([404, '*']);
  });

  it('§1 errors can be read by a browser too: request id, hints and limits are exposed', async () => {
    const response = await post(null, chat(), { origin: 'https://app.example' });
    expect(response.status).toBe(401);
    const exposed = (response.headers.get('access-control-expose-headers') ?? '').split(', ');
    for (const name of ['x-request-id', 'retry-after', 'retry-after-ms', 'x-ratelimit-reset-tokens', 'server-timing']) {
      expect(exposed).toContain(name);
    }
  });
});

describe('§3 methods and routes', () => {
  it.each([
    ['GET', '/v1/chat/completions', 'POST, OPTIONS'],
    ['DELETE', '/v1/completions', 'POST, OPTIONS'],
    ['GET', '/v1/responses', 'POST, OPTIONS'],
    ['POST', '/v1/models', 'GET, HEAD, OPTIONS'],
    ['PUT', '/v1/models/a/b', 'GET, HEAD, OPTIONS'],
    ['POST', '/v1/receipts', 'GET, HEAD, OPTIONS'],
    ['POST', '/v1/usage', 'GET, HEAD, OPTIONS'],
    ['POST', '/v1/receipts/req_1', 'GET, HEAD, OPTIONS'],
    ['POST', '/health', 'GET, HEAD, OPTIONS'],
  ])('§3 %s %s is 405 with Allow', async (method, path, allow) => {
    const response = await call(method, path);
    expect([response.status, response.headers.get('allow')]).toEqual([405, allow]);
    expect(await readError(response)).toMatchObject({ code: 'method_not_supported', param: null });
  });

  it.each([
    '/v1/responses/resp_1',
    '/v1/responses/',
    '/',
    '/v1',
    '/v1/',
    '/v1/chat',
    '/v1/chat/completions/',
    '/v1/embeddings',
    '/v1/receipts/',
    '/v2/models',
  ])('§3 %s is 404 unknown_url', async (path) => {
    const response = await call('GET', path);
    expect(response.status).toBe(404);
    expect(await readError(response)).toMatchObject({ code: 'unknown_url', type: 'invalid_request_error' });
  });

  it('§1 HEAD goes with GET', async () => {
    const response = await call('HEAD', '/health');
    expect([response.status, await response.text()]).toEqual([200, '']);
  });

  it('§1 the request id is minted here; the client’s own goes into the receipt', async () => {
    const token = await addKey('client-id');
    const ids = { 'x-request-id': 'mine', 'x-client-request-id': 'client-7', 'idempotency-key': 'same' };
    const first = await post(token, chat(), ids);
    const second = await post(token, chat(), ids);
    expect(first.headers.get('x-request-id')).not.toBe('mine');
    expect(first.headers.get('x-request-id')).not.toBe(second.headers.get('x-request-id'));
    expect(await readReceipt(token, first)).toMatchObject({ client_request_id: 'client-7' });
  });

  it('§6 of the client’s headers none goes up but what the gateway sends itself', async () => {
    const token = await addKey('headers');
    const response = await post(token, chat(), {
      cookie: 'a=b',
      'x-forwarded-for': '1.2.3.4',
      'cf-connecting-ip': '1.2.3.4',
      'x-stainless-lang': 'js',
      'openai-organization': 'org',
    });
    const headers: Record<string, string> = (await readRecorded(response))?.headers ?? {};
    const expected = ['accept', 'content-type', 'x-request-id'];
    const runtime = ['content-length', 'host', 'cf-worker', 'accept-encoding', 'user-agent', 'connection'];
    expect(
      Object.keys(headers)
        .filter((name) => !runtime.includes(name))
        .toSorted(),
    ).toEqual(expected);
    expect(headers['x-request-id']).toBe(response.headers.get('x-request-id'));
  });
});

describe('§10 bodies made to hurt', () => {
  const encoder = new TextEncoder();
  const wrap = (value: string): string =>
    `{"model":"test-model","messages":[{"role":"user","content":"x"}],"x":${value}}`;

  it.each([
    ['100,000 nested arrays', wrap('['.repeat(100_000) + ']'.repeat(100_000)), 400],
    ['100,000 unclosed brackets', '['.repeat(100_000), 400],
    ['100,000 nested objects', wrap('{"a":'.repeat(100_000) + '1' + '}'.repeat(100_000)), 400],
    ['128 deep', wrap('['.repeat(127) + ']'.repeat(127)), 200],
    ['129 deep', wrap('['.repeat(128) + ']'.repeat(128)), 400],
    ['prototype names', wrap('{"__proto__":{"x":1},"constructor":{"prototype":1},"toString":1}'), 200],
    ['a top-level __proto__', '{"__proto__":{"model":"private"},"model":"test-model","messages":[]}', 400],
    ['escaped lone surrogates', wrap('"\\ud800"'), 200],
    ['NUL escapes', wrap('"\\u0000"'), 200],
    ['a raw NUL', '{"model":"test-model\u0000"}', 400],
    ['a number that is no number', wrap('1e400'), 200],
    ['only white space', ' \n\t ', 400],
    ['nothing', '', 400],
    ['null', 'null', 400],
    ['a string', '"x"', 400],
    ['two documents', `${chat()}${chat()}`, 400],
    ['a byte order mark', `\ufeff${chat()}`, 200],
    ['a trailing comma', '{"model":"test-model",}', 400],
    ['a huge key', `{"${'k'.repeat(100_000)}":1}`, 400],
    ['half a megabyte of backslashes', wrap(`"${'\\\\'.repeat(250_000)}"`), 200],
  ])('§10 %s', async (_name, body, status) => {
    const token = await addKey('torture', {}, { limits: { rpm: null, tpm: null } });
    const response = await post(token, body);
    expect(response.status).toBe(status);
    if (status !== 200) expect(Object.keys(await readError(response))).toHaveLength(4);
  });

  it('§10 bytes that are not UTF-8', async () => {
    const token = await addKey('latin', {}, {});
    const body = new Uint8Array([...encoder.encode('{"model":"'), 0xff, 0xfe, ...encoder.encode('"}')]);
    expect(await readError(await post(token, body))).toMatchObject({ code: 'invalid_json' });
  });

  it('§10 fifty thousand messages', async () => {
    const token = await addKey('many', {}, { limits: { tpm: null } });
    const messages = Array.from({ length: 50_000 }, () => ({ role: 'developer', content: 'x' }));
    const response = await post(token, chat({ model: 'unlimited-model', messages }));
    expect(response.status).toBe(200);
    expect((await readRecorded(response))?.text.match(/"role":"system"/g)).toHaveLength(50_000);
  });

  it('§10 a gzip bomb is dropped: decoded size capped, 100:1 after the first MiB', async () => {
    const token = await addKey('bomb');
    const zip = (bytes: number): ReadableStream<Uint8Array> => {
      const spaces = new Blob([' '.repeat(bytes)]).stream();
      return spaces.pipeThrough(new CompressionStream('gzip'));
    };
    for (const bytes of [2 * 1024 * 1024, 50 * 1024 * 1024]) {
      const response = await post(token, zip(bytes), { 'content-encoding': 'gzip' });
      expect([response.status, (await readError(response))['code']]).toEqual([413, 'request_too_large']);
    }
    const small = await post(token, zip(900_000), { 'content-encoding': 'gzip' });
    expect((await readError(small))['code']).toBe('invalid_json');
  });

  it('§3 deflate passes; a body that is not what its encoding says is an error of the request', async () => {
    const token = await addKey('encodings');
    const deflated = new Blob([chat()]).stream().pipeThrough(new CompressionStream('deflate'));
    expect((await post(token, deflated, { 'content-encoding': 'deflate' })).status).toBe(200);
    const lie = await post(token, chat(), { 'content-encoding': 'gzip' });
    expect([lie.status, (await readError(lie))['code']]).toEqual([400, 'invalid_json']);
  });

  it('§3 a key comes before the body: an unknown caller learns nothing of it', async () => {
    const response = await post(null, '{', { 'content-type': 'text/plain' });
    expect((await readError(response))['code']).toBe('invalid_api_key');
  });
});

describe('§1 reads', () => {
  it('§1 limited to 60 a minute per key', async () => {
    const token = await addKey('poller');
    const statuses: number[] = [];
    for (let index = 0; index < 61; index += 1) statuses.push((await get(token, '/v1/models')).status);
    expect(statuses.slice(0, 60).every((status) => status === 200)).toBe(true);
    expect(statuses[60]).toBe(429);
  });
});
