// Inference servers that fail, behind the real bridge: statuses, hints, what leaks not, connections tried again, comments
// meanwhile. Which answer each fault of a body gets, and its receipt, is the fault table's. Deadlines are shortened by vars.

import { afterAll, beforeAll, describe, expect, test } from 'vitest';

import { errorEnvelopeSchema, parsePublishedStream } from '../openai/published-schema.ts';
import { WIRES } from './endpoint-wire.ts';
import { type RawAnswer } from './raw-client.ts';
import { answerAny, answerJson, chunk, countUsage, DONE, type Script, streamShort } from './scripted-upstream.ts';
import {
  buildChat,
  MODELS,
  pause,
  readData,
  type ScriptedGateway,
  startScriptedGateway,
  toCostUsd,
} from './scripted-gateway.ts';

const EITHER = [false, true];
const FREE = '0.000000000';

/** What the client and the receipt say of a request that failed before a 200. */
type Expected = { readonly status: number; readonly code: string | null; readonly attempts: number };

async function expectRefusal(scripted: ScriptedGateway, answer: RawAnswer, expected: Expected): Promise<string> {
  const text = await answer.whole();
  expect({ status: answer.status, text }).toMatchObject({ status: expected.status });
  const { error } = errorEnvelopeSchema.parse(JSON.parse(text));
  expect(error.code).toBe(expected.code);
  const receipt = await scripted.waitForReceipt(answer.requestId);
  expect(receipt).toMatchObject({
    status: 'failed',
    http_status: expected.status,
    error_code: expected.code,
    attempts: expected.attempts,
    cost_usd: FREE,
    usage_source: 'none',
  });
  expect(receipt.ended_at).not.toBeNull();
  return error.message;
}

async function expectCompleted(scripted: ScriptedGateway, answer: RawAnswer, attempts: number): Promise<void> {
  const text = await answer.whole();
  expect({ status: answer.status, text }).toMatchObject({ status: 200 });
  const receipt = await scripted.waitForReceipt(answer.requestId);
  expect(receipt).toMatchObject({ status: 'completed', http_status: 200, attempts, usage: { output_tokens: 2 } });
  expect(receipt.cost_usd).toBe(toCostUsd(receipt));
  expect(scripted.upstream.find(answer.requestId)).toHaveLength(attempts);
}

const answerStatus =
  (status: number, body: unknown): Script =>
  (exchange) =>
    answerJson(exchange, status, body);
const message = { error: { message: 'GPU 3 at http://10.0.0.7:8000/v1 fell over', type: 'X', code: null } };
const answerHtml: Script = (exchange) => {
  exchange.head(200, 'text/html');
  exchange.end('<html><body>502 Bad Gateway, nginx at 10.0.0.7</body></html>');
};

