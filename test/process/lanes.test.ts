// Both lanes on real sockets (SPEC §7): no token is held back in either. Native: a stream that needs no change arrives as
// the engine wrote it, to the byte, and is receipted all the same; what needs a change takes the exact lane. Exact: the
// pump takes over in silence, in the middle of a character too.

import { afterAll, beforeAll, describe, expect, test } from 'vitest';

import { errorEnvelopeSchema } from '../openai/published-schema.ts';
import { type EventParts, type Wire, WIRES } from './endpoint-wire.ts';
import { type RawAnswer } from './raw-client.ts';
import { countUsage, DONE, type Exchange } from './scripted-upstream.ts';
import { MODELS, pause, readData, type ScriptedGateway, startScriptedGateway, toCostUsd } from './scripted-gateway.ts';

const WORDS = 5;
const TOTAL_DEADLINE_MS = 1000;
const KEEPALIVE_MS = 200;

let scripted: ScriptedGateway;

beforeAll(async () => {
  const vars = { TOTAL_DEADLINE_MS: String(TOTAL_DEADLINE_MS), KEEPALIVE_MS: String(KEEPALIVE_MS) };
  scripted = await startScriptedGateway({ vars });
});
afterAll(() => scripted.stop());

/** The role belongs to a chat stream's first delta. */
function first(wire: Wire, parts: EventParts = { content: '' }): string {
  return wire.event(parts).replace('"delta":{', '"delta":{"role":"assistant",');
}

function words(wire: Wire): readonly string[] {
  return Array.from({ length: WORDS }, (_, at) => wire.event({ content: `w${at} ü€`, more: { vendor: at } }));
}

const finish = (wire: Wire): string => wire.event({ finish: 'length' });
const total = (wire: Wire): string => wire.event({ usage: countUsage(WORDS) });

/** Plays texts one after the other, then `end`. */
function play(texts: readonly (string | Uint8Array)[], end: (exchange: Exchange) => void): void {
  scripted.upstream.play(async (exchange) => {
    exchange.head(200);
    for (const text of texts) {
      exchange.write(text);
      await pause(10);
    }
    end(exchange);
  });
}

const close = (exchange: Exchange): void => exchange.end();
const hold = (): void => undefined;

async function ask(wire: Wire, more: object = {}, model: string = MODELS.native): Promise<RawAnswer> {
  const answer = await scripted.post(wire.path, wire.ask(model, true, more)).answer;
  expect(answer.status).toBe(200);
  return answer;
}

function readUpBody({ requestId }: RawAnswer): Record<string, unknown> {
  const [exchange] = scripted.upstream.find(requestId);
  return JSON.parse(exchange?.body ?? '');
}

describe.each(WIRES)('$path', (wire) => {
  test.each([MODELS.native, MODELS.counted])(
    '§7 %s: each event leaves before the next arrives: the engine goes on only when the client has it',
    async (model) => {
      const step = { go: Promise.withResolvers<void>() };
      scripted.upstream.play(async (exchange) => {
        exchange.head(200);
        exchange.write(first(wire));
        for (let at = 0; at < 2 * WORDS; at += 1) {
          exchange.write(
            wire.event({ content: `<${at}>`, ...(model === MODELS.counted ? { usage: countUsage(at) } : {}) }),
          );
          await step.go.promise;
        }
        exchange.end(finish(wire) + total(wire) + DONE);
      });
      const answer = await ask(wire, {}, model);
      for (let at = 0; at < 2 * WORDS; at += 1) {
        await answer.waitFor(new RegExp(`<${at}>`));
        const { go } = step;
        step.go = Promise.withResolvers();
        go.resolve();
      }
      expect(wire.readStream(await answer.whole())).toMatchObject({ finish: 'length', error: null });
    },
  );

  test('§7 exact: silence in the middle of a character and of an event, comments meanwhile, nothing lost or doubled', async () => {
    const event = new TextEncoder().encode(wire.event({ content: 'a€b' }));
    const at = event.indexOf(0xe2) + 1;
    scripted.upstream.play(async (exchange) => {
      exchange.head(200);
      exchange.write(first(wire));
      await pause(50);
      for (let round = 0; round < 2; round += 1) {
        exchange.write(event.slice(0, at));
        await pause(2 * KEEPALIVE_MS);
        exchange.write(event.slice(at));
        await pause(20);
      }
      exchange.end(finish(wire) + total(wire) + DONE);
    });
    const answer = await ask(wire, {}, MODELS.uncounted);
    const text = await answer.whole();
    expect(text).toContain(': keep-alive\n\n');
    expect(wire.readStream(text)).toMatchObject({ said: 'a€ba€b', finish: 'length', error: null });
    expect((await scripted.waitForReceipt(answer.requestId)).status).toBe('incomplete');
  });
});

