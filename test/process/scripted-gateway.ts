// A gateway for one test file: the production bundle in front of a scripted server through the real bridge, with a
// workspace, keys and models of its own. Holds what the process tests share; it asserts nothing.

import { createHash } from 'node:crypto';

import * as z from 'zod';

import type { LocalGateway } from '../../src/cli/run-locally.ts';
import { call, startCall, type RawAnswer, type RawCall } from './raw-client.ts';
import { startScriptedUpstream, type ScriptedUpstream } from './scripted-upstream.ts';
import { findFreePort, serve } from './serve.ts';

/** USD per million tokens: 1,000, 500 and 2,000 nano-USD a token. */
const PRICING = { input: '1.00', cached_input: '0.50', output: '2.00' };
const NANO_USD_PER_INPUT = 1000;
const NANO_USD_PER_CACHED = 500;
const NANO_USD_PER_OUTPUT = 2000;

/**
 * Models of every test's catalog: two whose engines count as they run, each its own way, one that is only OpenAI-like, one
 * that is asked to stream whatever the client asks, one whose streams are left as they are, one that is down, one with
 * tools, one that takes what Codex sends.
 */
export const MODELS = {
  counted: 'counted',
  timed: 'timed',
  uncounted: 'uncounted',
  assembled: 'assembled',
  native: 'native',
  down: 'down',
  able: 'able',
  codex: 'codex',
} as const;

/** Reads of receipts are limited per key, so polls take turns. */
const READERS = 20;
const WORKSPACE = 'acme';

const receiptSchema = z.looseObject({
  id: z.string(),
  status: z.string(),
  http_status: z.number().nullable(),
  error_code: z.string().nullable(),
  attempts: z.number(),
  usage: z.looseObject({ input_tokens: z.number(), cached_input_tokens: z.number(), output_tokens: z.number() }),
  usage_source: z.string(),
  cost_usd: z.string(),
  first_token_at: z.string().nullable(),
  ended_at: z.string().nullable(),
});
export type ReceiptObject = z.infer<typeof receiptSchema>;

export type ScriptedGateway = {
  readonly gateway: LocalGateway;
  readonly upstream: ScriptedUpstream;
  /** Every line that a Worker or the runtime has logged so far; lines arrive a little after their cause. */
  readonly logLines: readonly string[];
  /** Waits until everything logged before has arrived. */
  readonly settleLog: () => Promise<void>;
  readonly chat: (body: object, token?: string) => Promise<RawAnswer>;
  readonly startChat: (body: object, token?: string) => RawCall;
  /** Posts to another path. */
  readonly post: (path: string, body: object) => RawCall;
  /** The receipt as `GET /v1/receipts/{id}` has it; null for 404. */
  readonly readReceipt: (id: string) => Promise<ReceiptObject | null>;
  /** The receipt once it is closed. */
  readonly waitForReceipt: (id: string, timeoutMs?: number) => Promise<ReceiptObject>;
  readonly stop: () => Promise<void>;
};

export type GatewayOptions = {
  /** Where its stores live, for a gateway that is started again; without it they end with it. */
  readonly stateDir?: string;
  readonly vars?: Readonly<Record<string, string>>;
  /** Further entries of KEYS. */
  readonly keys?: Readonly<Record<string, unknown>>;
};

/** The token of a key id: its secret is as long as a real one and recognisable. */
export function toToken(id: string): string {
  return `tp_${id}_${createHash('sha256').update(`secret of ${id}`).digest('base64url')}`;
}

/** A key entry of the workspace, as the operator writes it. */
export function buildKey(id: string, more: object = {}): Record<string, unknown> {
  return { workspace: WORKSPACE, hash: `sha256:${createHash('sha256').update(toToken(id)).digest('hex')}`, ...more };
}

/** A chat request. */
export function buildChat(model: string, stream: boolean, more: object = {}): Record<string, unknown> {
  return { model, stream, messages: [{ role: 'user', content: 'Say hello.' }], ...more };
}

/** What a receipt's tokens cost, as it must say itself. */
export function toCostUsd({ usage }: Pick<ReceiptObject, 'usage'>): string {
  const { input_tokens: input, cached_input_tokens: cached, output_tokens: output } = usage;
  const nano = (input - cached) * NANO_USD_PER_INPUT + cached * NANO_USD_PER_CACHED + output * NANO_USD_PER_OUTPUT;
  return (nano / 1e9).toFixed(9);
}

