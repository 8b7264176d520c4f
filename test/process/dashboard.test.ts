// The README's chapter "From the dashboard alone", block by block: what it says to paste is pasted into the local KV and
// D1, and its effect is seen through the Worker (SPEC §2, §5, §9).

import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import * as z from 'zod';
import { type LocalGateway } from '../../src/cli/run-locally.ts';
import { ROOT, serve } from './serve.ts';

type Block = { readonly language: string; readonly name: string; readonly text: string };

const README = readFileSync(join(ROOT, 'README.md'), 'utf8');
const CHAPTER = /^## From the dashboard alone$([^]*?)^## /m.exec(README)?.[1] ?? '';
const blocks: Block[] = [...CHAPTER.matchAll(/^```(\w+) (\S+)\n([^]*?)^```$/gm)].map(
  ([, language = '', name = '', text = '']) => ({ language, name, text }),
);
const pasted = new Set<Block>();

const tokens = { old: `tp_prod-web_${'o'.repeat(43)}`, new: `tp_prod-web_${'n'.repeat(43)}` };
const CATALOG = {
  version: 1,
  models: {
    'turnpike-demo': {
      context_length: 4096,
      pricing: { input: '1000', output: '1000' },
      backends: [{ binding: 'DEMO', upstream_model: 'turnpike-demo', engine: 'vllm' }],
    },
  },
};

let gateway: LocalGateway;
beforeAll(async () => {
  gateway = await serve({
    catalog: { text: JSON.stringify(CATALOG), origin: 'given' },
    vars: { KEY_CACHE_MS: '1' },
    onLog: () => undefined,
  });
});
afterAll(() => gateway.stop());

/** The n-th block of a name, as a person would paste it: with their own hashes and ids in the marked places. */
function take(name: string, nth = 0, id = ''): Block {
  const block = blocks.filter((one) => one.name === name)[nth];
  if (block === undefined) throw new Error(`the README has no block ${name} number ${nth}`);
  pasted.add(block);
  const hash = (token: string): string => createHash('sha256').update(token).digest('hex');
  const text = block.text
    .replaceAll('THE-HASH', hash(tokens.old))
    .replaceAll('THE-NEW-HASH', hash(tokens.new))
    .replaceAll('req_THE-ID', id);
  return { ...block, text };
}

async function paste(name: string, nth = 0): Promise<void> {
  await (await gateway.getKVNamespace('KEYS')).put(name, take(name, nth).text);
}

async function run(name: string, id = ''): Promise<Record<string, unknown>[]> {
  const { results } = await (await gateway.getD1Database()).prepare(take(name, 0, id).text).all();
  return results;
}

async function chat(token: string): Promise<{ readonly status: number; readonly code: unknown; readonly id: string }> {
  const response = await fetch(`${gateway.url}/v1/chat/completions`, {
    method: 'POST',
    headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json' },
    body: JSON.stringify({ model: 'turnpike-demo', max_tokens: 4, messages: [{ role: 'user', content: 'Hello' }] }),
  });
  const { error } = z
    .looseObject({ error: z.looseObject({ code: z.string() }).optional() })
    .parse(await response.json());
  return { status: response.status, code: error?.code, id: response.headers.get('x-request-id') ?? '' };
}

async function readCredits(): Promise<Record<string, unknown>> {
  const headers = { authorization: `Bearer ${tokens.new}` };
  const response = await fetch(`${gateway.url}/v1/credits`, { headers });
  return z.record(z.string(), z.unknown()).parse(await response.json());
}

let strangers = 0;

/**
 * A ledger looks at D1 again after five seconds, and at once when a key comes that it has not seen: so the test need not
 * wait.
 */
async function bringStranger(): Promise<void> {
  strangers += 1;
  const token = `tp_stranger-${strangers}_${'s'.repeat(43)}`;
  const hash = `sha256:${createHash('sha256').update(token).digest('hex')}`;
  const entry = JSON.stringify({ workspace: 'acme', hash });
  await (await gateway.getKVNamespace('KEYS')).put(`key:stranger-${strangers}`, entry);
  await chat(token);
}

/** Entries are read from KV anew after a moment: the isolate keeps them for a millisecond here. */
const codeOf = (token: string) => expect.poll(async () => (await chat(token)).code, { timeout: 5000 });

test('§2 the README’s dashboard path: make a key, limit it, replace it, pay, look, revoke', async () => {
  await paste('workspace:acme');
  await paste('key:prod-web');
  const first = await chat(tokens.old);
  expect(first.status).toBe(200);
  expect((await chat(tokens.new)).status).toBe(401);

  await paste('key:prod-web', 1);
  await codeOf(tokens.old).toBe('rate_limit_exceeded');
  await paste('key:prod-web', 2);
  await codeOf(tokens.new).toBe(undefined);
  await codeOf(tokens.old).toBe(undefined);

  await paste('workspace:acme', 1);
  await codeOf(tokens.new).toBe('insufficient_quota');
  await run('grant');
  await run('correct');
  await bringStranger();
  await codeOf(tokens.new).toBe(undefined);
  const credits = await readCredits();
  const [balance, spent] = [Number(credits['balance_usd']), Number(credits['spent_usd'])];
  expect(spent).toBeGreaterThan(0);
  expect(credits['billing']).toBe('prepaid');
  expect(balance + spent + Number(credits['held_usd'])).toBeCloseTo(20, 6);

  await run('revoke');
  await bringStranger();
  await codeOf(tokens.new).toBe('invalid_api_key');
  await run('allow');
  await bringStranger();
  await codeOf(tokens.new).toBe(undefined);
  await paste('key:prod-web', 3);
  await codeOf(tokens.new).toBe('invalid_api_key');

  await expect.poll(async () => (await run('one', first.id)).length, { timeout: 15_000 }).toBe(1);
  expect(await run('one', first.id)).toMatchObject([{ id: first.id, workspace: 'acme', status: 'incomplete' }]);
  expect((await run('last')).length).toBeGreaterThan(0);
  expect((await run('last'))[0]).toMatchObject({ requested_model: 'turnpike-demo', output_tokens: 4 });
  expect((await run('sums')).find(({ key }) => key === 'prod-web')).toMatchObject({ requested_model: 'turnpike-demo' });
  const readLeft = async (): Promise<number> => {
    const total = (await run('sums')).reduce((sum, row) => sum + Number(row['cost_usd']), 0);
    const [account] = await run('balance');
    return Number(account?.['balance_usd']) + total;
  };
  // A flush between the two would make them differ once.
  await expect.poll(readLeft).toBeCloseTo(20, 6);

  expect(
    blocks.filter((block) => !pasted.has(block)).map(({ name }) => name),
    'blocks nobody ran',
  ).toEqual([]);
  expect(blocks).toHaveLength(14);
}, 60_000);