describe.each(WIRES.filter(({ hasChoices }) => hasChoices))('$path, native', (wire) => {
  test('§7 native: every byte as the engine wrote it, foreign members included, split anywhere; a whole receipt', async () => {
    const whole = [first(wire), ...words(wire), finish(wire), total(wire), DONE].join('');
    const bytes = new TextEncoder().encode(whole);
    const at = first(wire).length + 40;
    play(
      [
        bytes.slice(0, at),
        ...Array.from({ length: 30 }, (_, cut) => bytes.slice(at + cut * 7, at + cut * 7 + 7)),
        bytes.slice(at + 210),
      ],
      close,
    );
    const answer = await ask(wire);
    expect(await answer.whole()).toBe(whole);
    const receipt = await scripted.waitForReceipt(answer.requestId);
    expect(receipt).toMatchObject({
      status: 'incomplete',
      http_status: 200,
      usage_source: 'engine',
      usage: { input_tokens: 3, output_tokens: WORDS },
    });
    expect(receipt.cost_usd).toBe(toCostUsd(receipt));
    expect(receipt.first_token_at).not.toBeNull();
    // What the client would see is not asked for.
    expect(readUpBody(answer)).toMatchObject({ stream_options: { include_usage: true }, max_tokens: 1000 });
    expect(readUpBody(answer)['stream_options']).not.toHaveProperty('continuous_usage_stats');
  });

  test.each([
    ['engine', true],
    ['estimated', false],
  ])('§7 native, a long stream: the receipt has its counts, %s', async (source, isCounted) => {
    const many = Array.from({ length: 200 }, (_, at) => wire.event({ content: `w${at}` }));
    const half = many[0]?.slice(0, 50) ?? '';
    const end = [wire.event({ finish: 'stop' }), ...(isCounted ? [total(wire)] : []), DONE];
    // The first piece ends in the middle of an event.
    play([first(wire) + half, [many.join('').slice(half.length), ...end].join('')], close);
    const answer = await ask(wire);
    expect(await answer.whole()).toBe([first(wire), ...many, ...end].join(''));
    expect(await scripted.waitForReceipt(answer.requestId)).toMatchObject({
      status: 'completed',
      usage_source: source,
      usage: { output_tokens: isCounted ? WORDS : 200 },
    });
  });

  test('§7 native, cut in mid-event: a blank line, the error, [DONE]; failed, and the tokens count', async () => {
    const half = finish(wire).slice(0, 60);
    play([first(wire), ...words(wire), half], (exchange) => exchange.reset());
    const answer = await ask(wire);
    const text = await answer.whole();
    const sent = [first(wire), ...words(wire), half].join('');
    expect(text.startsWith(`${sent}\n\n`)).toBe(true);
    const [error, done, ...more] = readData(text.slice(sent.length));
    expect([errorEnvelopeSchema.parse(JSON.parse(error ?? '')).error.code, done, more]).toEqual([
      'upstream_disconnected',
      '[DONE]',
      [],
    ]);
    expect(await scripted.waitForReceipt(answer.requestId)).toMatchObject({
      status: 'failed',
      error_code: 'upstream_disconnected',
      usage_source: 'estimated',
      usage: { output_tokens: WORDS },
      cost_usd: '0.000000000',
    });
  });

  test('§7 native, an engine that tells its failure and its end itself: nothing follows its [DONE]; failed', async () => {
    const texts = [first(wire), ...words(wire), 'data: {"error":{"message":"boom","code":500}}\n\n', DONE];
    play(texts, close);
    const answer = await ask(wire);
    expect(await answer.whole()).toBe(texts.join(''));
    expect(await scripted.waitForReceipt(answer.requestId)).toMatchObject({
      status: 'failed',
      error_code: 'upstream_error',
      cost_usd: '0.000000000',
    });
  });

  test('§7 native, an end without a finish reason is a stop', async () => {
    play([first(wire), ...words(wire), total(wire), DONE], close);
    const answer = await ask(wire);
    await answer.whole();
    expect(await scripted.waitForReceipt(answer.requestId)).toMatchObject({
      status: 'completed',
      finish_reason: 'stop',
    });
  });

  test('§7 native, a clean end without [DONE]: it is added when the answer is whole, after an error when not', async () => {
    play([first(wire), ...words(wire), finish(wire), total(wire)], close);
    const whole = await ask(wire);
    expect(readData(await whole.whole()).at(-1)).toBe('[DONE]');
    expect((await scripted.waitForReceipt(whole.requestId)).status).toBe('incomplete');
    play([first(wire), ...words(wire)], close);
    const cut = await ask(wire);
    const [error, done] = readData(await cut.whole()).slice(-2);
    expect([errorEnvelopeSchema.parse(JSON.parse(error ?? '')).error.code, done]).toEqual([
      'upstream_disconnected',
      '[DONE]',
    ]);
    expect((await scripted.waitForReceipt(cut.requestId)).error_code).toBe('upstream_disconnected');
  });

  test('§7 native, the total deadline: no comment before it, then the error and [DONE]', async () => {
    play([first(wire), ...words(wire)], hold);
    const answer = await ask(wire);
    const text = await answer.whole();
    expect(text).not.toContain(': keep-alive');
    const [error, done] = readData(text).slice(-2);
    expect([errorEnvelopeSchema.parse(JSON.parse(error ?? '')).error.code, done]).toEqual([
      'upstream_timeout',
      '[DONE]',
    ]);
    expect(await scripted.waitForReceipt(answer.requestId)).toMatchObject({
      status: 'failed',
      error_code: 'upstream_timeout',
      usage: { output_tokens: WORDS },
    });
  });

  test.each(['close', 'reset'] as const)(
    '§7 native, the client leaves by %s: the engine sees it, what was delivered is billed',
    async (how) => {
      scripted.upstream.play(async (exchange) => {
        exchange.head(200);
        exchange.write(first(wire));
        while (exchange.write(wire.event({ content: 'word ' }))) await pause(20);
      });
      const answer = await ask(wire);
      await answer.waitFor(/(word [^]*){5}/);
      const leftMs = answer.leave(how);
      const [exchange] = scripted.upstream.find(answer.requestId);
      expect(((await exchange?.aborted) ?? Infinity) - leftMs).toBeLessThan(1000);
      const receipt = await scripted.waitForReceipt(answer.requestId);
      expect(receipt).toMatchObject({ status: 'interrupted', http_status: 200, usage_source: 'estimated' });
      expect(receipt.usage.output_tokens).toBeGreaterThanOrEqual(5);
      expect(receipt.cost_usd).toBe(toCostUsd(receipt));
    },
  );

  test('§7 native: a request or a beginning that needs a change takes the exact lane', async () => {
    const stream = [first(wire), ...words(wire), finish(wire), total(wire), DONE];
    const renamed = stream.map((text) => text.replace('"model":"engine/m"', '"model":"other"'));
    const cases: readonly (readonly [readonly string[], object])[] = [
      [stream, { n: 2 }],
      [stream, wire.name === 'chat' ? { reasoning_effort: 'none' } : { n: 2, stop: ['x'] }],
      [stream.map((text) => text.replaceAll('\n', '\r\n')), {}],
      [stream.map((text) => text.replace('data: ', 'data:')), {}],
      [[': comment\n\n', ...stream], {}],
      [[wire.event({ content: '', usage: null }), ...stream.slice(1)], {}],
      [renamed, {}],
    ];
    for (const [texts, more] of cases) {
      play(texts, close);
      const answer = await ask(wire, more);
      const text = await answer.whole();
      // Rewritten: members that OpenAI does not publish are gone.
      expect({ more, text }).toMatchObject({ text: expect.not.stringContaining('vendor') });
      expect(text.endsWith(DONE)).toBe(true);
      expect((await scripted.waitForReceipt(answer.requestId)).usage.output_tokens).toBe(WORDS);
    }
  });
});
