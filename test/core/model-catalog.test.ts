// The catalog: how a name finds its model, who may call it, and that one bad entry does not take the others along.

import { describe, expect, test } from 'vitest';
import { type Caller } from '../../src/core/api-key.ts';
import {
  listCallableModels,
  type ModelCatalog,
  parseModelCatalog,
  type ResolvedModel,
  resolveModel,
} from '../../src/core/model-catalog.ts';
import { FREE_RATES } from '../../src/core/money.ts';
import { DEFAULT_POLICY } from '../../src/core/policy.ts';

const BACKEND = { binding: 'UPSTREAM_1', upstream_model: 'qwen', engine: 'vllm' };
const PINNED = { ...BACKEND, upstream_model: 'qwen-2026-11-01' };
const MODELS = {
  'support-agent': {
    aliases: ['support', 'support-2026-11-01', 'odd@alias'],
    backends: [BACKEND],
    revisions: { '2026-11-01': { backends: [PINNED] }, constructor: { backends: [PINNED] } },
  },
  'Support-Agent': { backends: [{ ...BACKEND, upstream_model: 'other case' }] },
  'Qwen/Qwen3-8B': { backends: [BACKEND] },
  'private-model': { visibility: ['acme', 'umbrella'], aliases: ['secret'], backends: [BACKEND] },
};
const CALLER: Caller = {
  keyId: 'k',
  workspaceId: 'acme',
  scopes: [],
  models: ['*'],
  workspaceLimits: {},
  keyLimits: null,
  location: null,
  billing: 'postpaid',
};

function parse(models: object, bindings: readonly string[] = ['UPSTREAM_1']): ModelCatalog {
  const catalog = parseModelCatalog(JSON.stringify({ version: 1, models }), new Set(bindings));
  if (!catalog.ok) throw new Error(catalog.error);
  return catalog.value;
}

function resolve(catalog: ModelCatalog, name: string, caller: Partial<Caller> = {}): ResolvedModel | string {
  const result = resolveModel(catalog, name, { ...CALLER, ...caller });
  return result.ok ? result.value : result.error.kind;
}

describe('resolveModel', () => {
  const catalog = parse(MODELS);
  test.each<[string, string, string | null]>([
    ['support-agent', 'support-agent', null],
    ['Support-Agent', 'Support-Agent', null],
    ['SUPPORT-AGENT', 'support-agent', null],
    ['support', 'support-agent', null],
    ['Support', 'support-agent', null],
    ['support-2026-11-01', 'support-agent', null],
    ['odd@alias', 'support-agent', null],
    ['support-agent@2026-11-01', 'support-agent', '2026-11-01'],
    ['SUPPORT@2026-11-01', 'support-agent', '2026-11-01'],
    ['odd@alias@2026-11-01', 'support-agent', '2026-11-01'],
    ['support-agent@constructor', 'support-agent', 'constructor'],
    ['qwen/qwen3-8b', 'Qwen/Qwen3-8B', null],
    ['private-model', 'private-model', null],
  ])('§2 %s is %s, revision %s; the name stays as sent', (name, id, revision) => {
    expect(resolve(catalog, name)).toMatchObject({ model: { id }, revision, requestedModel: name });
  });

  test('§2 a revision has backends of its own', () => {
    expect(resolve(catalog, 'support')).toMatchObject({ backends: [{ upstream_model: 'qwen' }] });
    expect(resolve(catalog, 'support@2026-11-01')).toMatchObject({ backends: [{ upstream_model: 'qwen-2026-11-01' }] });
  });

  test.each([
    'nope',
    '',
    '@',
    '@2026-11-01',
    'support-agent@',
    'support-agent@nope',
    'support-agent@toString',
    'support-agent@__proto__',
    'support-agent@2026-11-01@2026-11-01',
    'Qwen/Qwen3-8B@2026-11-01',
    ' support-agent',
    '__proto__',
    'constructor',
  ])('§2 %j is 404 model_not_found', (name) => {
    expect(resolve(catalog, name)).toBe('model_not_found');
  });

  test.each<[string, string, Partial<Caller>, boolean]>([
    ['a private model, of its workspace', 'secret', {}, true],
    ['a private model, of its other workspace', 'secret', { workspaceId: 'umbrella' }, true],
    ['a private model, of nobody here', 'secret', { workspaceId: 'else' }, false],
    ['an id on the key’s list', 'support-agent', { models: ['support-agent'] }, true],
    ['an alias of a model on the list', 'support', { models: ['support-agent'] }, true],
    ['a revision of a model on the list', 'support@2026-11-01', { models: ['support-agent'] }, true],
    ['a model not on the list', 'Qwen/Qwen3-8B', { models: ['support-agent'] }, false],
    ['by alias not on the list', 'support', { models: ['private-model'] }, false],
    ['by revision not on the list', 'support@2026-11-01', { models: ['private-model'] }, false],
    ['by case not on the list', 'QWEN/QWEN3-8B', { models: ['support-agent'] }, false],
    ['an empty list', 'support', { models: [] }, false],
    ['a list does not lift visibility', 'private-model', { workspaceId: 'else', models: ['private-model'] }, false],
  ])('§2 checked on the resolved model: %s', (_name, requested, caller, callable) => {
    expect(typeof resolve(catalog, requested, caller) === 'object').toBe(callable);
    if (!callable) expect(resolve(catalog, requested, caller)).toBe('model_not_found');
  });

  test('§1 the list shows only what the key may call, in the catalog’s order', () => {
    for (const [caller, ids] of [
      [{}, Object.keys(MODELS)],
      [{ workspaceId: 'else' }, Object.keys(MODELS).slice(0, 3)],
      [{ models: ['private-model', 'support'] }, ['private-model']],
    ] as const) {
      expect(listCallableModels(catalog, { ...CALLER, ...caller }).map(({ id }) => id)).toEqual(ids);
    }
  });
});

