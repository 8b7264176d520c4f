// The official clients, two majors of them, against the served address: they are the black box that callers use, so what
// they make of an answer is what counts. Retries are off: each call is one request.

import OpenAI from 'openai';
import OpenAI6 from 'openai6';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';

import { answerAny, chunk, countUsage } from './scripted-upstream.ts';
import { buildKey, MODELS, type ScriptedGateway, startScriptedGateway, toToken } from './scripted-gateway.ts';

const REQUEST_ID = /^req_[0-9a-z]{26}$/;
const messages = [{ role: 'user' as const, content: 'Say hello.' }];

let scripted: ScriptedGateway;
beforeAll(async () => {
  const oneAMinute = { limits: { rpm: 1 } };
  scripted = await startScriptedGateway({
    keys: { 'key:slow-7': buildKey('slow-7', oneAMinute), 'key:slow-6': buildKey('slow-6', oneAMinute) },
  });
});
afterAll(() => scripted.stop());

// The two majors differ in types that these calls do not touch.
// oxlint-disable-next-line typescript/no-unsafe-type-assertion
const Client6 = OpenAI6 as unknown as typeof OpenAI;
const clients = [
  { major: '7', Client: OpenAI },
  { major: '6', Client: Client6 },
];

describe.each(clients)('official client openai $major', ({ major, Client }) => {
  const open = (token = toToken('main')): OpenAI =>
    new Client({ apiKey: token, baseURL: `${scripted.gateway.url}/v1`, maxRetries: 0 });

  /** The error of a call that must fail. */
  async function fail(calling: PromiseLike<unknown>): Promise<unknown> {
    const error = await calling.then(
      () => null,
      (reason: unknown) => reason,
    );
    expect(error).toBeInstanceOf(Client.APIError);
    return error;
  }

  test('§1 chat completion: the answer, its usage and _request_id', async () => {
    scripted.upstream.play(answerAny);
    const completion = await open().chat.completions.create({ model: MODELS.counted, messages });
    expect(completion.choices[0]?.message.content).toBe('Hello there');
    expect(completion.usage).toMatchObject({ prompt_tokens: 3, completion_tokens: 2, total_tokens: 5 });
    // oxlint-disable-next-line no-underscore-dangle -- the client's own name
    expect(completion._request_id).toMatch(REQUEST_ID);
  });

  test('§7 chat stream: deltas, one finish reason, one usage chunk, the request id', async () => {
    scripted.upstream.play(answerAny);
    const calling = open().chat.completions.create({
      model: MODELS.counted,
      messages,
      stream: true,
      stream_options: { include_usage: true },
    });
    const { data, request_id } = await calling.withResponse();
    const chunks = [];
    for await (const part of data) chunks.push(part);
    expect(chunks.map((part) => part.choices[0]?.delta.content ?? '').join('')).toBe('Hello there');
    expect(chunks.flatMap((part) => part.choices[0]?.finish_reason ?? [])).toEqual(['stop']);
    expect(chunks.flatMap((part) => part.usage ?? [])).toMatchObject([{ prompt_tokens: 3, completion_tokens: 2 }]);
    expect(chunks.at(-1)?.choices).toEqual([]);
    expect(new Set(chunks.map(({ id }) => id)).size).toBe(1);
    expect(request_id).toMatch(REQUEST_ID);
  });

  test('§7 chat stream: the client’s own accumulator takes it', async () => {
    scripted.upstream.play(answerAny);
    const completion = await open().chat.completions.stream({ model: MODELS.counted, messages }).finalChatCompletion();
    expect(completion.choices[0]).toMatchObject({ finish_reason: 'stop', message: { content: 'Hello there' } });
  });

  test('§7 engine cut: the client throws, it does not take the rest for an answer', async () => {
    scripted.upstream.play((exchange) => {
      exchange.head(200);
      exchange.write(chunk({ content: 'Hel', usage: countUsage(1) }));
      exchange.write(chunk({ content: 'lo' }).slice(0, 40));
      setTimeout(exchange.reset, 50);
    });
    const stream = await open().chat.completions.create({ model: MODELS.counted, messages, stream: true });
    let text = '';
    const reading = (async () => {
      for await (const part of stream) text += part.choices[0]?.delta.content ?? '';
    })();
    const error = await fail(reading);
    expect(error).toMatchObject({ code: 'upstream_disconnected', type: 'server_error' });
    expect(text).toBe('Hel');
  });

  const wrong = toToken('main').replace(/.$/, (last) => (last === 'A' ? 'B' : 'A'));
  test.each([
    ['401', { status: 401, code: 'invalid_api_key' }, wrong, MODELS.counted, 'AuthenticationError'],
    ['404', { status: 404, code: 'model_not_found', param: 'model' }, undefined, 'no-such-model', 'NotFoundError'],
    ['502', { status: 502, code: 'upstream_unreachable' }, undefined, MODELS.down, 'InternalServerError'],
  ] as const)(
    '§3 %s: an APIError with status, code and requestID, streamed or not',
    async (_, expected, token, model, name) => {
      for (const stream of [false, true]) {
        const error = await fail(open(token).chat.completions.create({ model, messages, stream }));
        expect(error).toMatchObject({ ...expected, requestID: expect.stringMatching(REQUEST_ID) });
        expect(error).toBeInstanceOf(Client[name]);
      }
    },
  );

  test('§3 429: a RateLimitError with its hints', async () => {
    scripted.upstream.play(answerAny);
    const client = open(toToken(`slow-${major}`));
    await client.chat.completions.create({ model: MODELS.counted, messages });
    const error = await fail(client.chat.completions.create({ model: MODELS.counted, messages }));
    expect(error).toBeInstanceOf(Client.RateLimitError);
    expect(error).toMatchObject({ status: 429, code: 'rate_limit_exceeded', type: 'requests' });
    expect(error).toMatchObject({ requestID: expect.stringMatching(REQUEST_ID) });
    const headers = error instanceof Client.RateLimitError ? error.headers : undefined;
    expect(Number(headers?.get('retry-after'))).toBeGreaterThanOrEqual(1);
    expect(Number(headers?.get('retry-after'))).toBeLessThanOrEqual(60);
    expect(headers?.get('x-should-retry')).toBe('true');
    expect(headers?.get('x-ratelimit-limit-requests')).toBe('1');
  });
});
