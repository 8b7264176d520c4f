// The isolate's byte budget on the production bundle: while it is spent new requests are refused, a stream under way
// goes on.

import { afterAll, beforeAll, expect, test } from 'vitest';

import { errorEnvelopeSchema } from '../openai/published-schema.ts';
import { answerAny, chunk, DONE } from './scripted-upstream.ts';
import { buildChat, MODELS, type ScriptedGateway, startScriptedGateway } from './scripted-gateway.ts';

const BYTES_MAX = 100_000;

let scripted: ScriptedGateway;

beforeAll(async () => {
  scripted = await startScriptedGateway({ vars: { ISOLATE_BYTES_MAX: String(BYTES_MAX) } });
});
afterAll(() => scripted.stop());

test('§6 the budget spent: new requests get 503 server_is_overloaded, streams under way go on, then all is well', async () => {
  let proceed = (): void => undefined;
  const held = new Promise<void>((resolve) => (proceed = resolve));
  scripted.upstream.play(async (exchange) => {
    exchange.head(200);
    exchange.write(chunk({ content: 'first ' }));
    // A half event larger than the budget.
    exchange.write(`data: {"x":"${'x'.repeat(BYTES_MAX)}`);
    await held;
    exchange.write('"}\n\n' + chunk({ content: 'last', finish: 'stop' }) + DONE);
    exchange.end();
  });
  const stream = await scripted.chat(buildChat(MODELS.counted, true));
  await stream.waitFor(/first/);
  await new Promise((resolve) => setTimeout(resolve, 200));
  const refused = await scripted.chat(buildChat(MODELS.counted, true));
  expect(refused.status).toBe(503);
  expect(errorEnvelopeSchema.parse(JSON.parse(await refused.whole())).error).toMatchObject({
    type: 'service_unavailable_error',
    code: 'server_is_overloaded',
  });
  expect(refused.headers['retry-after']).toBe('1');
  proceed();
  expect(await stream.whole()).toMatch(/last[\s\S]*\[DONE\]\n\n$/);
  await scripted.waitForReceipt(stream.requestId);
  const again = await scripted.chat(buildChat(MODELS.counted, true));
  expect(again.status).toBe(200);
  await again.whole();
});

test('§6 a body that spends the budget by itself is refused, and what it held is free again', async () => {
  const large = buildChat(MODELS.counted, false, { messages: [{ role: 'user', content: 'x'.repeat(BYTES_MAX) }] });
  for (let tries = 0; tries < 3; tries += 1) {
    const answer = await scripted.chat(large);
    expect(answer.status).toBe(503);
    await answer.whole();
  }
  scripted.upstream.play((exchange) => {
    exchange.head(200);
    exchange.end(chunk({ content: 'fine', finish: 'stop' }) + DONE);
  });
  const small = await scripted.chat(buildChat(MODELS.counted, true));
  expect([small.status, await small.whole()]).toEqual([200, expect.stringContaining('fine')]);
});

test('§6 a stream under way holds of its body only what it still has to say: a response repeats its instructions', async () => {
  const text = 'x'.repeat(0.7 * BYTES_MAX);
  const large = buildChat(MODELS.counted, false, { messages: [{ role: 'user', content: text }] });
  const asks = [
    ['/v1/chat/completions', { messages: [{ role: 'user', content: text }] }, 200],
    ['/v1/responses', { input: 'Hi', instructions: text }, 503],
  ] as const;
  for (const [path, prompt, status] of asks) {
    const held = Promise.withResolvers<void>();
    scripted.upstream.play(async (exchange) => {
      exchange.head(200);
      exchange.write(chunk({ content: 'first ' }));
      await held.promise;
      exchange.end(chunk({ content: 'last', finish: 'stop' }) + DONE);
    });
    const stream = await scripted.post(path, { model: MODELS.counted, stream: true, ...prompt }).answer;
    await stream.waitFor(/first/);
    scripted.upstream.play(answerAny);
    const other = await scripted.chat(large);
    expect([path, other.status]).toEqual([path, status]);
    await other.whole();
    held.resolve();
    expect(await stream.whole()).toContain('last');
    await scripted.waitForReceipt(stream.requestId);
  }
});
