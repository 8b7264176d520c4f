// One example of each error as the official openai client reports it (SPEC §3): its class, status, type, code, param.
// What needs a broken store or a clock (limiter_unavailable, upstream_timeout) is tested where those are.

import { reset } from 'cloudflare:test';
import { env, exports } from 'cloudflare:workers';
import OpenAI, { APIError } from 'openai';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { addKey, type EngineScript, prepare } from '../fixtures.ts';
import { type Fields } from './call.ts';
import { printFigures } from './figures.ts';

type Class = keyof Pick<
  typeof OpenAI,
  | 'APIError'
  | 'AuthenticationError'
  | 'BadRequestError'
  | 'InternalServerError'
  | 'NotFoundError'
  | 'PermissionDeniedError'
  | 'RateLimitError'
>;
type Expected = readonly [
  name: Class,
  status: number | undefined,
  type: string,
  code: string | null,
  param: string | null,
];
type Example = {
  readonly name: string;
  /** Workspace and key of the call. */
  readonly key?: Fields;
  readonly workspace?: Fields;
  readonly token?: string;
  /** Fields of the body beside model and messages, or the body. */
  readonly fields?: Fields;
  readonly script?: EngineScript;
  readonly headers?: Record<string, string>;
  /** Rewrites the text that the client sends. */
  readonly spoil?: (text: string) => string;
  /** Something else than a chat completion. */
  readonly ask?: (client: OpenAI, id: string) => PromiseLike<unknown>;
  /** Comes before the call that fails. */
  readonly before?: (client: OpenAI) => PromiseLike<unknown>;
  readonly expected: Expected;
  readonly retryAfter?: true;
};

const BAD = 'invalid_request_error';
const PATH = '/chat/completions';
const delta = (content: string): Fields => ({
  json: { choices: [{ index: 0, delta: { content }, finish_reason: null }] },
});
/** Goes on for so long that a second call meets it. */
const SLOW: EngineScript = { stream: [delta('a'), { ...delta('b'), wait: 1500 }, { data: '[DONE]' }] };
const LONG: EngineScript = { stream: Array.from({ length: 100 }, () => ({ ...delta('a'), wait: 200 })) };

function toBody(fields: Fields, script?: EngineScript): Fields {
  const messages = [{ role: 'user', content: 'Say hello.' }];
  return { model: 'test-model', messages, ...(script === undefined ? {} : { x_script: script }), ...fields };
}

async function openStream(client: OpenAI, fields: Fields, script: EngineScript): Promise<AsyncIterable<unknown>> {
  return client.post<AsyncIterable<unknown>>(PATH, { body: { ...toBody(fields, script), stream: true }, stream: true });
}

async function readAll(stream: AsyncIterable<unknown>): Promise<void> {
  for await (const chunk of stream) expect(chunk).toHaveProperty('choices');
}

const bad = (code: string, param: string | null): Expected => ['BadRequestError', 400, BAD, code, param];
const failed = (status: number, code: string, type = 'server_error'): Expected => {
  return ['InternalServerError', status, type, code, null];
};
const limited = (type: string, code: string): Expected => ['RateLimitError', 429, type, code, null];
const refusing = (name: string, fields: Fields, code: string, param: string): Example => {
  return { name, fields, expected: bad(code, param) };
};
const inStream = (code: string): Expected => ['APIError', undefined, 'server_error', code, null];
const BOOM = '{"error":{"message":"boom","code":500}}';
const TOOL = { type: 'function', function: { name: 'look' } };

