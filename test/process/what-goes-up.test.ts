// What reaches the inference server's socket and what reaches the log: the client's body to the letter, a handful of
// headers, and never a secret or a prompt (SPEC §4, §6, §10).

import { afterAll, beforeAll, describe, expect, test } from 'vitest';

import { errorEnvelopeSchema } from '../openai/published-schema.ts';
import { call } from './raw-client.ts';
import { answerAny, answerJson, chunk, type Exchange, type Script } from './scripted-upstream.ts';
import { buildChat, MODELS, type ScriptedGateway, startScriptedGateway, toToken } from './scripted-gateway.ts';

const token = toToken('main');
const secret = token.slice('tp_main_'.length);
const BODY_BYTES_MAX = 5 * 1024 * 1024;
const PROMPT = 'the-patient-is-called-Waldemar';

let scripted: ScriptedGateway;
beforeAll(async () => {
  scripted = await startScriptedGateway();
});
afterAll(() => scripted.stop());

/** Sends a text to the letter and returns what the engine got, to the letter. */
async function send(body: string, headers: Readonly<Record<string, string>> = {}): Promise<Exchange> {
  scripted.upstream.play(answerAny);
  const answer = await call(`${scripted.gateway.url}/v1/chat/completions`, {
    headers: { authorization: `Bearer ${token}`, ...headers },
    body,
  });
  expect(answer.status, await answer.whole()).toBe(200);
  const [exchange] = scripted.upstream.find(answer.requestId);
  if (exchange === undefined) throw new Error('nothing went up');
  return exchange;
}

// Engines that give the prompt back wherever a text can stand.
const echo =
  (status: number): Script =>
  (exchange) =>
    answerJson(exchange, status, { error: { message: `cannot handle: ${exchange.body}`, type: 'E', code: status } });
const echoInStream = (exchange: Exchange): void => {
  exchange.head(200);
  exchange.write(chunk({ content: PROMPT }));
  exchange.end(`data: ${JSON.stringify({ error: { message: exchange.body, code: 500 } })}\n\n`);
};
const echoRaw =
  (contentType: string): Script =>
  (exchange) => {
    exchange.head(200, contentType);
    exchange.end(`data: ${PROMPT}\n\n`);
  };

async function expectCleanLog(): Promise<void> {
  await scripted.settleLog();
  const log = scripted.logLines.join('\n');
  expect(log).not.toContain(secret);
  expect(log).not.toContain(PROMPT);
  expect(log.toLowerCase()).not.toContain('bearer');
}

describe('§6 headers that go up', () => {
  const unwanted = {
    cookie: 'session=1',
    'user-agent': 'OpenAI/JS 7.59.0',
    'openai-organization': 'org-1',
    'openai-project': 'proj-1',
    'x-api-key': secret,
    'x-stainless-lang': 'js',
    'x-forwarded-for': '203.0.113.9',
    'x-forwarded-host': 'evil.example',
    'x-real-ip': '203.0.113.9',
    'cf-connecting-ip': '203.0.113.9',
    'cf-ray': '1',
    forwarded: 'for=203.0.113.9',
    'proxy-authorization': `Bearer ${token}`,
    'x-request-id': 'req_of_the_client',
    'x-client-request-id': 'client-1',
    'idempotency-key': 'k',
    traceparent: '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01',
    origin: 'https://app.example',
    referer: 'https://app.example/secret-path',
    'accept-language': 'de',
  };
  /** The three of the bridge, and what an HTTP client cannot do without; `cf-worker` is the runtime's own. */
  const allowed = ['content-type', 'accept', 'x-request-id', 'host', 'content-length', 'transfer-encoding'];
  const runtime = ['cf-worker', 'connection', 'accept-encoding'];

  test.each([false, true])(
    '§6, §10 only allow-listed headers go up, never Authorization (stream: %s)',
    async (stream) => {
      const { headers } = await send(JSON.stringify(buildChat(MODELS.counted, stream)), unwanted);
      expect(Object.keys(headers).filter((name) => ![...allowed, ...runtime].includes(name))).toEqual([]);
      expect(JSON.stringify(headers)).not.toContain(secret);
      expect(headers['content-type']).toBe('application/json');
      expect(headers.accept).toBe(stream ? 'text/event-stream' : 'application/json');
      expect(headers['x-request-id']).toMatch(/^req_[0-9a-z]{26}$/);
    },
  );
});