describe('a faulty entry', () => {
  const backends = [BACKEND];

  test.each<[string, unknown, Partial<Caller>]>([
    ['private to others', { visibility: ['umbrella'], aliases: ['alias'], backends: [] }, {}],
    ['of a visibility that cannot be read', { visibility: 'umbrella', aliases: ['alias'], backends: [] }, {}],
    ['not in the key’s models', { aliases: ['alias'], backends: [] }, { models: ['good'] }],
  ])('§2 as private as a sound one: %s, 404', (_name, entry, caller) => {
    const catalog = parse({ bad: entry });
    for (const name of ['bad', 'BAD', 'alias', 'bad@rev'])
      expect(resolve(catalog, name, caller)).toBe('model_not_found');
  });

  test('§2 seen by those whose it is', () => {
    const catalog = parse({ bad: { visibility: ['acme'], aliases: ['alias'], backends: [] } });
    for (const name of ['bad', 'alias']) expect(resolve(catalog, name)).toBe('catalog_unavailable');
  });

  test.each<[string, unknown]>([
    ['no backends', {}],
    ['an empty list of backends', { backends: [] }],
    ['an absent binding', { backends: [{ ...BACKEND, binding: 'UPSTREAM_9' }] }],
    ['an absent binding in a revision', { backends, revisions: { a: { backends: [{ ...BACKEND, binding: 'X' }] } } }],
    ['an unknown engine', { backends: [{ ...BACKEND, engine: 'gpt' }] }],
    ['an unknown endpoint', { backends, endpoints: ['/v1/embeddings'] }],
    ['a price with seven decimals', { backends, context_length: 9, pricing: { input: '0.0000001', output: '1' } }],
    ['a price that is a number', { backends, context_length: 9, pricing: { input: 0.1, output: '1' } }],
    ['a price without a context length', { backends, pricing: { input: '1', output: '1' } }],
    ['an unknown policy field', { backends, policy: { max_m: 2 } }],
    ['an unknown preset', { backends, preset: 'acme' }],
    ['a weight of zero', { backends: [{ ...BACKEND, weight: 0 }] }],
    ['no object', 'qwen'],
    ['null', null],
  ])('§2 %s: 503 catalog_unavailable, the others serve', (_name, entry) => {
    const catalog = parse({ bad: entry, good: { backends } });
    expect(resolve(catalog, 'bad')).toBe('catalog_unavailable');
    expect(resolve(catalog, 'bad@rev')).toBe('catalog_unavailable');
    expect(resolve(catalog, 'BAD')).toBe('catalog_unavailable');
    expect(resolve(catalog, 'good')).toMatchObject({ model: { id: 'good' } });
    expect(catalog.models.map(({ id }) => id)).toEqual(['good']);
    expect(catalog.faulty.get('bad')).toMatch(/./);
  });

  test('§2 its aliases answer 503 too, unless a sound model has the name', () => {
    const catalog = parse({ bad: { aliases: ['nick', 'good', 5], backends: [] }, good: { backends } });
    expect(resolve(catalog, 'nick')).toBe('catalog_unavailable');
    expect(resolve(catalog, 'Nick@rev')).toBe('catalog_unavailable');
    expect(resolve(catalog, 'good')).toMatchObject({ model: { id: 'good' } });
  });

  test.each<[string, object, readonly string[], readonly string[]]>([
    ['alias and id', { a: { aliases: ['b'], backends }, b: { backends }, c: { backends } }, ['a', 'b'], ['c']],
    [
      'alias and alias',
      { a: { aliases: ['x'], backends }, b: { aliases: ['x'], backends }, c: { backends } },
      ['a', 'b', 'x'],
      ['c'],
    ],
    ['an alias that repeats its own id', { a: { aliases: ['a', 'x', 'x'], backends } }, [], ['a', 'x']],
  ])('§2 a clash of ids or aliases is an error of all who claim the name: %s', (_name, models, faulty, sound) => {
    const catalog = parse(models);
    for (const name of faulty) expect(resolve(catalog, name), name).toBe('catalog_unavailable');
    for (const name of sound) expect(resolve(catalog, name), name).toMatchObject({ requestedModel: name });
  });

  test.each([
    ['not JSON', '{'],
    ['another version', '{"version":2,"models":{}}'],
    ['no version', '{"models":{}}'],
    ['no models', '{"version":1}'],
    ['models as a list', '{"version":1,"models":[]}'],
    ['null', 'null'],
  ])('§2 the document as a whole is unusable: %s', (_name, text) => {
    expect(parseModelCatalog(text, new Set())).toMatchObject({ ok: false, error: expect.any(String) });
  });
});

