// Models, requests and answers for tests of the wire: built through the real parsers, so that defaults are the real
// ones.

import { readFileSync } from 'node:fs';
import { type GatewayError } from '../../src/core/errors.ts';
import { type JsonBody, parseJsonBody } from '../../src/core/json-body.ts';
import { parseModelCatalog, type ResolvedModel, resolveModel } from '../../src/core/model-catalog.ts';
import { type Engine } from '../../src/core/model-entry.ts';
import { type Result } from '../../src/core/result.ts';
import { createSseParser } from '../../src/core/sse.ts';
import { chatCompletions } from '../../src/openai/chat-completions.ts';
import { responses } from '../../src/openai/responses.ts';
import { type AnswerContext, type Endpoint, type InferenceRequest, type Progress } from '../../src/openai/endpoint.ts';
import { parsePublishedStream } from './published-schema.ts';

export type Preset = 'boardwalk' | 'springboards' | 'boole' | undefined;

export type ContextOptions = {
  readonly engine?: Engine;
  readonly preset?: Preset;
  /** The catalog entry's other fields. */
  readonly entry?: Readonly<Record<string, unknown>>;
  readonly policy?: Readonly<Record<string, unknown>>;
  /** Fields of the request body beside model and messages. */
  readonly body?: Readonly<Record<string, unknown>>;
  readonly requestedModel?: string;
};

/** Everything a model can have. */
export const ALL_CAPABILITIES = {
  tools: true,
  tool_choice_required: true,
  parallel_tool_calls: true,
  strict_tools: true,
  response_formats: ['text', 'json_object', 'json_schema'],
  logprobs: true,
  images: true,
  echo: true,
  suffix: true,
};

export function buildResolved(options: ContextOptions = {}): ResolvedModel {
  const { engine = 'vllm', preset, entry = {}, policy = {}, requestedModel = 'support' } = options;
  const backend = { binding: 'UPSTREAM_1', upstream_model: 'org/Model-7B', engine };
  const backends = [{ ...backend, developer_role: entry['developer_role'] ?? 'system' }];
  const model = {
    aliases: ['support'],
    capabilities: ALL_CAPABILITIES,
    backends,
    ...entry,
    policy,
    ...(preset ? { preset } : {}),
  };
  const text = JSON.stringify({ version: 1, models: { 'support-agent': model } });
  const catalog = parseModelCatalog(text, new Set(['UPSTREAM_1']));
  if (!catalog.ok) throw new Error(catalog.error);
  const caller = {
    keyId: 'k',
    workspaceId: 'acme',
    scopes: [],
    models: ['*'],
    workspaceLimits: {},
    keyLimits: null,
    location: null,
    billing: 'postpaid' as const,
  };
  const resolved = resolveModel(catalog.value, requestedModel, caller);
  if (!resolved.ok) throw new Error(`${resolved.error.kind}: ${[...catalog.value.faulty.values()].join()}`);
  return resolved.value;
}

export function parseBody(text: string): JsonBody {
  const body = parseJsonBody(new TextEncoder().encode(text));
  if (!body.ok) throw new Error(`no body: ${JSON.stringify(body.error)}`);
  return body.value;
}

/** Parses a request given as text, or as the fields beside model and messages. */
export function parseRequest(
  body: string | Readonly<Record<string, unknown>>,
  options: ContextOptions = {},
): Result<InferenceRequest, GatewayError> {
  const fields = { model: 'support', messages: [{ role: 'user', content: 'Hi' }] };
  const text = typeof body === 'string' ? body : JSON.stringify({ ...fields, ...body });
  return chatCompletions.parseRequest(parseBody(text), buildResolved(options));
}

/** A request that must pass. */
export function buildRequest(
  body: string | Readonly<Record<string, unknown>> = {},
  options: ContextOptions = {},
): InferenceRequest {
  const request = parseRequest(body, options);
  if (!request.ok) throw new Error(JSON.stringify(request.error));
  return request.value;
}

export function buildContext(options: ContextOptions = {}): AnswerContext {
  const request = buildRequest({ stream: true, ...options.body }, options);
  return {
    request,
    backend: request.resolved.backends[0],
    requestId: 'req_0123456789',
    createdSeconds: 1_796_000_000,
    now: () => 1_796_000_000_500,
  };
}

/** A streamed Responses request. */
export function parseResponses(
  body: string | Readonly<Record<string, unknown>>,
  options: ContextOptions = {},
): Result<InferenceRequest, GatewayError> {
  const fields = { model: 'support', input: 'Hi', stream: true };
  const text = typeof body === 'string' ? body : JSON.stringify({ ...fields, ...body });
  return responses.parseRequest(parseBody(text), buildResolved(options));
}

/** What an answer to it is made with. */
export function buildResponsesContext(options: ContextOptions = {}): AnswerContext & { request: InferenceRequest } {
  const request = parseResponses(options.body ?? {}, options);
  if (!request.ok) throw new Error(JSON.stringify(request.error));
  return { ...buildContext(), request: request.value, backend: request.value.resolved.backends[0] };
}

