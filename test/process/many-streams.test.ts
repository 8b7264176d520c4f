// Many streams at once through one gateway process, wave after wave: every one whole, and the process no larger after the
// last wave than after the first. The whole of it with TURNPIKE_DEEP; figures with TURNPIKE_FIGURES. Linux only.

import { afterAll, beforeAll, expect, test } from 'vitest';

import { readRssBytes } from '../bench/process-cost.ts';
import { printFigures } from './figures.ts';
import { call, type RawAnswer } from './raw-client.ts';
import {
  buildChat,
  MODELS,
  poll,
  readData,
  type ScriptedGateway,
  startScriptedGateway,
  toToken,
} from './scripted-gateway.ts';
import { chunk, countUsage, DONE, type Exchange } from './scripted-upstream.ts';

const DEEP = process.env['TURNPIKE_DEEP'] !== undefined;
const STREAMS = DEEP ? 1_000 : 100;
const WAVES = DEEP ? 8 : 4;
/** The first waves fill heaps and pools; what comes after is compared with them. */
const WARM_WAVES = 2;
/** What a stream carries. */
const EVENTS = DEEP ? 32 : 8;
const EVENT_BYTES = DEEP ? 8_192 : 65_536;
/** How much larger than after the warm waves the process may be after the last, as a part of what it was. */
const GROWTH_MAX = 0.25;
/** And as a part of what has passed through since: a gateway that kept it all would have grown by more than all. */
const KEPT_MAX = 0.8;
const WAVE_DEADLINE_MS = 90_000;
const UNLIMITED = { limits: { rpm: null, tpm: null, concurrency: null } };
const MIB = 1024 * 1024;

let scripted: ScriptedGateway;

beforeAll(async () => {
  scripted = await startScriptedGateway({ keys: { 'workspace:acme': UNLIMITED } });
});
afterAll(() => scripted.stop());

/** All streams of a wave are open, each with its first event read, before any goes on. */
async function runWave(): Promise<void> {
  const proceed = Promise.withResolvers<void>();
  let open = 0;
  scripted.upstream.play(async (exchange) => {
    exchange.head(200);
    exchange.write(chunk({ content: 'first', usage: countUsage(1) }));
    open += 1;
    await proceed.promise;
    await writeRest(exchange);
    open -= 1;
  });
  const answers = await Promise.all(Array.from({ length: STREAMS }, () => openStream()));
  expect(open).toBe(STREAMS);
  proceed.resolve();
  let ended = 0;
  const texts = Promise.all(answers.map((answer) => answer.whole().finally(() => (ended += 1))));
  // Told below by its own await; a stream that never ends is told here, by its number.
  texts.catch(() => undefined);
  await poll(
    () => ended,
    (count) => count === STREAMS,
    WAVE_DEADLINE_MS,
  );
  for (const text of await texts) expectWhole(text);
}

async function writeRest(exchange: Exchange): Promise<void> {
  const content = 'x'.repeat(EVENT_BYTES);
  for (let sent = 2; sent <= EVENTS; sent += 1) {
    await exchange.deliver(chunk({ content, usage: countUsage(sent) }));
  }
  exchange.end(chunk({ finish: 'stop' }) + chunk({ usage: countUsage(EVENTS) }) + DONE);
}

async function openStream(): Promise<RawAnswer> {
  const headers = { authorization: `Bearer ${toToken('main')}` };
  const url = `${scripted.gateway.url}/v1/chat/completions`;
  const answer = await call(url, { headers, body: buildChat(MODELS.counted, true) });
  expect(answer.status, answer.text()).toBe(200);
  await answer.waitFor(/first/);
  return answer;
}

function expectWhole(text: string): void {
  const data = readData(text);
  expect(data).toHaveLength(EVENTS + 3);
  expect(data.at(-2)).toContain(`"completion_tokens":${EVENTS}`);
  expect(data.at(-1)).toBe('[DONE]');
}

test.skipIf(process.platform !== 'linux')(
  `§7 memory per stream is bounded: ${WAVES} waves of ${STREAMS} streams at once leave the process as it was`,
  { timeout: (WAVES + 1) * WAVE_DEADLINE_MS },
  async () => {
    const pid = scripted.gateway.workerdPid() ?? 0;
    const readMib = (): number => Math.round(readRssBytes(pid) / MIB);
    const atRest = readMib();
    const after: number[] = [];
    const tookMs: number[] = [];
    for (let wave = 0; wave < WAVES; wave += 1) {
      const startedMs = performance.now();
      await runWave();
      tookMs.push(Math.round(performance.now() - startedMs));
      after.push(readMib());
    }
    const mibAll = (WAVES * STREAMS * EVENTS * EVENT_BYTES) / MIB;
    printFigures(
      `${STREAMS} streams at once, ${mibAll} MiB in ${WAVES} waves: RSS of workerd at rest ${atRest} MiB, after each ` +
        `wave ${after.join(' ')} MiB; a wave took ${tookMs.join(' ')} ms`,
    );
    const warm = Math.max(...after.slice(0, WARM_WAVES));
    const passedSince = (mibAll * (WAVES - WARM_WAVES)) / WAVES;
    expect((after.at(-1) ?? 0) - warm).toBeLessThan(Math.min(GROWTH_MAX * warm, KEPT_MAX * passedSince));
  },
);

test('§9 one receipt per admitted request: every stream of every wave is closed in the ledger', async () => {
  const db = await scripted.gateway.getD1Database();
  const count = (): Promise<unknown> =>
    db.prepare("SELECT COUNT(*) AS closed FROM receipts WHERE status = 'completed'").first('closed');
  await poll(count, (closed) => closed === WAVES * STREAMS, 30_000);
});