/** Starts both; the key `main` and what `options.keys` adds are known from the start. */
export async function startScriptedGateway(options: GatewayOptions = {}): Promise<ScriptedGateway> {
  const upstream = await startScriptedUpstream();
  const logLines: string[] = [];
  const gateway = await serve({
    demo: false,
    stateDir: options.stateDir,
    upstreams: [
      { binding: 'UPSTREAM_1', baseUrl: upstream.baseUrl },
      { binding: 'UPSTREAM_2', baseUrl: `http://127.0.0.1:${await findFreePort()}/v1` },
    ],
    catalog: { text: JSON.stringify(buildCatalog()), origin: 'given' },
    keys: buildKeyEntries(options.keys ?? {}),
    vars: options.vars ?? {},
    onLog: (line) => void logLines.push(line),
  });
  let reads = 0;
  let marks = 0;

  async function readReceipt(id: string): Promise<ReceiptObject | null> {
    reads += 1;
    const headers = { authorization: `Bearer ${toToken(`reader-${reads % READERS}`)}` };
    const answer = await call(`${gateway.url}/v1/receipts/${id}`, { headers });
    const text = await answer.whole();
    if (answer.status === 404) return null;
    if (answer.status !== 200) throw new Error(`receipt ${id}: ${answer.status} ${text}`);
    return receiptSchema.parse(JSON.parse(text));
  }

  const start = (path: string, body: object, token: string): RawCall =>
    startCall(gateway.url + path, { headers: { authorization: `Bearer ${token}` }, body });
  const startChat = (body: object, token = toToken('main')): RawCall => start('/v1/chat/completions', body, token);
  return {
    gateway,
    upstream,
    logLines,
    startChat,
    async settleLog() {
      marks += 1;
      const path = `/log-mark-${marks}`;
      await (await call(gateway.url + path)).whole();
      await poll(
        () => logLines,
        (lines) => lines.some((line) => line.includes(path)),
        5_000,
      );
    },
    chat: (body, token) => startChat(body, token).answer,
    post: (path, body) => start(path, body, toToken('main')),
    readReceipt,
    async waitForReceipt(id, timeoutMs = 5_000) {
      const closed = await poll(() => readReceipt(id), isClosed, timeoutMs);
      if (closed === null) throw new Error(`there is no receipt ${id}`);
      return closed;
    },
    async stop() {
      await gateway.stop();
      await upstream.stop();
    },
  };
}

function isClosed(receipt: ReceiptObject | null): boolean {
  return receipt !== null && receipt.status !== 'in_progress';
}

/** Asks until the answer is good; rejects with the last one otherwise. */
export async function poll<T>(
  ask: () => Promise<T> | T,
  isGood: (answer: T) => boolean,
  timeoutMs: number,
): Promise<T> {
  const deadline = Date.now() + timeoutMs;
  for (;;) {
    const answer = await ask();
    if (isGood(answer)) return answer;
    if (Date.now() > deadline) throw new Error(`not within ${timeoutMs} ms: ${JSON.stringify(answer)}`);
    await pause(50);
  }
}

export function pause(durationMs: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, durationMs));
}

/** The `data:` payloads of a stream; comments are left out. */
export function readData(text: string): string[] {
  return text.split('\n\n').flatMap((event) => (event.startsWith('data: ') ? [event.slice('data: '.length)] : []));
}

const TOOLS = {
  tools: true,
  tool_choice_required: true,
  parallel_tool_calls: true,
  strict_tools: true,
  response_formats: ['text', 'json_object', 'json_schema'],
};

function buildCatalog(): unknown {
  const endpoints = ['/v1/chat/completions', '/v1/completions', '/v1/responses'];
  const shared = { pricing: PRICING, context_length: 8192, endpoints, policy: { max_n: 2 } };
  const build = (engine: string, binding = 'UPSTREAM_1'): object => ({
    ...shared,
    backends: [{ binding, upstream_model: 'engine/m', engine }],
  });
  const models: Record<keyof typeof MODELS, object> = {
    counted: build('vllm'),
    timed: build('llamacpp'),
    uncounted: build('openai'),
    assembled: { ...build('vllm'), upstream_stream: true },
    native: {
      ...build('vllm'),
      lane: 'native',
      max_output_tokens: 1000,
      policy: { max_n: 2, response_model: 'engine' },
    },
    down: build('vllm', 'UPSTREAM_2'),
    able: { ...build('vllm'), capabilities: TOOLS },
    codex: { ...build('vllm'), capabilities: TOOLS, responses_lenient: true },
  };
  return { version: 1, models };
}

function buildKeyEntries(more: Readonly<Record<string, unknown>>): Record<string, string> {
  const entries: Record<string, unknown> = {
    [`workspace:${WORKSPACE}`]: { name: 'Acme', limits: { rpm: 10_000, tpm: null, concurrency: 256 } },
    'key:main': buildKey('main'),
    ...more,
  };
  for (let at = 0; at < READERS; at += 1) {
    entries[`key:reader-${at}`] = buildKey(`reader-${at}`, { scopes: ['receipts:read'] });
  }
  return Object.fromEntries(
    Object.entries(entries).map(([name, value]) => [name, typeof value === 'string' ? value : JSON.stringify(value)]),
  );
}
