// Streams that end before their engine has counted for good: the receipt has the last running counts, choice by choice and
// prompt by prompt, on every endpoint, and the client never saw one. Estimates where an engine does not count.

import { afterAll, beforeAll, describe, expect, test } from 'vitest';

import { type EventParts, type Wire, WIRES } from './endpoint-wire.ts';
import { count, type Source, type Tokens } from './fault-rows.ts';
import {
  pause,
  type ReceiptObject,
  type ScriptedGateway,
  startScriptedGateway,
  toCostUsd,
} from './scripted-gateway.ts';
import { DONE } from './scripted-upstream.ts';

type Case = {
  readonly name: string;
  readonly model: 'counted' | 'timed' | 'uncounted';
  readonly asks?: object;
  readonly events: readonly EventParts[];
  readonly tokens: Tokens;
  readonly source?: Source;
  /** Text completions alone have several prompts. */
  readonly textOnly?: true;
};

/** Counts so far as vLLM and SGLang send them: those of the event's own choice. */
const at = (index: number, input: number, output: number): EventParts => ({
  index,
  content: 'x',
  usage: count(input, output),
});
/** The same by llama.cpp, which tells the prompt's cached part apart. */
const timed = (index: number, input: number, output: number): EventParts => ({
  index,
  content: 'x',
  more: { timings: { cache_n: 1, prompt_n: input - 1, predicted_n: output, predicted_ms: 7.5 } },
});
const silent = (index: number): EventParts => ({ index, content: 'x' });

const n2 = { n: 2 };
const prompts = { prompt: ['Say hello.', 'Say it twice.'] };

const CASES: readonly Case[] = [
  { name: 'vLLM, one choice', model: 'counted', events: [at(0, 3, 1), at(0, 3, 4)], tokens: [3, 4] },
  {
    name: 'vLLM, n = 2',
    model: 'counted',
    asks: n2,
    events: [at(0, 3, 1), at(1, 3, 1), at(0, 3, 4), at(1, 3, 2)],
    tokens: [3, 6],
  },
  {
    name: 'vLLM, n = 2, one choice done',
    model: 'counted',
    asks: n2,
    events: [at(0, 3, 1), { ...at(0, 3, 2), finish: 'stop' }, at(1, 3, 5)],
    tokens: [3, 7],
  },
  {
    name: 'vLLM, n = 2, one choice not begun',
    model: 'counted',
    asks: n2,
    events: [at(1, 3, 1), at(1, 3, 2)],
    tokens: [3, 2],
  },
  { name: 'llama.cpp, one choice', model: 'timed', events: [timed(0, 3, 1), timed(0, 3, 4)], tokens: [3, 4] },
  {
    name: 'llama.cpp, n = 2',
    model: 'timed',
    asks: n2,
    events: [timed(0, 3, 1), timed(1, 3, 1), timed(1, 3, 4)],
    tokens: [3, 5],
  },
  {
    name: 'no counts, n = 2',
    model: 'uncounted',
    asks: n2,
    events: [silent(0), silent(1), silent(1)],
    tokens: [null, 3],
    source: 'estimated',
  },
  {
    name: 'vLLM, two prompts',
    model: 'counted',
    asks: prompts,
    textOnly: true,
    events: [at(0, 3, 1), at(1, 5, 1), at(1, 5, 4)],
    tokens: [8, 5],
  },
  {
    name: 'vLLM, two prompts, n = 2',
    model: 'counted',
    asks: { ...prompts, ...n2 },
    textOnly: true,
    events: [at(0, 3, 1), at(1, 3, 2), at(2, 5, 3), at(3, 5, 4), at(2, 5, 4)],
    tokens: [8, 11],
  },
  {
    name: 'llama.cpp, two prompts',
    model: 'timed',
    asks: prompts,
    textOnly: true,
    events: [timed(0, 3, 1), timed(1, 5, 1), timed(0, 3, 4)],
    tokens: [8, 5],
  },
  {
    name: 'no counts, two prompts',
    model: 'uncounted',
    asks: prompts,
    textOnly: true,
    events: [silent(0), silent(1)],
    tokens: [null, 2],
    source: 'estimated',
  },
];

/** How each engine is asked for counts while it runs: one that is only OpenAI-like has no way. */
const ASKED: Readonly<Record<Case['model'], RegExp>> = {
  counted: /"continuous_usage_stats":true/,
  timed: /"timings_per_token":true/,
  uncounted: /"include_usage":true\}/,
};

const LAST = 'last';
let scripted: ScriptedGateway;

beforeAll(async () => {
  scripted = await startScriptedGateway({ vars: { KEEPALIVE_MS: '100' } });
});
afterAll(() => scripted.stop());

/** The case's events, the last of them to be known again by what it says. */
function writeEvents(wire: Wire, { events }: Case): string {
  return events
    .map((event, place) => wire.event(place === events.length - 1 ? { ...event, content: LAST } : event))
    .join('');
}

