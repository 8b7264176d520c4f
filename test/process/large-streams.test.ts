// Streams of many bytes: a client that hardly reads slows the engine down and is not held in memory, and events of
// megabytes pass whole up to 4 MiB, in linear time. The whole of it with TURNPIKE_DEEP; figures with TURNPIKE_FIGURES.

import { type IncomingMessage, request } from 'node:http';

import { afterAll, beforeAll, describe, expect, test } from 'vitest';

import { readRssBytes } from '../bench/process-cost.ts';
import { errorEnvelopeSchema } from '../openai/published-schema.ts';
import { printFigures } from './figures.ts';
import {
  buildChat,
  MODELS,
  pause,
  readData,
  type ScriptedGateway,
  startScriptedGateway,
  toToken,
} from './scripted-gateway.ts';
import { answerAny, chunk, countUsage, DONE, type Exchange } from './scripted-upstream.ts';

const DEEP = process.env['TURNPIKE_DEEP'] !== undefined;
const MIB = 1024 * 1024;
const IS_LINUX = process.platform === 'linux';

let scripted: ScriptedGateway;

beforeAll(async () => {
  // Room for two events of the largest size: what one left behind would be missed at the third.
  scripted = await startScriptedGateway({ vars: { ISOLATE_BYTES_MAX: String(10 * MIB) } });
});
afterAll(() => scripted.stop());

