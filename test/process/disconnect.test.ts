// A client that leaves, on real sockets and through both Workers: what the engine sees of it, how fast, and what the
// receipt says. With TURNPIKE_FIGURES set the milliseconds are printed.

import { afterAll, beforeAll, describe, expect, test } from 'vitest';

import { type Leaving, postAndNeverRead, type RawAnswer } from './raw-client.ts';
import { answerAny, chunk, countUsage, DONE, type Exchange } from './scripted-upstream.ts';
import {
  buildChat,
  buildKey,
  MODELS,
  pause,
  poll,
  type ReceiptObject,
  type ScriptedGateway,
  startScriptedGateway,
  toCostUsd,
  toToken,
} from './scripted-gateway.ts';

const TRIES = 20;
const FLOW_MS = 20;
const EVENTS_READ = 3;
/** Between two clients that leave in silence. */
const SPREAD_MS = 330;
const EVENT_BYTES = 64 * 1024;
/** More than loopback sockets hold on both of their sides. */
const SOCKET_BYTES_MAX = 16 * 1024 * 1024;
const single = toToken('single');

let scripted: ScriptedGateway;
const admitted: string[] = [];

beforeAll(async () => {
  scripted = await startScriptedGateway({ keys: { 'key:single': buildKey('single', { limits: { concurrency: 1 } }) } });
});
afterAll(() => scripted.stop());

/** Sends an event every 20 ms until the connection goes; tells how many went out. */
async function flow(exchange: Exchange, counted: boolean): Promise<void> {
  exchange.head(200);
  for (let sent = 1; ; sent += 1) {
    if (!exchange.write(chunk({ content: `${sent} `, ...(counted ? { usage: countUsage(sent) } : {}) }))) return;
    await pause(FLOW_MS);
  }
}

/** Sends three events and then nothing, for good. */
function fallSilent(exchange: Exchange): void {
  exchange.head(200);
  for (let sent = 1; sent <= EVENTS_READ; sent += 1) {
    exchange.write(chunk({ content: `${sent} `, usage: countUsage(sent) }));
  }
}

async function openStream(model: string, token?: string): Promise<RawAnswer> {
  const answer = await scripted.chat(buildChat(model, true), token);
  expect(answer.status, answer.text()).toBe(200);
  admitted.push(answer.requestId);
  await answer.waitFor(new RegExp(`"content":"${EVENTS_READ} "`));
  return answer;
}

/** Starts a request whose engine only thinks, and waits until the engine has it. */
async function startThinking(stream: boolean, thinkMs: number): Promise<[Exchange, (how: Leaving) => number]> {
  const arrived = Promise.withResolvers<Exchange>();
  scripted.upstream.play(async (exchange) => {
    arrived.resolve(exchange);
    await pause(thinkMs);
    if (!exchange.isGone()) answerAny(exchange);
  });
  const { leave } = scripted.startChat(buildChat(MODELS.counted, stream), single);
  const exchange = await arrived.promise;
  admitted.push(String(exchange.headers['x-request-id']));
  return [exchange, leave];
}

function findExchange(requestId: string): Exchange {
  const [exchange, ...more] = scripted.upstream.find(requestId);
  expect(more).toEqual([]);
  if (exchange === undefined) throw new Error(`nothing went up for ${requestId}`);
  return exchange;
}

/** How many deltas the client has read. */
function countDeltas(text: string): number {
  return text.match(/"content":"\d+ "/g)?.length ?? 0;
}

function expectInterrupted(receipt: ReceiptObject, source: string, tokensMin: number, tokensMax: number): void {
  expect(receipt).toMatchObject({ status: 'interrupted', http_status: 200, error_code: null, attempts: 1 });
  expect(receipt.usage_source).toBe(source);
  expect(receipt.usage.output_tokens).toBeGreaterThanOrEqual(tokensMin);
  expect(receipt.usage.output_tokens).toBeLessThanOrEqual(tokensMax);
  expect(receipt.cost_usd).toBe(toCostUsd(receipt));
}