describe('before the first event', () => {
  const shortMs = 1_500;
  let scripted: ScriptedGateway;
  beforeAll(async () => {
    const vars = { HEADERS_DEADLINE_MS: String(shortMs), FIRST_EVENT_DEADLINE_MS: String(shortMs) };
    scripted = await startScriptedGateway({ vars: { ...vars, TOTAL_DEADLINE_MS: '3000' } });
  });
  afterAll(() => scripted.stop());

  test.each<[string, Script, Expected]>([
    ['500', answerStatus(500, message), { status: 502, code: 'upstream_error', attempts: 1 }],
    ['302', answerStatus(302, message), { status: 502, code: 'upstream_error', attempts: 1 }],
    ['408', answerStatus(408, message), { status: 502, code: 'upstream_error', attempts: 1 }],
    ['413', answerStatus(413, message), { status: 502, code: 'upstream_error', attempts: 1 }],
    ['503', answerStatus(503, message), { status: 503, code: 'server_is_overloaded', attempts: 1 }],
    ['429', answerStatus(429, message), { status: 503, code: 'server_is_overloaded', attempts: 1 }],
    ['404', answerStatus(404, message), { status: 502, code: 'upstream_misconfigured', attempts: 1 }],
    ['401', answerStatus(401, message), { status: 502, code: 'upstream_misconfigured', attempts: 1 }],
    ['403', answerStatus(403, message), { status: 502, code: 'upstream_misconfigured', attempts: 1 }],
    ['HTML', answerHtml, { status: 502, code: 'upstream_error', attempts: 1 }],
  ])(
    '§3 an upstream’s %s: status, code and a free receipt, both endpoints, streamed or not',
    async (_, script, expected) => {
      scripted.upstream.play(script);
      const asked = WIRES.flatMap((wire) => EITHER.map((stream) => [wire, stream] as const));
      const answers = asked.map(([{ path, ask }, stream]) => scripted.post(path, ask(MODELS.counted, stream)).answer);
      for (const answer of await Promise.all(answers)) {
        const said = await expectRefusal(scripted, answer, expected);
        // Nothing internal in a message.
        expect(said).not.toMatch(/10\.0|GPU|nginx/);
        const retry = expected.code === 'upstream_misconfigured' ? 'false' : 'true';
        expect(answer.headers['x-should-retry']).toBe(retry);
        if (expected.status === 503) expect(Number(answer.headers['retry-after'])).toBeGreaterThanOrEqual(1);
      }
    },
  );

  test('§3 an upstream’s 400 is the caller’s: its message and param, without addresses', async () => {
    const said = { message: 'top_k must be -1 or at least 1, says http://10.0.0.7:8000/v1', param: 'top_k' };
    for (const status of [400, 422]) {
      scripted.upstream.play(answerStatus(status, { error: { ...said, type: 'BadRequestError', code: 400 } }));
      for (const stream of EITHER) {
        const answer = await scripted.chat(buildChat(MODELS.counted, stream));
        const text = await expectRefusal(scripted, answer, { status: 400, code: null, attempts: 1 });
        expect(text).toContain('top_k must be -1 or at least 1');
        expect(text).not.toContain('10.0.0.7');
        expect(errorEnvelopeSchema.parse(JSON.parse(answer.text())).error.param).toBe('top_k');
      }
    }
  });

  test('§3 a context overflow by the engine: context_length_exceeded on messages', async () => {
    const text = "This model's maximum context length is 8192 tokens. However, you requested 9000 tokens.";
    scripted.upstream.play(answerStatus(400, { object: 'error', message: text, type: 'BadRequestError', code: 400 }));
    const answer = await scripted.chat(buildChat(MODELS.counted, true));
    await expectRefusal(scripted, answer, { status: 400, code: 'context_length_exceeded', attempts: 1 });
    expect(errorEnvelopeSchema.parse(JSON.parse(answer.text())).error).toMatchObject({ param: 'messages' });
  });

  test('§3 an upstream that is down: 502 upstream_unreachable, and the service goes on', async () => {
    for (const stream of EITHER) {
      const answer = await scripted.chat(buildChat(MODELS.down, stream));
      await expectRefusal(scripted, answer, { status: 502, code: 'upstream_unreachable', attempts: 2 });
    }
    scripted.upstream.play(answerAny);
    await expectCompleted(scripted, await scripted.chat(buildChat(MODELS.counted, true)), 1);
  });

  test('§6 a connection that dies before any header: tried once more, and only once', async () => {
    for (const stream of EITHER) {
      let resets = 1;
      scripted.upstream.play((exchange) => (resets-- > 0 ? exchange.reset() : answerAny(exchange)));
      await expectCompleted(scripted, await scripted.chat(buildChat(MODELS.counted, stream)), 2);
      scripted.upstream.play((exchange) => exchange.reset());
      const answer = await scripted.chat(buildChat(MODELS.counted, stream));
      await expectRefusal(scripted, answer, { status: 502, code: 'upstream_unreachable', attempts: 2 });
      expect(scripted.upstream.find(answer.requestId)).toHaveLength(2);
    }
  });

  test('§6 a stream that ends or breaks before its first event: 502', async () => {
    for (const leave of ['end', 'reset'] as const) {
      scripted.upstream.play((exchange) => {
        exchange.head(200);
        exchange.write(': ping\n\n');
        setTimeout(() => exchange[leave](), 30);
      });
      const answer = await scripted.chat(buildChat(MODELS.counted, true));
      expect(answer.status).toBe(502);
      const receipt = await scripted.waitForReceipt(answer.requestId);
      expect(receipt).toMatchObject({ status: 'failed', http_status: 502, attempts: 1, cost_usd: FREE });
    }
  });
});