describe('§7 back-pressure: a client of 1 KB a second', () => {
  const STREAM_BYTES = (DEEP ? 50 : 32) * MIB;
  const EVENT_BYTES = 64 * 1024;
  const EVENTS = STREAM_BYTES / EVENT_BYTES;
  const SLOW_MS = DEEP ? 30_000 : 1_000;
  /** What sockets of the loopback hold on both of their sides, and a little of the two Workers. */
  const TAKEN_BYTES_MAX = 20 * MIB;
  const GROWTH_BYTES_MAX = 24 * MIB;

  /** Sends the whole stream as fast as it is taken; tells how much that was. */
  function offer(): { readonly takenBytes: () => number } {
    let taken = 0;
    scripted.upstream.play(async (exchange) => {
      exchange.head(200);
      for (let sent = 1; sent <= EVENTS; sent += 1) {
        const content = `${sent} `.padEnd(EVENT_BYTES, 'x');
        if (!(await exchange.deliver(chunk({ content, usage: countUsage(sent) })))) return;
        taken += EVENT_BYTES;
      }
      exchange.end(chunk({ finish: 'stop' }) + chunk({ usage: countUsage(EVENTS) }) + DONE);
    });
    return { takenBytes: () => taken };
  }

  test.skipIf(!IS_LINUX)(
    '§7 back-pressure: the engine is slowed, the process does not grow, the stream stays right',
    { timeout: 300_000 },
    async () => {
      const pid = scripted.gateway.workerdPid() ?? 0;
      // What a first stream of this size costs once is not what a slow one holds.
      offer();
      for await (const _ of await openUnread());
      const { takenBytes } = offer();
      const beforeBytes = readRssBytes(pid);
      const response = await openUnread();
      let largestBytes = 0;
      let text = '';
      for (const startMs = performance.now(); performance.now() - startMs < SLOW_MS; await pause(100)) {
        text += readSome(response, 102);
        largestBytes = Math.max(largestBytes, readRssBytes(pid));
      }
      const slowTaken = takenBytes();
      printFigures(
        `1 KB/s of ${STREAM_BYTES / MIB} MiB for ${SLOW_MS / 1000} s: the engine could write ` +
          `${(slowTaken / MIB).toFixed(1)} MiB; RSS of workerd ${(beforeBytes / MIB).toFixed(0)} MiB before, ` +
          `${(largestBytes / MIB).toFixed(0)} MiB at most`,
      );
      expect(slowTaken).toBeLessThan(TAKEN_BYTES_MAX);
      expect(largestBytes - beforeBytes).toBeLessThan(GROWTH_BYTES_MAX);
      response.setEncoding('latin1');
      for await (const more of response) text += String(more);
      const contents = readData(text).flatMap((data) => /"content":"(\d+) x/.exec(data)?.slice(1).map(Number) ?? []);
      expect(contents).toEqual(Array.from({ length: EVENTS }, (_, at) => at + 1));
      expect(readData(text).at(-1)).toBe('[DONE]');
      const receipt = await scripted.waitForReceipt(String(response.headers['x-request-id']));
      expect(receipt).toMatchObject({ status: 'completed', usage: { output_tokens: EVENTS } });
    },
  );

  /** Starts the stream; nothing of its body is read. */
  function openUnread(): Promise<IncomingMessage> {
    return new Promise((resolve, reject) => {
      const headers = { authorization: `Bearer ${toToken('main')}`, 'content-type': 'application/json' };
      const url = `${scripted.gateway.url}/v1/chat/completions`;
      const outgoing = request(url, { method: 'POST', agent: false, headers }, (response) => resolve(response.pause()));
      outgoing.once('error', reject).end(JSON.stringify(buildChat(MODELS.counted, true)));
    });
  }

  function readSome(response: IncomingMessage, bytes: number): string {
    const some: unknown = response.read(bytes);
    return Buffer.isBuffer(some) ? some.toString('latin1') : '';
  }
});

describe('§7 events of megabytes', () => {
  const EVENT_BYTES_MAX = 4 * MIB;
  /** The bound is looked at once per read: what the last read brings may pass. */
  const READ_BYTES_MAX = 256 * 1024;
  /** How an engine's connection hands a large event over. */
  const PIECE_BYTES = 16 * 1024;
  const FRAME = chunk({ content: '' }).length;

  /** An event of so many bytes, `data:` and its line breaks included. */
  function buildEvent(bytes: number): string {
    return chunk({ content: 'x'.repeat(bytes - FRAME) });
  }

  async function deliverInPieces(exchange: Exchange, text: string): Promise<void> {
    for (let at = 0; at < text.length; at += PIECE_BYTES) await exchange.deliver(text.slice(at, at + PIECE_BYTES));
  }

  function playEvent(event: string): void {
    scripted.upstream.play(async (exchange) => {
      exchange.head(200);
      exchange.write(chunk({ content: 'before' }));
      await deliverInPieces(exchange, event);
      exchange.end(chunk({ finish: 'stop' }) + chunk({ usage: countUsage(2) }) + DONE);
    });
  }

  async function readStream(): Promise<string[]> {
    const answer = await scripted.chat(buildChat(MODELS.counted, true));
    expect(answer.status, answer.text()).toBe(200);
    return readData(await answer.whole());
  }

  test('§7 an event of 4 MiB passes whole', async () => {
    playEvent(buildEvent(EVENT_BYTES_MAX));
    const data = await readStream();
    const sizes = data.map((text) => /"content":"(x+)"/.exec(text)?.[1]?.length ?? 0);
    expect(Math.max(...sizes)).toBe(EVENT_BYTES_MAX - FRAME);
    expect(data.at(-1)).toBe('[DONE]');
  });

  test('§7 a larger one: what came before it, one error event, [DONE]; what it held is free again', async () => {
    for (let tries = 0; tries < 4; tries += 1) {
      playEvent(buildEvent(EVENT_BYTES_MAX + READ_BYTES_MAX));
      const [before, ...last] = await readStream();
      expect(before).toContain('before');
      expect(errorEnvelopeSchema.parse(JSON.parse(last.at(-2) ?? '')).error).toMatchObject({
        type: 'server_error',
        code: 'upstream_error',
      });
      expect(last.at(-1)).toBe('[DONE]');
      expect(last.filter((data) => data.includes('xxx'))).toEqual([]);
    }
    scripted.upstream.play(answerAny);
    await readStream();
  });

  test('§7 in linear time: twice the size takes about twice as long', { timeout: 120_000 }, async () => {
    const sizes = [0.5, 1, 2, 4].map((mib) => mib * MIB);
    const bestMs: number[] = [];
    for (const size of sizes) {
      const event = buildEvent(size);
      const times: number[] = [];
      for (let tries = 0; tries < (DEEP ? 15 : 3); tries += 1) {
        playEvent(event);
        const startMs = performance.now();
        await readStream();
        times.push(performance.now() - startMs);
      }
      bestMs.push(Math.min(...times));
    }
    printFigures(
      `one event of ${sizes.map((size) => size / MIB).join(', ')} MiB: ${bestMs.map(Math.round).join(', ')} ms`,
    );
    const [small = 0] = bestMs;
    // Eight times the size: linear is 8 times as long at most, quadratic 64 times.
    expect(bestMs.at(-1)).toBeLessThan(24 * small);
  });
});