describe('§10 what is never logged', () => {
  test.each<[string, Script, number, number]>([
    ['a plain answer', answerAny, 200, 200],
    ['a 400 that echoes the request', echo(400), 400, 400],
    ['a 422 that echoes the request', echo(422), 400, 400],
    ['a 500 that echoes the request', echo(500), 502, 502],
    ['a 401 that echoes the request', echo(401), 502, 502],
    ['a 200 with an error that echoes the request', echo(200), 502, 502],
    ['an error event that echoes the request', echoInStream, 502, 200],
    ['an event stream of garbage', echoRaw('text/event-stream'), 502, 502],
    ['HTML', echoRaw('text/html'), 502, 502],
  ])('§10 neither the secret nor the prompt is in the log: %s', async (_, script, status, streamStatus) => {
    scripted.upstream.play(script);
    const prompts = [
      ['/v1/chat/completions', { messages: [{ role: 'user', content: PROMPT }] }],
      ['/v1/responses', { input: PROMPT, instructions: PROMPT }],
    ] as const;
    for (const [[path, prompt], stream] of prompts.flatMap((one) => [[one, false] as const, [one, true] as const])) {
      const answer = await scripted.post(path, { model: MODELS.counted, stream, ...prompt }).answer;
      await answer.whole();
      expect(answer.status).toBe(stream ? streamStatus : status);
      await scripted.waitForReceipt(answer.requestId);
      await scripted.settleLog();
      expect(scripted.logLines.filter((line) => line.includes(answer.requestId))).not.toEqual([]);
    }
    await expectCleanLog();
  });

  test('§10 neither is there for what is refused at the door', async () => {
    const messages = [{ role: 'user', content: PROMPT }];
    const url = `${scripted.gateway.url}/v1/chat/completions`;
    const authorization = `Bearer ${token}`;
    const refused: [number, Record<string, string>, string][] = [
      [400, { authorization }, `{"model":"counted","messages":[{"role":"user","content":"${PROMPT}"`],
      [400, { authorization }, JSON.stringify({ model: 'counted', messages, temperature: PROMPT })],
      [400, { authorization }, JSON.stringify({ model: 'counted', messages: PROMPT })],
      [404, { authorization }, JSON.stringify({ model: 'nothing', messages })],
      [415, { authorization, 'content-type': 'text/plain' }, PROMPT],
      [401, { authorization: `Basic ${token}` }, JSON.stringify({ model: 'counted', messages })],
      [401, { authorization: `Bearer tp_other_${secret}` }, JSON.stringify({ model: 'counted', messages })],
      [401, { authorization: `Bearer ${token} x` }, JSON.stringify({ model: 'counted', messages })],
      [401, { 'x-api-key': token }, JSON.stringify({ model: 'counted', messages })],
    ];
    for (const [status, headers, body] of refused) {
      const answer = await call(url, { headers, body });
      expect({ status: answer.status, text: await answer.whole() }).toMatchObject({ status });
    }
    const answer = await call(`${scripted.gateway.url}/v1/nothing?api_key=${token}&q=${PROMPT}`, { body: PROMPT });
    expect(answer.status).toBe(404);
    await expectCleanLog();
  });

  test('§10 an engine that is unreachable, and a client that leaves: the log is clean there too', async () => {
    const messages = [{ role: 'user', content: PROMPT }];
    const down = await scripted.chat(buildChat(MODELS.down, true, { messages }));
    expect(down.status).toBe(502);
    scripted.upstream.play((exchange) => {
      exchange.head(200);
      exchange.write(chunk({ content: PROMPT }));
    });
    const left = await scripted.chat(buildChat(MODELS.counted, true, { messages }));
    await left.waitFor(new RegExp(PROMPT));
    left.leave('reset');
    await scripted.waitForReceipt(left.requestId);
    await expectCleanLog();
  });
});

