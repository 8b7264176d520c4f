// The bridge as a function of (request, env, fetch): what goes to the inference server, what never does, what comes back.
// The upstream is a script that records each call; no network.

import { describe, expect, it } from 'vitest';
import { forwardRequest } from '../../../src/backends/bridge/forward-request.ts';
import type { BridgeEnv } from '../../../src/backends/bridge/parse-bridge-config.ts';

interface Call {
  readonly url: string;
  readonly init: RequestInit;
}

const env: BridgeEnv = { BASE_URL: 'http://10.0.0.5:8000/v1' };

function createUpstream(answer: () => Response = () => new Response('{}')) {
  const calls: Call[] = [];
  const send = (url: string, init: RequestInit): Promise<Response> => {
    calls.push({ url, init });
    return Promise.resolve(answer());
  };
  return { calls, send };
}

function post(path: string, headers: Record<string, string> = {}): Request {
  return new Request(`http://bridge${path}`, { method: 'POST', body: '{"model":"m"}', headers });
}

describe('§6 bridge: calls only the inference paths and /v1/models', () => {
  it.each([
    [post('/v1/chat/completions'), 'http://10.0.0.5:8000/v1/chat/completions'],
    [post('/v1/completions'), 'http://10.0.0.5:8000/v1/completions'],
    [post('/v1/responses'), 'http://10.0.0.5:8000/v1/responses'],
    [new Request('http://bridge/v1/models'), 'http://10.0.0.5:8000/v1/models'],
    [post('/v1/chat/completions?x=1&url=http://evil/#frag'), 'http://10.0.0.5:8000/v1/chat/completions'],
    [post('/v1/metrics/../completions'), 'http://10.0.0.5:8000/v1/completions'],
    [post('/v1/%2e%2e/v1/completions'), 'http://10.0.0.5:8000/v1/completions'],
  ])('$method $url goes to the exact path, without the query', async (request, expected) => {
    const { calls, send } = createUpstream();
    expect((await forwardRequest(request, env, send)).status).toBe(200);
    expect(calls.map((call) => call.url)).toEqual([expected]);
    expect(calls[0]?.init.method).toBe(request.method);
  });

  const refusedPaths = [
    '/',
    '/v1',
    '/metrics',
    '/v1/embeddings',
    '/v1/chat/completions/',
    '//v1/chat/completions',
    '/v1//chat/completions',
    '/v1/chat%2Fcompletions',
    '/v1/chat%2fcompletions',
    '/v1/chat/completions%00',
    '/v1/chat/completions%3Fx',
    '/v1/chat/completions;x',
    '/v1/chat/completions/..',
    '/v1/chat/completions/../../load_lora_adapter',
    '/v1/chat/completions/%2e%2e/%2e%2e/tokenize',
    '/v1/chat/completions/..%2f..%2fpause',
    '/V1/chat/completions',
    '/v1/chat/Completions',
    '/v1/%63hat/completions',
    '/x/v1/chat/completions',
    '/v1/responses/resp_1',
    '/@evil.example/v1/models',
  ];
  it.each(refusedPaths)('POST %s is 404 and calls nothing', async (path) => {
    const { calls, send } = createUpstream();
    expect((await forwardRequest(post(path), env, send)).status).toBe(404);
    expect(calls).toEqual([]);
  });

  it.each([
    ['GET', '/v1/chat/completions'],
    ['GET', '/v1/responses'],
    ['PUT', '/v1/completions'],
    ['OPTIONS', '/v1/chat/completions'],
    ['HEAD', '/v1/models'],
    ['DELETE', '/v1/models'],
    ['GET', '/v1/models/some-id'],
  ])('%s %s is 404 and calls nothing', async (method, path) => {
    const { calls, send } = createUpstream();
    expect((await forwardRequest(new Request(`http://bridge${path}`, { method }), env, send)).status).toBe(404);
    expect(calls).toEqual([]);
  });
});

describe('§6 bridge: allow-listed headers go up, never Authorization, cookies, cf-*, x-forwarded-*', () => {
  const inbound = {
    'content-type': 'application/json',
    accept: 'text/event-stream',
    'x-request-id': 'req_1',
    authorization: 'Bearer tp_caller_secret',
    cookie: 'session=1',
    'cf-connecting-ip': '192.0.2.1',
    'x-forwarded-for': '192.0.2.1',
    'x-real-ip': '192.0.2.1',
    'openai-organization': 'org',
    'x-api-key': 'k',
    'accept-encoding': 'br',
  };
  const allowed = { accept: 'text/event-stream', 'content-type': 'application/json', 'x-request-id': 'req_1' };

  it.each<[string, BridgeEnv, Record<string, string>]>([
    ['without API_KEY no authorization goes up', env, allowed],
    ['with an empty API_KEY none either', { ...env, API_KEY: ' \n' }, allowed],
    ['with API_KEY only the server’s own', { ...env, API_KEY: 'srv\n' }, { ...allowed, authorization: 'Bearer srv' }],
  ])('%s', async (_title, config, expected) => {
    const { calls, send } = createUpstream();
    await forwardRequest(post('/v1/chat/completions', inbound), config, send);
    expect(Object.fromEntries(new Headers(calls[0]?.init.headers))).toEqual(expected);
    expect(JSON.stringify([...new Headers(calls[0]?.init.headers)])).not.toContain('tp_caller_secret');
  });

  it('absent headers are not invented', async () => {
    const { calls, send } = createUpstream();
    await forwardRequest(new Request('http://bridge/v1/models'), env, send);
    expect([...new Headers(calls[0]?.init.headers)]).toEqual([]);
  });
});