function printFigures(what: string, figures: readonly number[]): void {
  if (process.env['TURNPIKE_FIGURES'] === undefined) return;
  const sorted = figures.toSorted((a, b) => a - b).map((value) => Math.round(value));
  const middle = (sorted[Math.floor((sorted.length - 1) / 2)]! + sorted[Math.ceil((sorted.length - 1) / 2)]!) / 2;
  // oxlint-disable-next-line no-console -- figures are asked for
  console.info(`${what}: min ${sorted[0]} median ${middle} max ${sorted.at(-1)} ms; all ${sorted.join(' ')}`);
}

/** One client that leaves while data flows: milliseconds until the engine's connection was closed, and the receipt. */
async function leaveInFlow(how: Leaving, counted: boolean): Promise<number> {
  const answer = await openStream(counted ? MODELS.counted : MODELS.uncounted, single);
  const exchange = findExchange(answer.requestId);
  const leftAtMs = answer.leave(how);
  const abortedMs = (await exchange.aborted) - leftAtMs;
  const receipt = await scripted.waitForReceipt(answer.requestId);
  const sentMax = EVENTS_READ + Math.ceil(abortedMs / FLOW_MS) + 5;
  expectInterrupted(receipt, counted ? 'engine_running' : 'estimated', countDeltas(answer.text()), sentMax);
  return abortedMs;
}

describe('§7 client gone while data flows', () => {
  test.each([
    ['close', true],
    ['reset', true],
    ['close', false],
  ] as const)(
    '§7 client gone: the engine sees a %s within a second, the receipt says so, the slot is freed (counts: %s)',
    async (how, counted) => {
      scripted.upstream.play((exchange) => flow(exchange, counted));
      const figures: number[] = [];
      // A key of one slot: each try is admitted only because the one before gave its slot back.
      for (let tries = 0; tries < TRIES; tries += 1) figures.push(await leaveInFlow(how, counted));
      printFigures(`client gone (${how}), an event each ${FLOW_MS} ms`, figures);
      expect(Math.max(...figures)).toBeLessThanOrEqual(1_000);
    },
  );
});

describe('§7 client gone in silence', () => {
  test('§7 client gone in silence: the engine sees the abort within ten seconds', async () => {
    scripted.upstream.play(fallSilent);
    const answers = await Promise.all(Array.from({ length: TRIES }, () => openStream(MODELS.counted)));
    const figures = await Promise.all(
      answers.map(async (answer, at) => {
        // Before the first comment, between it and the second, and after that.
        await pause(500 + at * SPREAD_MS);
        const leftAtMs = answer.leave('close');
        return (await findExchange(answer.requestId).aborted) - leftAtMs;
      }),
    );
    printFigures('client gone in silence', figures);
    expect(Math.max(...figures)).toBeLessThanOrEqual(10_000);
    expect(
      answers
        .at(-1)
        ?.text()
        .match(/^: keep-alive$/gm),
    ).toHaveLength(2);
    const receipts = await Promise.all(answers.map(({ requestId }) => scripted.waitForReceipt(requestId)));
    for (const receipt of receipts) expectInterrupted(receipt, 'engine_running', EVENTS_READ, EVENTS_READ);
  });
});

test('§7 back-pressure reaches the engine; a client that never read is seen to leave all the same', async () => {
  const arrived = Promise.withResolvers<Exchange>();
  let sent = 0;
  scripted.upstream.play(async (exchange) => {
    arrived.resolve(exchange);
    exchange.head(200);
    const content = 'x'.repeat(EVENT_BYTES);
    while (exchange.write(chunk({ content, usage: countUsage(sent + 1) }))) {
      sent += 1;
      await pause(1);
    }
  });
  const url = `${scripted.gateway.url}/v1/chat/completions`;
  const leave = postAndNeverRead(url, single, buildChat(MODELS.counted, true));
  const exchange = await arrived.promise;
  admitted.push(String(exchange.headers['x-request-id']));
  await poll(
    () => sent * EVENT_BYTES,
    (bytes) => bytes > 3 * SOCKET_BYTES_MAX,
    20_000,
  );
  const leftAtMs = leave();
  expect((await exchange.aborted) - leftAtMs).toBeLessThanOrEqual(1_000);
  // What the engine wrote beyond the sockets' own buffers stayed with the engine.
  const receipt = await scripted.waitForReceipt(admitted.at(-1)!);
  expectInterrupted(receipt, 'engine_running', 1, SOCKET_BYTES_MAX / EVENT_BYTES);
});