describe('after the first event', () => {
  const holdMs = 300;
  let scripted: ScriptedGateway;
  beforeAll(async () => {
    const vars = { FIRST_EVENT_HOLD_MS: String(holdMs), SILENCE_DEADLINE_MS: '600', KEEPALIVE_MS: '100' };
    scripted = await startScriptedGateway({
      vars: { ...vars, HEADERS_DEADLINE_MS: '1000', FIRST_EVENT_DEADLINE_MS: '1000', TOTAL_DEADLINE_MS: '2000' },
    });
  });
  afterAll(() => scripted.stop());

  const stream = (): Promise<RawAnswer> => scripted.chat(buildChat(MODELS.counted, true));

  test('§7 silence beyond its deadline: comments meanwhile, then error and [DONE], the engine is left', async () => {
    scripted.upstream.play((exchange) => {
      exchange.head(200);
      exchange.write(chunk({ content: 'a', usage: countUsage(1) }));
    });
    const startedAtMs = Date.now();
    const answer = await stream();
    expect(parsePublishedStream(await answer.whole(), 'chat').error?.code).toBe('upstream_timeout');
    expect(Date.now() - startedAtMs).toBeLessThan(1_600);
    expect(answer.text().match(/^: keep-alive$/gm)?.length).toBeGreaterThanOrEqual(3);
    await scripted.upstream.find(answer.requestId)[0]?.aborted;
  });

  test('§6 the hold: comments of the engine do not count; the stream is committed and completes', async () => {
    scripted.upstream.play(async (exchange) => {
      exchange.head(200);
      exchange.write(': ping\n\n');
      await pause(2 * holdMs);
      streamShort(Object.assign(exchange, { head: () => undefined }));
    });
    const answer = await stream();
    expect(answer.text()).not.toContain('data:');
    await expectCompleted(scripted, answer, 1);
    expect(answer.text()).toMatch(/^: keep-alive\n\n/);
    expect(readData(answer.text()).at(-1)).toBe('[DONE]');
  });

  test.each<[string, string, Script]>([
    ['a 500', 'upstream_error', (exchange) => answerJson(exchange, 500, { error: { message: 'boom' } })],
    ['a 503', 'server_is_overloaded', (exchange) => answerJson(exchange, 503, { error: { message: 'loading' } })],
    ['a reset', 'upstream_unreachable', (exchange) => exchange.reset()],
    [
      'an error event',
      'upstream_error',
      (exchange) => (exchange.head(200), exchange.end('data: {"error":"boom"}\n\n')),
    ],
    ['no headers ever', 'upstream_timeout', () => undefined],
  ])('§6 the hold, then %s: the error comes inside the stream, and [DONE]', async (_, code, script) => {
    scripted.upstream.play(async (exchange) => {
      if (scripted.upstream.find(String(exchange.headers['x-request-id'])).length === 1) await pause(2 * holdMs);
      await script(exchange);
    });
    const answer = await stream();
    expect(answer.status).toBe(200);
    const data = readData(await answer.whole());
    expect(data).toHaveLength(2);
    expect(errorEnvelopeSchema.parse(JSON.parse(data[0] ?? '')).error.code).toBe(code);
    expect(data[1]).toBe('[DONE]');
    const receipt = await scripted.waitForReceipt(answer.requestId);
    expect(receipt).toMatchObject({ status: 'failed', http_status: 200, error_code: code, cost_usd: FREE });
  });

  test('§7 [DONE] is the end: what an engine sends after it goes nowhere, and its connection is given back', async () => {
    scripted.upstream.play((exchange) => {
      streamShort(Object.assign(exchange, { end: (text = '') => void exchange.write(text) }));
      exchange.write(chunk({ content: 'after' }) + DONE);
    });
    const answer = await stream();
    await expectCompleted(scripted, answer, 1);
    expect(answer.text()).not.toContain('after');
    await scripted.upstream.find(answer.requestId)[0]?.aborted;
  });
});