describe('§4 pass-through is faithful at the engine’s socket', () => {
  const verbatim = [
    '"seed": 9007199254740993',
    '"logit_bias":{"50256":-1.0, "1" : 1e0}',
    '"temperature":1.0',
    '"top_p" :1.00',
    '"presence_penalty":-0.0',
    '"far":1e400',
    '"big":123456789012345678901234567890.000',
    '"tiny":1E-400',
    '"nested":{"unknown":{"a":[1.0,{"b":null},[],{}],"":"empty"},"model":"not this one","stream":true}',
    '"escapes":"a\\/b \\u0041 \\ud83d\\ude00 \\ud800 \\"q\\" \\t"',
    '"emoji":"😀 👩‍👩‍👧 \u2028 é e\u0301"',
    '"__proto__":{"polluted":true}',
    '"constructor":[1]',
    '"top_k":-1',
  ];
  const messages = '"messages":[ {"role":"user","content":"a\\/b 😀 \\u00e9","name":"x","own":1.50} ]';

  test('§4 a body that is not streamed: only the model’s name changes', async () => {
    const text = `{ ${[...verbatim, messages].join(' ,\n\t')} , "model":"counted" }`;
    const { body, url, method } = await send(text);
    expect(body).toBe(text.replace('"model":"counted"', '"model":"engine/m"'));
    expect(`${method} ${url}`).toBe('POST /v1/chat/completions');
  });

  test('§4 a streamed one: usage is asked for, everything else is as sent', async () => {
    const { body } = await send(`{"model":"counted","stream":true,${[...verbatim, messages].join(',')}}`);
    const options = '"stream_options":{"include_usage":true,"continuous_usage_stats":true}';
    expect(body).toBe(`{"model":"engine/m","stream":true,${[...verbatim, messages].join(',')},${options}}`);
  });

  test('§4 null is absent, the newer limit wins under the engine’s name, gateway-owned fields go', async () => {
    const sent =
      '{"stop":null,"model":"counted","max_completion_tokens":7,"max_tokens":9,"cache_salt":"s","a":1.0,' +
      messages +
      '}';
    const { body } = await send(sent);
    expect(body).toBe(`{"model":"engine/m","max_tokens":7,"a":1.0,${messages}}`);
  });

  test('§4 gateway-owned fields that were removed are named in the log', async () => {
    const { body } = await send(`{"model":"counted","lora_path":"/x",${messages}}`);
    expect(body).not.toContain('lora_path');
    await scripted.settleLog();
    expect(scripted.logLines.filter((line) => line.includes('lora_path'))).toHaveLength(1);
  });

  test('§3 a body of exactly 5 MiB arrives whole', async () => {
    const text = pad(BODY_BYTES_MAX);
    const { body } = await send(text);
    expect(body === text.replace('"model":"counted"', '"model":"engine/m"')).toBe(true);
  });
});

/** A body that would be good if it were small enough. */
function pad(bytes: number): string {
  const frame = '{"model":"counted","messages":[{"role":"user","content":"hi"}],"pad":""}';
  return frame.replace('"pad":""', `"pad":"${'x'.repeat(bytes - Buffer.byteLength(frame))}"`);
}

describe('§3 a large body that is refused', () => {
  const wrong = token.replace(/.$/, (last) => (last === 'A' ? 'B' : 'A'));

  // Several times each: an answer that leaves before the body is in races with the client's own writing.
  test.each([
    ['413', 'one byte too many', BODY_BYTES_MAX + 1, {}],
    ['413', '6 MiB', 6 * 1024 * 1024, {}],
    ['401', 'a wrong key', 4 * 1024 * 1024, { authorization: `Bearer ${wrong}` }],
    ['415', 'no JSON', 4 * 1024 * 1024, { 'content-type': 'text/plain' }],
  ])('§3 the client gets its %s, not a broken connection: %s', async (status, _, bytes, headers) => {
    const url = `${scripted.gateway.url}/v1/chat/completions`;
    const body = pad(bytes);
    for (let tries = 0; tries < 10; tries += 1) {
      const got = await fetch(url, {
        method: 'POST',
        headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json', ...headers },
        body,
      }).then(
        async (response) => `${response.status} ${typeof errorEnvelopeSchema.parse(await response.json()).error.code}`,
        (error: unknown) => String(error instanceof Error ? error.cause : error),
      );
      expect(got).toBe(`${status} string`);
    }
  });
});