describe('§7 client gone before the answer began', () => {
  test.each([false, true])(
    '§6 request.signal: a reset stops the engine at once; nothing is owed (stream: %s)',
    async (stream) => {
      const [exchange, leave] = await startThinking(stream, 30_000);
      const leftAtMs = leave('reset');
      expect((await exchange.aborted) - leftAtMs).toBeLessThanOrEqual(1_000);
      const receipt = await scripted.waitForReceipt(admitted.at(-1)!);
      expect(receipt).toMatchObject({ status: 'interrupted', http_status: 499, usage_source: 'none', attempts: 1 });
      expect(receipt.cost_usd).toBe('0.000000000');
    },
  );

  test('§6 non-stream: a plain close is not seen before the answer, which is then billed as generated', async () => {
    const [exchange, leave] = await startThinking(false, 1_000);
    leave('close');
    await poll(exchange.isGone, Boolean, 3_000);
    const receipt = await scripted.waitForReceipt(admitted.at(-1)!);
    expect(receipt).toMatchObject({ status: 'completed', http_status: 200, usage: { output_tokens: 2 } });
    expect(receipt.cost_usd).toBe(toCostUsd(receipt));
  });

  test('§6 the hold: after it a plain close is seen with the stream’s first bytes', async () => {
    const [exchange, leave] = await startThinking(true, 30_000);
    const leftAtMs = leave('close');
    expect((await exchange.aborted) - leftAtMs).toBeLessThanOrEqual(10_000);
    const receipt = await scripted.waitForReceipt(admitted.at(-1)!);
    expect(receipt).toMatchObject({ status: 'interrupted', http_status: 200, usage_source: 'none' });
  });
});

test('§7 order: the first delta reaches the client while the engine is still writing', async () => {
  const seen = Promise.withResolvers<void>();
  scripted.upstream.play(async (exchange) => {
    exchange.head(200);
    exchange.write(chunk({ content: 'first' }));
    // Nothing more is written until the client has the first delta, so a gateway that gathers would hang here.
    await seen.promise;
    exchange.write(chunk({ content: 'second' }) + chunk({ finish: 'stop' }));
    exchange.end(chunk({ usage: countUsage(2) }) + DONE);
  });
  const answer = await scripted.chat(buildChat(MODELS.counted, true), single);
  admitted.push(answer.requestId);
  await answer.waitFor(/first/);
  expect(answer.text()).not.toContain('second');
  expect(findExchange(answer.requestId).isGone()).toBe(false);
  seen.resolve();
  expect(await answer.whole()).toMatch(/second[^]*data: \[DONE\]\n\n$/);
});

test('§9 one receipt per admitted request: in D1, in the log, and the ledger holds no slot', async () => {
  expect(new Set(admitted).size).toBe(admitted.length);
  const db = await scripted.gateway.getD1Database();
  const listIds = async (): Promise<string[]> => (await db.prepare('SELECT id FROM receipts').raw()).flat().map(String);
  const ids = await poll(listIds, (rows) => rows.length >= admitted.length, 15_000);
  expect(ids.toSorted()).toEqual(admitted.toSorted());
  for (const id of admitted) {
    expect(scripted.logLines.filter((line) => line.includes('"event":"request"') && line.includes(id))).toHaveLength(1);
  }
  scripted.upstream.play(answerAny);
  expect((await scripted.chat(buildChat(MODELS.counted, false), single)).status).toBe(200);
});
