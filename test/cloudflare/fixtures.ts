// What the tests inside workerd have in common: keys, workspaces and a catalog in the real KV, the tables in the real
// D1, and calls through the Worker's own door.

import { applyD1Migrations } from 'cloudflare:test';
import { env, exports } from 'cloudflare:workers';

/** Steps and answers the scripted engine understands. */
export type EngineScript = {
  readonly throw?: true;
  readonly status?: number;
  readonly body?: string;
  readonly json?: unknown;
  readonly stream?: readonly Record<string, unknown>[];
};

const SECRET = 'workerd-test-secret-not-for-use-anywhere-00';

/** A chat body with a script for the engine. */
export function chat(fields: Record<string, unknown> = {}, script?: EngineScript): string {
  return JSON.stringify({
    model: 'test-model',
    messages: [{ role: 'user', content: 'Hello' }],
    ...(script === undefined ? {} : { x_script: script }),
    ...fields,
  });
}

/** The inference endpoints. */
export const INFERENCE_PATHS = ['/v1/chat/completions', '/v1/completions', '/v1/responses'] as const;
export type InferencePath = (typeof INFERENCE_PATHS)[number];

/** What makes of a chat body that of another endpoint: its own prompt, and its own name for the limit. */
export function toFieldsOf(path: InferencePath, limit?: number): Record<string, unknown> {
  switch (path) {
    case '/v1/chat/completions':
      return { max_tokens: limit };
    case '/v1/completions':
      return { messages: undefined, prompt: 'Hello', max_tokens: limit };
    case '/v1/responses':
      return { messages: undefined, input: 'Hello', max_output_tokens: limit };
  }
}

/** A choice of an engine's streamed chunk: responses ask engines by chat. */
export function toEngineChoice(path: InferencePath, text: string | null, finish_reason: string | null = null): object {
  return path === '/v1/completions'
    ? { index: 0, text: text ?? '', finish_reason }
    : { index: 0, delta: text === null ? {} : { content: text }, finish_reason };
}

/** Puts the tables and a catalog in place. */
export async function prepare(): Promise<void> {
  await applyD1Migrations(env.DB, env.TEST_MIGRATIONS);
  await env.CATALOG.put('catalog', JSON.stringify(CATALOG));
}

/** Puts a key and its workspace into KV and returns the token. Every id of its own: isolates remember entries. */
export async function addKey(
  id: string,
  key: Record<string, unknown> = {},
  workspace: Record<string, unknown> = {},
): Promise<string> {
  const token = `tp_${id}_${SECRET}`;
  const workspaceId = typeof key['workspace'] === 'string' ? key['workspace'] : `ws-${id}`;
  await env.KEYS.put(`workspace:${workspaceId}`, JSON.stringify(workspace));
  await env.KEYS.put(`key:${id}`, JSON.stringify({ workspace: workspaceId, hash: await hash(token), ...key }));
  return token;
}

/** The hash of a token as a key entry has it. */
export async function hash(token: string): Promise<string> {
  const digest = await crypto.subtle.digest('SHA-256', new TextEncoder().encode(token));
  const hex = [...new Uint8Array(digest)].map((byte) => byte.toString(16).padStart(2, '0')).join('');
  return `sha256:${hex}`;
}

/** Posts to an inference endpoint. */
export async function post(
  token: string | null,
  body: BodyInit,
  headers: Record<string, string> = {},
  path = '/v1/chat/completions',
): Promise<Response> {
  return exports.default.fetch(`https://turnpike.test${path}`, {
    method: 'POST',
    body,
    headers: {
      'content-type': 'application/json',
      ...(token === null ? {} : { authorization: `Bearer ${token}` }),
      ...headers,
    },
  });
}

/** Reads with a key. */
export async function get(token: string | null, path: string): Promise<Response> {
  const headers: Record<string, string> = token === null ? {} : { authorization: `Bearer ${token}` };
  return exports.default.fetch(`https://turnpike.test${path}`, { headers });
}

/** The envelope of an error answer. */
export async function readError(response: Response): Promise<Record<string, unknown>> {
  const { error } = await response.json<{ error: Record<string, unknown> }>();
  return error;
}

/** The data lines of a stream. */
export async function readEvents(response: Response): Promise<string[]> {
  const text = await response.text();
  return text
    .split('\n\n')
    .filter((block) => block.startsWith('data: '))
    .map((block) => block.slice('data: '.length));
}