/** A capture of a true llama-server. */
export function readCapture(name: string): string {
  return readFileSync(new URL(`../fixtures/llama-server/${name}.txt`, import.meta.url), 'utf8');
}

/** An upstream stream of these chunks, with [DONE] behind them unless told otherwise. */
export function toSse(chunks: readonly unknown[], done = true): string {
  const events = chunks.map((event) => `data: ${JSON.stringify(event)}\n\n`);
  return events.join('') + (done ? 'data: [DONE]\n\n' : '');
}

/** A chunk as an engine sends it, with one choice. */
export function chunk(delta: object | null, rest: Readonly<Record<string, unknown>> = {}): Record<string, unknown> {
  const { finish_reason = null, index = 0, logprobs, ...top } = rest;
  const choice = { index, delta, finish_reason, ...(logprobs === undefined ? {} : { logprobs }) };
  return {
    id: 'chatcmpl-1',
    object: 'chat.completion.chunk',
    created: 1_796_000_001,
    model: 'org/Model-7B',
    choices: delta === null ? [] : [choice],
    ...top,
  };
}

export const USAGE = { prompt_tokens: 3, completion_tokens: 2, total_tokens: 5 };

/** The normal upstream of WIRE §7: role, "Hi", finish, usage. */
export const NORMAL = [
  chunk({ role: 'assistant', content: '' }),
  chunk({ content: 'Hi' }),
  chunk({}, { finish_reason: 'stop' }),
  chunk(null, { usage: USAGE }),
];

export type Choice = {
  readonly index: number;
  readonly delta: Readonly<Record<string, unknown>>;
  readonly finish_reason: string | null;
  readonly logprobs?: unknown;
};
export type Chunk = {
  readonly id: string;
  readonly object: string;
  readonly created: number;
  readonly model: string;
  readonly choices: readonly Choice[];
  readonly usage?: Readonly<Record<string, unknown>>;
};
export type ErrorChunk = { readonly error: Readonly<Record<string, unknown>> };

/** What a client saw of a stream, and what the gateway knows of it. */
export type Relayed = {
  readonly text: string;
  readonly chunks: readonly Chunk[];
  readonly errors: readonly ErrorChunk[];
  readonly usages: readonly Readonly<Record<string, unknown>>[];
  readonly progress: Progress;
  readonly outcome: 'finished' | 'failed';
};

/** Runs an upstream text through parser and translator as the relay does and ends it so; every chunk must be as published. */
export function relay(upstream: string, context = buildContext(), endpoint: Endpoint = chatCompletions): Relayed {
  const translator = endpoint.createTranslator(context);
  const parser = createSseParser(4 * 1024 * 1024);
  const { events } = parser.push(upstream);
  const leftover = parser.end();
  let text = '';
  let error: GatewayError | null = null;
  let done = false;
  for (const event of leftover !== null && isJson(leftover.data) ? [...events, leftover] : events) {
    const translated = translator.push(event);
    if (translated.type === 'output') text += translated.text;
    if (translated.type === 'fault') error = translated.error;
    done = translated.type === 'done';
    if (translated.type !== 'output') break;
  }
  if (error === null && !done && !translator.isComplete())
    error = { kind: 'upstream', failure: 'upstream_disconnected' };
  text += error === null ? translator.finish() : translator.fail(error);
  parsePublishedStream(text, endpoint === chatCompletions ? 'chat' : 'text');
  return { ...readClient(text), progress: translator.progress(), outcome: error === null ? 'finished' : 'failed' };
}

/** A client's view of a stream; throws at anything that is not the frame of SPEC §7. */
export function readClient(text: string): Omit<Relayed, 'progress' | 'outcome'> {
  const parts = text.split('\n\n');
  if (parts.pop() !== '' || parts.pop() !== 'data: [DONE]')
    throw new Error(`no [DONE] at the end: ${text.slice(-200)}`);
  const objects = parts.map((part): Chunk | ErrorChunk => {
    if (!part.startsWith('data: {') || part.includes('\n')) throw new Error(`not one line of JSON: ${part}`);
    const object: Chunk | ErrorChunk = JSON.parse(part.slice('data: '.length));
    return object;
  });
  const chunks = objects.filter((object): object is Chunk => !('error' in object));
  return {
    text,
    chunks,
    errors: objects.filter((object): object is ErrorChunk => 'error' in object),
    usages: chunks.flatMap(({ usage }) => (usage === undefined ? [] : [usage])),
  };
}

/** Everything one choice said under a name of its delta, joined. */
export function joinDeltas(chunks: readonly Chunk[], name: string, index = 0): string {
  return chunks
    .flatMap(({ choices }) => choices)
    .filter((choice) => choice.index === index)
    .map(({ delta }) => (typeof delta[name] === 'string' ? delta[name] : ''))
    .join('');
}

function isJson(text: string): boolean {
  try {
    return typeof JSON.parse(text) === 'object';
  } catch {
    return false;
  }
}