const EXAMPLES: readonly Example[] = [
  {
    name: 'a key nobody knows',
    token: 'sk-none',
    expected: ['AuthenticationError', 401, BAD, 'invalid_api_key', null],
  },
  {
    name: 'a scope that is missing',
    key: { scopes: ['models:read'] },
    expected: ['PermissionDeniedError', 403, BAD, 'insufficient_scope', null],
  },
  { name: 'a damaged key entry', key: { hash: 5 }, expected: failed(503, 'auth_unavailable'), retryAfter: true },
  {
    name: 'a damaged model entry',
    fields: { model: 'broken' },
    expected: failed(503, 'catalog_unavailable'),
    retryAfter: true,
  },
  {
    name: 'an unknown model',
    fields: { model: 'nope' },
    expected: ['NotFoundError', 404, BAD, 'model_not_found', 'model'],
  },
  { name: 'a broken body', spoil: (text) => text.slice(0, -1), expected: bad('invalid_json', null) },
  refusing('a field missing', { messages: [{ content: 'x' }] }, 'missing_required_parameter', 'messages[0].role'),
  refusing('a wrong type', { temperature: 'hot' }, 'invalid_type', 'temperature'),
  refusing('an integer too small', { max_tokens: 0 }, 'integer_below_min_value', 'max_tokens'),
  refusing('an integer too large', { max_tokens: 1025 }, 'integer_above_max_value', 'max_tokens'),
  refusing('a decimal too small', { top_p: 0 }, 'decimal_below_min_value', 'top_p'),
  refusing('a decimal too large', { temperature: 2.5 }, 'decimal_above_max_value', 'temperature'),
  refusing('a list too long', { stop: ['a', 'b', 'c', 'd', 'e'] }, 'array_above_max_length', 'stop'),
  refusing('a list that is empty', { messages: [] }, 'empty_array', 'messages'),
  refusing(
    'a value outside its set',
    { messages: [{ role: 'king', content: 'x' }] },
    'invalid_value',
    'messages[0].role',
  ),
  refusing('a capability that is absent', { tools: [TOOL] }, 'unsupported_parameter', 'tools'),
  refusing('a value that is not supported', { n: 2 }, 'unsupported_value', 'n'),
  refusing('an unknown field, rejected', { model: 'unknown-reject', top_k: 5 }, 'unknown_parameter', 'top_k'),
  refusing(
    'a limit over the context',
    { model: 'no-preset', max_tokens: 32769 },
    'context_length_exceeded',
    'messages',
  ),
  {
    name: 'a prompt over the context, found by the engine',
    script: { status: 400, body: '{"error":{"message":"maximum context length is 10 tokens"}}' },
    expected: bad('context_length_exceeded', 'messages'),
  },
  {
    name: 'a field the engine refuses',
    script: { status: 400, body: '{"error":{"message":"min_p must be in [0, 1]","param":"min_p","code":400}}' },
    expected: ['BadRequestError', 400, BAD, null, 'min_p'],
  },
  {
    name: 'no requests left',
    workspace: { limits: { rpm: 1 } },
    before: (client) => client.post(PATH, { body: toBody({}) }),
    expected: limited('requests', 'rate_limit_exceeded'),
    retryAfter: true,
  },
  {
    name: 'no tokens left',
    workspace: { limits: { tpm: 1040 } },
    fields: { max_tokens: 1000 },
    before: (client) => openStream(client, { max_tokens: 1000 }, SLOW),
    expected: limited('tokens', 'rate_limit_exceeded'),
    retryAfter: true,
  },
  {
    name: 'larger than the token bucket',
    workspace: { limits: { tpm: 100 } },
    expected: limited('tokens', 'rate_limit_exceeded'),
  },
  {
    name: 'too many in flight',
    workspace: { limits: { concurrency: 1 } },
    before: (client) => openStream(client, {}, SLOW),
    expected: limited('requests', 'concurrency_limit_exceeded'),
    retryAfter: true,
  },
  {
    name: 'out of credits',
    workspace: { billing: 'prepaid' },
    expected: limited('insufficient_quota', 'insufficient_quota'),
  },
  {
    name: 'a body over 5 MiB',
    spoil: (text) => text + ' '.repeat(5 * 1024 * 1024),
    expected: ['APIError', 413, BAD, 'request_too_large', null],
  },
  {
    name: 'a content type that is not JSON',
    headers: { 'content-type': 'text/plain' },
    expected: ['APIError', 415, BAD, 'unsupported_content_type', null],
  },
  {
    name: 'a content encoding',
    headers: { 'content-encoding': 'br' },
    expected: ['APIError', 415, BAD, 'unsupported_content_encoding', null],
  },
  {
    name: 'a wrong method',
    ask: (client) => client.delete('/chat/completions'),
    expected: ['APIError', 405, BAD, 'method_not_supported', null],
  },
  {
    name: 'an unknown route',
    ask: (client) => client.embeddings.create({ model: 'test-model', input: 'x' }),
    expected: ['NotFoundError', 404, BAD, 'unknown_url', null],
  },
  { name: 'an engine out of reach', script: { throw: true }, expected: failed(502, 'upstream_unreachable') },
  {
    name: 'an engine’s 500',
    script: { status: 500, body: 'at http://10.0.0.5' },
    expected: failed(502, 'upstream_error'),
  },
  { name: 'an engine’s 401', script: { status: 401 }, expected: failed(502, 'upstream_misconfigured') },
  {
    name: 'an engine’s 429',
    script: { status: 429 },
    expected: failed(503, 'server_is_overloaded', 'service_unavailable_error'),
    retryAfter: true,
  },
  {
    name: 'in a stream: the engine breaks off',
    ask: async (client) => readAll(await openStream(client, {}, { stream: [delta('a'), { wait: 50, cut: true }] })),
    expected: inStream('upstream_disconnected'),
  },
  {
    name: 'in a stream: an engine error',
    ask: async (client) => readAll(await openStream(client, {}, { stream: [delta('a'), { data: BOOM }] })),
    expected: inStream('upstream_error'),
  },
  {
    name: 'in a stream: its key is revoked',
    ask: async (client, id) => {
      const stream = await openStream(client, {}, LONG);
      await env.DB.prepare('INSERT INTO revoked_keys (key_id) VALUES (?)').bind(id).run();
      await readAll(stream);
    },
    expected: inStream('request_stopped'),
  },
];
const LINES: string[] = [];
beforeAll(prepare);
afterAll(reset);

