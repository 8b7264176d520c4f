// The bridge's report: what each engine's own words make of it, that nothing but ids and counts gets out, and that no
// engine can hold it up or flood it. A real server plays the engine.

import { createServer, type RequestListener, type Server } from 'node:http';
import { Readable } from 'node:stream';

import { afterEach, describe, expect, it } from 'vitest';
import { readGauge } from '../../../src/backends/bridge/read-gauge.ts';
import { type EngineHealth, reportHealth } from '../../../src/backends/bridge/report-health.ts';
import * as answers from './engine-answers.ts';

type Pages = Readonly<Record<string, string>>;

const LISTING = JSON.stringify({ object: 'list', data: [{ id: 'a', root: '/secret/path' }, { id: 'b' }] });
const QUIET = { status: 'ok', http_status: 200, models: ['a', 'b'], engine: null, load: null };
const servers: Server[] = [];

afterEach(() => {
  for (const server of servers.splice(0)) {
    server.closeAllConnections();
    server.close();
  }
});

async function listen(listener: RequestListener): Promise<string> {
  const server = createServer(listener);
  servers.push(server);
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const address = server.address();
  if (typeof address !== 'object' || address === null) throw new Error('the server does not listen');
  return `http://127.0.0.1:${address.port}`;
}

/** An engine with these pages beside its listing; tells what it was asked. */
async function serve(pages: Pages, listing = '/v1/models'): Promise<{ root: string; asked: string[] }> {
  const asked: string[] = [];
  const all = new Map(Object.entries({ [listing]: LISTING, ...pages }));
  const root = await listen((request, response) => {
    asked.push(`${request.method} ${request.url} ${request.headers.authorization}`);
    const page = all.get(request.url ?? '');
    response.writeHead(page === undefined ? 404 : 200).end(page ?? '{"detail":"Not Found"}');
  });
  return { root, asked };
}

function report(baseUrl: string, deadlineMs?: number): Promise<EngineHealth> {
  return reportHealth(baseUrl, new Headers({ authorization: 'Bearer srv' }), fetch, deadlineMs);
}

type Row = readonly [title: string, pages: Pages, engine: string, running: number | null, waiting: number | null];
const ENGINES: readonly Row[] = [
  ['vLLM', { '/metrics': answers.VLLM_METRICS }, 'vllm', 3, 0],
  ['vLLM, the sum of its engines', { '/metrics': answers.VLLM_METRICS_OF_TWO }, 'vllm', 15, 10],
  ['SGLang with --enable-metrics', { '/metrics': answers.SGLANG_METRICS }, 'sglang', 161, 2826],
  ['SGLang, each request once', { '/metrics': answers.SGLANG_METRICS_BY_PRIORITY }, 'sglang', 5, 4],
  ['SGLang by /v1/loads', { '/v1/loads': answers.SGLANG_LOADS }, 'sglang', 10, 7],
  ['SGLang by /get_load', { '/get_load': answers.SGLANG_OLD_LOADS }, 'sglang', 4, 2],
  ['llama.cpp with --metrics', { '/metrics': answers.LLAMACPP_METRICS }, 'llamacpp', 4, 46],
  ['llama.cpp by /slots', { '/slots': answers.LLAMACPP_SLOTS }, 'llamacpp', 2, null],
  ['TGI', { '/metrics': answers.TGI_METRICS }, 'tgi', 4, 7],
];

describe('§6 bridge: reports its engine’s load, where the engine tells it', () => {
  it.each(ENGINES)('%s', async (_title, pages, engine, running, waiting) => {
    const { root } = await serve(pages);
    const load = { running, waiting, loaded_models: null };
    expect(await report(`${root}/v1`)).toEqual({ ...QUIET, engine, load });
  });

  it('Ollama counts no requests: it tells the models in memory', async () => {
    const { root } = await serve({ '/api/ps': answers.OLLAMA_PS });
    const load = { running: null, waiting: null, loaded_models: ['llama3.2:3b'] };
    expect(await report(`${root}/v1`)).toEqual({ ...QUIET, engine: 'ollama', load });
  });

  it('an engine that tells by /metrics is asked nothing else, with its own key', async () => {
    const { root, asked } = await serve({ '/metrics': answers.VLLM_METRICS, '/slots': answers.LLAMACPP_SLOTS });
    await report(`${root}/v1`);
    expect(asked).toEqual(['GET /v1/models Bearer srv', 'GET /metrics Bearer srv']);
  });

  it.each([
    ['/v1', ''],
    ['/team/llm/v1', '/team/llm'],
    ['/team/llm', '/team/llm'],
    ['', ''],
  ])('below the base URL %s the load is asked at the server’s root %s', async (base, at) => {
    const { root } = await serve({ [`${at}/metrics`]: answers.VLLM_METRICS }, `${base}/models`);
    expect(await report(root + base)).toMatchObject({ status: 'ok', engine: 'vllm', load: { running: 3 } });
  });

  const useless: readonly (readonly [string, Pages])[] = [
    ['none of the pages', {}],
    ['metrics of something else', { '/metrics': 'process_cpu_seconds_total 12.5\nnot_vllm:num_requests_running 3\n' }],
    ['HTML everywhere', { '/metrics': '<html>', '/slots': '<html>', '/v1/loads': '<html>', '/api/ps': '<html>' }],
    ['JSON of other shapes', { '/slots': '[]', '/v1/loads': '{"loads":[]}', '/get_load': '{}', '/api/ps': '{"a":1}' }],
    ['counts that are none', { '/get_load': '[{"num_reqs":-1,"num_waiting_reqs":0.5}]' }],
    ['gauges that are none', { '/metrics': 'vllm:num_requests_running NaN\nvllm:num_requests_waiting -1\n' }],
  ];
  it.each(useless)('%s: load null, and no worse for it', async (_title, pages) => {
    const { root } = await serve(pages);
    expect(await report(`${root}/v1`)).toEqual(QUIET);
  });
});