function expectCounts({ tokens, source = 'engine_running' }: Case, receipt: ReceiptObject): void {
  const [input, output] = tokens;
  expect(receipt).toMatchObject({ usage_source: source, usage: { output_tokens: output } });
  if (input === null) expect(receipt.usage.input_tokens).toBeGreaterThan(0);
  else expect(receipt.usage.input_tokens).toBe(input);
}

describe.each(WIRES.map((wire) => [wire.name, wire] as const))('§7 running counts: %s', (name, wire) => {
  const cases = CASES.filter(({ textOnly, asks }) => {
    return (name === 'text' || textOnly === undefined) && (wire.hasChoices || asks === undefined);
  });

  test.each(cases.map((one) => [one.name, one] as const))(
    '§9 %s: a client that left pays for the last of them',
    async (_name, one) => {
      scripted.upstream.play((exchange) => {
        exchange.head(200);
        exchange.write(writeEvents(wire, one));
      });
      const answer = await scripted.post(wire.path, wire.ask(one.model, true, one.asks)).answer;
      await answer.waitFor(new RegExp(`"${LAST}"`));
      answer.leave('close');
      const receipt = await scripted.waitForReceipt(answer.requestId, 10_000);
      expect(receipt).toMatchObject({ status: 'interrupted', http_status: 200, error_code: null });
      expectCounts(one, receipt);
      expect(receipt.cost_usd).toBe(toCostUsd(receipt));
      expect(receipt.cost_usd).not.toBe('0.000000000');
      expect(answer.text().replaceAll('"usage":null', '')).not.toMatch(/usage|timings|prompt_tokens/);
      expect(scripted.upstream.find(answer.requestId)[0]?.body).toMatch(ASKED[one.model]);
    },
  );

  test.each(cases.map((one) => [one.name, one] as const))(
    '§7 %s: an engine that broke is shown by its last, and costs nothing',
    async (_name, one) => {
      scripted.upstream.play((exchange) => {
        exchange.head(200);
        exchange.end(writeEvents(wire, one));
      });
      const answer = await scripted.post(wire.path, wire.ask(one.model, true, one.asks)).answer;
      const { deltas, usage, error } = wire.readStream(await answer.whole());
      expect(error?.code).toBe(wire.toShownCode('upstream_disconnected'));
      expect(deltas).toBe(one.events.length);
      const receipt = await scripted.waitForReceipt(answer.requestId);
      expect(receipt).toMatchObject({ status: 'failed', cost_usd: '0.000000000' });
      expectCounts(one, receipt);
      const { input_tokens, output_tokens } = receipt.usage;
      if (one.source === 'estimated') expect(usage).toBeNull();
      else expect(usage).toMatchObject({ input: input_tokens, output: output_tokens });
    },
  );

  test('§7 what was counted while it ran is not added to what is counted at the end', async () => {
    scripted.upstream.play((exchange) => {
      exchange.head(200);
      const choices = wire.hasChoices ? [0, 1] : [0];
      const words = choices.map((index) => wire.event(at(index, 3, 1)));
      const ends = choices.map((index) => wire.event({ index, finish: 'stop', usage: count(3, 2) }));
      exchange.end([...words, ...ends, wire.event({ usage: count(3, 4) }), DONE].join(''));
    });
    const answer = await scripted.post(wire.path, wire.ask('counted', true, wire.hasChoices ? n2 : {})).answer;
    const { usage } = wire.readStream(await answer.whole());
    expect(usage).toMatchObject({ input: 3, output: 4 });
    const receipt = await scripted.waitForReceipt(answer.requestId);
    expect(receipt).toMatchObject({ status: 'completed', usage_source: 'engine' });
    expect(receipt.usage).toMatchObject({ input_tokens: 3, output_tokens: 4 });
    expect(receipt.cost_usd).toBe(toCostUsd(receipt));
  });

  test('§6 §9 a client that left a JSON answer put together pays for the last of them, and the engine is left', async () => {
    const arrived = Promise.withResolvers<string>();
    scripted.upstream.play((exchange) => {
      exchange.head(200);
      exchange.write(wire.event(at(0, 3, 1)) + wire.event(at(0, 3, 4)));
      arrived.resolve(String(exchange.headers['x-request-id']));
    });
    const call = scripted.post(wire.path, wire.ask('assembled', false));
    const requestId = await arrived.promise;
    await pause(300);
    call.leave('reset');
    const receipt = await scripted.waitForReceipt(requestId);
    expect(receipt).toMatchObject({ status: 'interrupted', http_status: 499, usage_source: 'engine_running' });
    expect(receipt.usage).toMatchObject({ input_tokens: 3, output_tokens: 4 });
    expect(receipt.cost_usd).toBe(toCostUsd(receipt));
    await scripted.upstream.find(requestId)[0]?.aborted;
  });
});