describe('§3 as the openai client reports it', () => {
  for (const [index, example] of EXAMPLES.entries()) {
    it(`§3 ${example.name}: ${example.expected.slice(0, 4).join(' ')}`, async () => {
      const id = `client-${index}`;
      const token = example.token ?? (await addKey(id, example.key ?? {}, example.workspace ?? {}));
      const { error, headers } = await fail(example, token, id);
      const { status, type, code, param, message, requestID } = error;
      const [name, ...expected] = example.expected;
      expect(error).toBeInstanceOf(OpenAI[name]);
      expect([status, type, code, param]).toEqual(expected);
      expect(requestID).toMatch(/^req_[0-9a-z]{26}$/);
      if (example.retryAfter === true) expect(Number(headers.get('retry-after'))).toBeGreaterThanOrEqual(1);
      LINES.push([name, status ?? 'in stream', type, code, param ?? '–', example.name, message].join(' | '));
    }, 15_000);
  }

  it('§3 the whole list', () => {
    printFigures('class | status | type | code | param | situation | message', ...LINES);
    expect(LINES).toHaveLength(EXAMPLES.length);
  });
});

/** The error that the client throws for an example. */
async function fail(example: Example, token: string, id: string): Promise<{ error: APIError; headers: Headers }> {
  const { headers = {}, spoil = (text: string) => text } = example;
  let answered = new Headers();
  let spoils = false;
  const client = new OpenAI({
    apiKey: token,
    baseURL: 'https://turnpike.test/v1',
    maxRetries: 0,
    fetch: async (url, init = {}) => {
      const own = new Headers(init.headers);
      if (spoils) for (const [name, value] of Object.entries(headers)) own.set(name, value);
      const body = spoils && typeof init.body === 'string' ? spoil(init.body) : init.body;
      const response = await exports.default.fetch(new Request(url, { ...init, headers: own, body: body ?? null }));
      answered = response.headers;
      return response;
    },
  });
  await example.before?.(client);
  spoils = true;
  const ask = example.ask ?? (() => client.post(PATH, { body: toBody(example.fields ?? {}, example.script) }));
  const error: unknown = await Promise.resolve(ask(client, id)).then(
    () => null,
    (reason: unknown) => reason,
  );
  if (!(error instanceof APIError)) throw new Error(`no APIError: ${String(error)}`);
  return { error, headers: answered };
}