/** The receipt of an answer, once it has the awaited status. */
export async function readReceipt(
  token: string,
  response: Response,
  status?: string,
): Promise<Record<string, unknown>> {
  const id = response.headers.get('x-request-id') ?? '';
  for (let tries = 0; ; tries += 1) {
    const answer = await get(token, `/v1/receipts/${id}`);
    const receipt = await answer.json<Record<string, unknown>>();
    const done = status === undefined ? receipt['status'] !== 'in_progress' : receipt['status'] === status;
    if ((answer.status === 200 && done) || tries > 40) return receipt;
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
}

/** What the engine got for an answer's request. */
export async function readRecorded(
  response: Response,
): Promise<{ path: string; text: string; headers: Record<string, string>; aborted: boolean } | null> {
  const id = response.headers.get('x-request-id') ?? '';
  return (await env.UPSTREAM_1.fetch(`https://engine.test/recorded/${id}`)).json();
}

/** A workspace without limits, for tests that send much. */
export const UNLIMITED = { limits: { rpm: null, tpm: null, concurrency: null } };

const backend = { binding: 'UPSTREAM_1', upstream_model: 'engine-model', engine: 'vllm' };
const able = {
  context_length: 32768,
  capabilities: {
    tools: true,
    tool_choice_required: true,
    parallel_tool_calls: true,
    strict_tools: true,
    response_formats: ['text', 'json_object', 'json_schema'],
    logprobs: true,
    images: true,
    echo: true,
    suffix: true,
  },
  backends: [backend],
};
const toggle = { control: 'chat_template_kwargs' };
/** The models of test/cloudflare/documents: one per reference document, under the name it uses, and what else they need. */
const REFERENCE_MODELS = {
  'support-agent': { ...able, preset: 'boardwalk', reasoning: toggle, revisions: { rev_7: { backends: [backend] } } },
  'flint-alpha': { ...able, preset: 'springboards', reasoning: toggle, aliases: ['flint-alpha-2026-10-01'] },
  'llama-3.3-70b-instruct': { ...able, preset: 'boole' },
  'no-preset': { ...able, reasoning: { control: 'reasoning_effort' } },
  'no-strict-tools': { ...able, capabilities: { ...able.capabilities, strict_tools: false } },
  'unread-unable': { preset: 'springboards', backends: [backend] },
  'unknown-drop': { ...able, policy: { unknown_fields: 'drop' } },
  'unknown-reject': { ...able, policy: { unknown_fields: 'reject' } },
  'kwarg-named': { ...able, reasoning: { ...toggle, kwarg: 'thinking' } },
  'reasoning-uncontrolled': { ...able, reasoning: { control: 'none' } },
  'reasoning-unknown': { ...able },
  'field-reasoning': { ...able, reasoning: toggle, policy: { reasoning_field: 'reasoning' } },
  'field-reasoning-content': { ...able, reasoning: toggle, policy: { reasoning_field: 'reasoning_content' } },
  'few-levels': { ...able, reasoning: { control: 'reasoning_effort', levels: ['low', 'high'] } },
  'thinking-assembled': { ...able, preset: 'springboards', reasoning: toggle, upstream_stream: true },
  'tools-alone': { capabilities: { tools: true, response_formats: ['text', 'json_object'] }, backends: [backend] },
  'developer-passes': { backends: [{ ...backend, developer_role: 'pass' }] },
  'ollama-served': { ...able, policy: { max_n: 8 }, backends: [{ ...backend, engine: 'ollama' }] },
  'native-served': { ...able, responses: 'native' },
  'native-assembled': { ...able, responses: 'native', upstream_stream: true },
  'codex-served': { ...able, responses_lenient: true },
  'open-responses': { ...able, responses_done: true },
  'openai-served': { ...able, backends: [{ ...backend, engine: 'openai' }] },
  'org/Model-7B': { ...able, aliases: ['org/alias/of it', 'model-7b-2026-11-30'] },
  'name with spaces': { backends: [backend] },
  'at@home': {
    backends: [backend],
    revisions: { 'r/1': { backends: [{ ...backend, upstream_model: 'at-home-r1' }] } },
  },
  'ünï-码/🙂': { backends: [backend] },
  'clash-one': { backends: [backend], aliases: ['clashing'] },
  'clash-two': { backends: [backend], aliases: ['clashing'] },
  misspelt: { backends: [{ ...backend, engine: 'vlllm' }], aliases: ['misspelt-alias'] },
  'full-entry': {
    owned_by: 'acme',
    created: 1789516800,
    aliases: ['full-alias'],
    preset: 'springboards',
    endpoints: ['/v1/chat/completions', '/v1/completions'],
    context_length: 32768,
    max_output_tokens: 8192,
    capabilities: {
      ...able.capabilities,
      strict_tools: false,
      images: false,
      response_formats: ['text', 'json_object'],
    },
    reasoning: { ...toggle, levels: ['none', 'high'] },
    pricing: { input: '0.15', cached_input: '0.075', output: '0.60' },
    backends: [backend],
    revisions: { '2026-11-01': { backends: [backend] } },
  },
};
const CATALOG = {
  version: 1,
  models: {
    'test-model': {
      owned_by: 'acme',
      created: 1789516800,
      aliases: ['test-alias'],
      context_length: 4096,
      max_output_tokens: 1024,
      pricing: { input: '0.15', cached_input: '0.075', output: '0.60' },
      backends: [backend],
      revisions: { '2026-11-01': { backends: [{ ...backend, upstream_model: 'engine-model-2026-11-01' }] } },
    },
    'unlimited-model': { backends: [backend] },
    capable: { max_output_tokens: 1024, capabilities: { logprobs: true, echo: true }, backends: [backend] },
    'on-request': { preset: 'springboards', backends: [backend] },
    streamed: {
      upstream_stream: true,
      context_length: 4096,
      pricing: { input: '1', output: '2' },
      backends: [backend],
    },
    'completions-only': { endpoints: ['/v1/completions'], backends: [backend] },
    ...REFERENCE_MODELS,
    private: { visibility: ['ws-owner'], backends: [backend] },
    broken: { backends: [{ binding: 'UPSTREAM_9', upstream_model: 'x', engine: 'vllm' }] },
  },
};