describe('§6 bridge: reports its engine’s health', () => {
  it.each([
    [503, 'Loading model', []],
    [200, '<html>', []],
    [500, LISTING, ['a', 'b']],
  ])('status %i with %s is failing, and the load is not asked', async (status, body, models) => {
    const asked: (string | undefined)[] = [];
    const root = await listen((request, response) => {
      asked.push(request.url);
      response.writeHead(status).end(body);
    });
    const expected = { status: 'failing', http_status: status, models, engine: null, load: null };
    expect(await report(`${root}/v1`)).toEqual(expected);
    expect(asked).toEqual(['/v1/models']);
  });

  it('no redirect is followed: it could lead the key to another host', async () => {
    const { root: elsewhere, asked } = await serve({ '/metrics': answers.VLLM_METRICS });
    const root = await listen((request, response) => {
      if (request.url === '/v1/models') response.end(LISTING);
      else response.writeHead(307, { location: elsewhere + (request.url ?? '') }).end();
    });
    expect(await report(`${root}/v1`)).toEqual(QUIET);
    expect(asked).toEqual([]);
  });

  it('a server that refuses connections is unreachable, with no word of where', async () => {
    const root = await listen(() => undefined);
    servers.splice(0).forEach((server) => server.close());
    const text = JSON.stringify(await report(`${root}/v1`));
    expect(JSON.parse(text)).toEqual({
      status: 'unreachable',
      http_status: null,
      models: [],
      engine: null,
      load: null,
    });
    expect(text).not.toContain('127.0.0.1');
  });

  it('nothing an engine says gets out but ids and counts', async () => {
    const { root } = await serve({ '/slots': answers.LLAMACPP_SLOTS });
    const text = JSON.stringify(await report(`${root}/v1`));
    expect(text).not.toMatch(/own words|secret|srv|127\.0\.0\.1/);
    expect(text).toContain('"running":2');
  });
});

describe('§6 bridge: no engine holds its report up or floods it', () => {
  const DEADLINE_MS = 300;

  it.each(['headers', 'body'])(
    'load pages whose %s never come: the report is there by its deadline',
    async (missing) => {
      const root = await listen((request, response) => {
        if (request.url === '/v1/models') response.end(LISTING);
        else if (missing === 'body') response.writeHead(200).write('vllm:num_requests_running 3\n');
      });
      const startedMs = performance.now();
      expect(await report(`${root}/v1`, DEADLINE_MS)).toEqual(QUIET);
      expect(performance.now() - startedMs).toBeLessThan(10 * DEADLINE_MS);
    },
  );

  it.each([
    ['headers', 'unreachable', null],
    ['body', 'failing', 200],
  ])('a listing whose %s never come: %s by its deadline', async (missing, status, http_status) => {
    const root = await listen((_request, response) => {
      if (missing === 'body') response.writeHead(200).write('{"data":[');
    });
    expect(await report(`${root}/v1`, DEADLINE_MS)).toMatchObject({ status, http_status, load: null });
  });

  it.each(['/metrics', '/v1/models'])('an endless %s is left after one MiB', async (endless) => {
    const closed = Promise.withResolvers<'left'>();
    const page = Buffer.from(`vllm:num_requests_running 3\n${'#'.repeat(64 * 1024)}\n`);
    const root = await listen((request, response) => {
      if (request.url !== endless)
        return void response.writeHead(request.url === '/v1/models' ? 200 : 404).end(LISTING);
      response.once('close', () => closed.resolve('left'));
      const flood = new Readable({ read: () => void flood.push(page) });
      flood.pipe(response);
    });
    const startedMs = performance.now();
    const expected = endless === '/metrics' ? QUIET : { ...QUIET, status: 'failing', models: [] };
    expect(await report(`${root}/v1`)).toEqual(expected);
    expect(await closed.promise).toBe('left');
    // The deadline of five seconds would end it too.
    expect(performance.now() - startedMs).toBeLessThan(2_500);
  });
});

describe('readGauge', () => {
  it.each<[string, number | null]>([
    ['g 3', 3],
    ['g{} 3.0', 3],
    ['g{a="}",b="x y",c="\\"} 9"} 2 1796083200000\n', 2],
    ['g{a="1"} 1\r\ng{a="2"}\t2\r\n', 3],
    ['# TYPE g gauge\n# g 7\n g 7\ngg 7\ng_sum 7\ng', null],
    ['g 1\ng{a="2"} +Inf', null],
    ['g 1e3', 1000],
    ['g three', null],
  ])('%j is %s', (text, expected) => {
    expect(readGauge(text, 'g')).toBe(expected);
  });
});