describe('§6 bridge: passes bytes and cancellation through', () => {
  it('hands up the request’s own body, and its own signal', async () => {
    const { calls, send } = createUpstream();
    const leaving = new AbortController();
    const request = new Request('http://bridge/v1/completions', {
      method: 'POST',
      body: '{"prompt":"é"}',
      signal: leaving.signal,
    });
    await forwardRequest(request, env, send);
    expect(calls[0]?.init.signal).toBe(request.signal);
    expect(await new Response(calls[0]?.init.body).text()).toBe('{"prompt":"é"}');
    leaving.abort();
    expect(calls[0]?.init.signal?.aborted).toBe(true);
  });

  it('returns the upstream response itself, headers and all, and does not touch its body', async () => {
    const answer = new Response('data: x\n\n', { status: 429, headers: { 'retry-after': '3', 'x-engine': 'vllm' } });
    const { send } = createUpstream(() => answer);
    const response = await forwardRequest(post('/v1/chat/completions'), env, send);
    expect(response).toBe(answer);
    expect(response.bodyUsed).toBe(false);
  });

  it('cancelling the answer cancels the upstream’s body', async () => {
    let reason: unknown;
    const body = new ReadableStream({ cancel: (given) => void (reason = given) });
    const { send } = createUpstream(() => new Response(body));
    const response = await forwardRequest(post('/v1/chat/completions'), env, send);
    await response.body?.cancel('gone');
    expect(reason).toBe('gone');
  });

  it('never follows a redirect', async () => {
    const { calls, send } = createUpstream(
      () => new Response(null, { status: 307, headers: { location: 'http://evil.example/' } }),
    );
    const response = await forwardRequest(post('/v1/chat/completions'), { ...env, API_KEY: 'srv' }, send);
    expect(calls[0]?.init.redirect).toBe('manual');
    expect(calls).toHaveLength(1);
    expect(response.status).toBe(307);
  });

  it('a failing fetch rejects through: the gateway maps it', async () => {
    const failure = new Error('Network connection lost.');
    await expect(forwardRequest(post('/v1/completions'), env, () => Promise.reject(failure))).rejects.toBe(failure);
  });
});

describe('§6 bridge: holds the server’s base URL and secret', () => {
  it.each([
    ['http://10.0.0.5:8000/v1', 'http://10.0.0.5:8000/v1/models'],
    ['http://10.0.0.5:8000/v1/', 'http://10.0.0.5:8000/v1/models'],
    ['https://gpu.example.com', 'https://gpu.example.com/models'],
    ['https://gpu.example.com//', 'https://gpu.example.com/models'],
    [' https://gpu.example.com/team/llm/v1// ', 'https://gpu.example.com/team/llm/v1/models'],
    ['http://[::1]:8080/v1?', 'http://[::1]:8080/v1/models'],
  ])('BASE_URL %s leads to %s', async (baseUrl, expected) => {
    const { calls, send } = createUpstream();
    await forwardRequest(new Request('http://bridge/v1/models'), { BASE_URL: baseUrl }, send);
    expect(calls.map((call) => call.url)).toEqual([expected]);
  });

  it.each<[string, BridgeEnv, string]>([
    ['a missing BASE_URL', {}, 'not set'],
    ['a blank BASE_URL', { BASE_URL: ' ' }, 'not set'],
    ['a BASE_URL without a scheme', { BASE_URL: 'gpu-hunter2/v1' }, 'absolute URL'],
    ['another scheme', { BASE_URL: 'file:///hunter2' }, 'http://'],
    ['a password in BASE_URL', { BASE_URL: 'http://u:hunter2@h/v1' }, 'API_KEY'],
    ['a query in BASE_URL', { BASE_URL: 'http://h/v1?key=hunter2' }, 'query'],
    ['a key no header can carry', { ...env, API_KEY: 'hunter2\nx' }, 'API_KEY'],
    ['a key outside ASCII', { ...env, API_KEY: 'hunter2–' }, 'API_KEY'],
  ])('%s answers 500, names the rule and repeats no value', async (_title, config, part) => {
    const { calls, send } = createUpstream();
    const response = await forwardRequest(post('/v1/chat/completions'), config, send);
    const text = await response.text();
    expect(response.status).toBe(500);
    expect(JSON.parse(text)).toEqual({
      error: {
        message: expect.stringContaining(part),
        type: 'server_error',
        param: null,
        code: 'bridge_misconfigured',
      },
    });
    expect(text).not.toContain('hunter2');
    expect(calls).toEqual([]);
  });
});

describe('§6 bridge: GET /health is answered here', () => {
  it('asks the listing with the server’s own key and none of the caller’s headers', async () => {
    const { calls, send } = createUpstream(() => new Response('Loading model', { status: 503 }));
    const headers = { authorization: 'Bearer tp_caller_secret', cookie: 'session=1' };
    const request = new Request('http://bridge/health?url=http://evil/', { headers });
    const response = await forwardRequest(request, { ...env, API_KEY: 'srv' }, send);
    expect(await response.json()).toMatchObject({ status: 'failing', http_status: 503 });
    expect(calls.map(({ url }) => url)).toEqual(['http://10.0.0.5:8000/v1/models']);
    expect([...new Headers(calls[0]?.init.headers)]).toEqual([['authorization', 'Bearer srv']]);
  });

  it.each(['/health/', '/v1/health', '/healthz', '/slots', '/api/ps', '/get_load', '/v1/loads'])(
    'GET %s is 404 and calls nothing: what the report asks is no route',
    async (path) => {
      const { calls, send } = createUpstream();
      expect((await forwardRequest(new Request(`http://bridge${path}`), env, send)).status).toBe(404);
      expect(calls).toEqual([]);
    },
  );
});
