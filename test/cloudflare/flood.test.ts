// A client in a loop on an empty bucket, inside workerd with the real ledger object: the isolate answers it, the ledger is
// left to the streams under way, and the answers are those of the ledger, counted down (SPEC §5).

import { reset } from 'cloudflare:test';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { addKey, chat, prepare, readReceipt } from './fixtures.ts';
import { type Isolate, startIsolate } from './start-isolate.ts';

beforeAll(prepare);
afterAll(reset);

const CALLS = 5000;
const CLIENTS = 20;

/** A gateway whose reserves are counted. */
function startCounted(): Pick<Isolate, 'post'> & { readonly countReserves: () => number } {
  let reserves = 0;
  const { post } = startIsolate({
    wrapLedger: (ledger) => ({
      ...ledger,
      reserve(reservation, location) {
        reserves += 1;
        return ledger.reserve(reservation, location);
      },
    }),
  });
  return { post, countReserves: () => reserves };
}

/** Tells what a wait header said, in milliseconds. */
function readWaitMs(response: Response): number {
  return Number(response.headers.get('retry-after-ms'));
}

it('§5 5,000 calls on an empty bucket: fewer than 100 reach the ledger, and every stream under way settles', async () => {
  const token = await addKey('flood', {}, { limits: { rpm: 6 } });
  const isolate = startCounted();
  const delta = (content: string): object => ({ choices: [{ index: 0, delta: { content }, finish_reason: null }] });
  const stream = [
    ...Array.from({ length: 6 }, () => ({ wait: 500, json: delta('a') })),
    { json: { choices: [{ index: 0, delta: {}, finish_reason: 'stop' }] } },
    { json: { choices: [], usage: { prompt_tokens: 3, completion_tokens: 6, total_tokens: 9 } } },
    { data: '[DONE]' },
  ];
  const script = { stream: stream.map((step): Record<string, unknown> => step) };
  const streams = await Promise.all(
    Array.from({ length: 6 }, () => isolate.post(token, chat({ stream: true }, script))),
  );
  expect(streams.map(({ status }) => status)).toEqual(Array.from({ length: 6 }, () => 200));
  const texts = Promise.all(streams.map((response) => response.text()));
  const before = isolate.countReserves();
  const statuses = new Map<number, number>();
  const startMs = Date.now();
  const loop = async (): Promise<void> => {
    for (let sent = 0; sent < CALLS / CLIENTS; sent += 1) {
      const { status } = await isolate.post(token, chat());
      statuses.set(status, (statuses.get(status) ?? 0) + 1);
    }
  };
  await Promise.all(Array.from({ length: CLIENTS }, loop));
  const earned = Math.ceil(((Date.now() - startMs) / 60_000) * 6);
  expect(statuses.get(200) ?? 0).toBeLessThanOrEqual(earned);
  expect((statuses.get(429) ?? 0) + (statuses.get(200) ?? 0)).toBe(CALLS);
  expect(isolate.countReserves() - before).toBeLessThan(100);
  for (const text of await texts) expect(text).toMatch(/data: \[DONE\]\n\n$/);
  for (const response of streams) {
    expect(await readReceipt(token, response)).toMatchObject({ status: 'completed', usage: { output_tokens: 6 } });
  }
}, 60_000);

it('§5 a repeated refusal counts its hints down, and no longer than 2 s', async () => {
  const token = await addKey('flood-hints', {}, { limits: { rpm: 1, tpm: 10_000 } });
  const isolate = startCounted();
  expect((await isolate.post(token, chat())).status).toBe(200);
  const first = await isolate.post(token, chat());
  await new Promise((resolve) => setTimeout(resolve, 1200));
  const reserves = isolate.countReserves();
  const second = await isolate.post(token, chat());
  expect([first.status, second.status, isolate.countReserves()]).toEqual([429, 429, reserves]);
  const passedMs = readWaitMs(first) - readWaitMs(second);
  expect(passedMs).toBeGreaterThanOrEqual(1100);
  expect(passedMs).toBeLessThan(2000);
  expect(Number(second.headers.get('retry-after'))).toBe(Math.ceil(readWaitMs(second) / 1000));
  expect(await second.text()).toContain(`Please try again in ${readWaitMs(second) / 1000}s.`);
  expect(second.headers.get('x-ratelimit-limit-requests')).toBe('1');
  expect(second.headers.get('x-ratelimit-remaining-requests')).toBe('0');
  expect(parseFloat(second.headers.get('x-ratelimit-reset-requests') ?? '')).toBeLessThan(
    parseFloat(first.headers.get('x-ratelimit-reset-requests') ?? ''),
  );
  expect(second.headers.get('x-request-id')).not.toBe(first.headers.get('x-request-id'));
  await new Promise((resolve) => setTimeout(resolve, 1000));
  expect((await isolate.post(token, chat())).status).toBe(429);
  expect(isolate.countReserves()).toBe(reserves + 1);
}, 10_000);

it('§5 a smaller request than the one refused is let through to the ledger, and admitted', async () => {
  const token = await addKey('flood-smaller', {}, { limits: { tpm: 500 } });
  const isolate = startCounted();
  expect((await isolate.post(token, chat({ max_tokens: 300 }))).status).toBe(200);
  const large = (): Promise<Response> => isolate.post(token, chat({ max_tokens: 490 }));
  const statuses = [
    (await large()).status,
    (await large()).status,
    (await isolate.post(token, chat({ max_tokens: 5 }))).status,
  ];
  expect(statuses).toEqual([429, 429, 200]);
  expect(isolate.countReserves()).toBe(3);
});