describe('an entry’s fields', () => {
  test('§2 only backends are required; the rest has its default', () => {
    expect(parse({ m: { backends: [BACKEND] } }).models).toEqual([
      {
        id: 'm',
        ownedBy: 'turnpike',
        created: 0,
        visibility: 'public',
        aliases: [],
        policy: DEFAULT_POLICY,
        endpoints: ['/v1/chat/completions', '/v1/completions', '/v1/responses'],
        contextLength: null,
        maxOutputTokens: null,
        capabilities: {
          tools: false,
          tool_choice_required: false,
          parallel_tool_calls: false,
          strict_tools: false,
          response_formats: ['text'],
          logprobs: false,
          images: false,
          echo: false,
          suffix: false,
        },
        reasoning: null,
        lane: 'exact',
        responses: { mode: 'translate', lenient: false, done: false },
        runningCounts: true,
        upstreamStream: false,
        eventBytesMax: 4 * 1024 * 1024,
        affinity: 'none',
        rates: FREE_RATES,
        priced: false,
        backends: [{ ...BACKEND, weight: 1, developer_role: 'system' }],
        revisions: {},
      },
    ]);
  });

  test('§2 §8 how a model serves responses', () => {
    const entry = { backends: [BACKEND], responses: 'native', responses_lenient: true, responses_done: true };
    expect(parse({ m: entry }).models[0]?.responses).toEqual({ mode: 'native', lenient: true, done: true });
    expect(parse({ m: { ...entry, responses: 'own' } }).faulty.get('m')).toContain('responses');
  });

  test('§2 the example of the specification parses whole', () => {
    const catalog = parse({
      'support-agent': {
        owned_by: 'acme',
        created: 1789516800,
        visibility: 'public',
        aliases: ['support'],
        preset: 'boardwalk',
        policy: {},
        endpoints: ['/v1/chat/completions', '/v1/completions', '/v1/responses'],
        context_length: 32768,
        max_output_tokens: 8192,
        capabilities: {
          tools: true,
          tool_choice_required: true,
          parallel_tool_calls: true,
          strict_tools: true,
          response_formats: ['text', 'json_object', 'json_schema'],
          logprobs: true,
          images: false,
          echo: true,
          suffix: false,
        },
        reasoning: {
          control: 'chat_template_kwargs',
          kwarg: 'enable_thinking',
          levels: ['none', 'low', 'medium', 'high'],
        },
        responses: 'translate',
        responses_lenient: false,
        responses_done: false,
        lane: 'exact',
        running_counts: true,
        upstream_stream: false,
        pricing: { input: '0.15', cached_input: '0.075', cache_write: '0.15', output: '0.60' },
        backends: [{ ...BACKEND, weight: 1, developer_role: 'system' }],
        revisions: { '2026-11-01': { backends: [PINNED] } },
      },
    });
    expect(catalog.faulty.size).toBe(0);
    expect(catalog.models[0]).toMatchObject({
      contextLength: 32768,
      maxOutputTokens: 8192,
      priced: true,
      policy: { response_model: 'engine' },
    });
  });

  test('§7 lane native needs a ceiling of at most 8192 output tokens', () => {
    const lane = (more: object): string | undefined =>
      parse({ m: { backends: [BACKEND], lane: 'native', ...more } }).faulty.get('m');
    expect(lane({ max_output_tokens: 8192 })).toBe(undefined);
    expect(lane({ max_output_tokens: 8193 })).toMatch(/^lane native needs max_output_tokens/);
    expect(lane({})).toMatch(/^lane native needs max_output_tokens/);
  });

  test('§9 cache prices that are left out are the input price', () => {
    const catalog = parse({ m: { backends: [BACKEND], context_length: 9, pricing: { input: '2', output: '3' } } });
    expect(catalog.models[0]).toMatchObject({
      priced: true,
      rates: { input: '2', cached_input: '2', cache_write: '2', output: '3' },
    });
  });
});
