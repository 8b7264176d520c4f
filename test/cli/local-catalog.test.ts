// The generated catalog, judged by the gateway's own parser, and the rule that an edited catalog is never overwritten.

import { describe, expect, test } from 'vitest';

import { buildCatalog, mayReplaceCatalog, type GeneratedCatalog } from '../../src/cli/local-catalog.ts';
import { putCatalog } from '../../src/cli/local-store.ts';
import type { UpstreamModel } from '../../src/cli/upstream-models.ts';
import { parseModelCatalog } from '../../src/core/model-catalog.ts';

function model(id: string, overrides: Partial<UpstreamModel> = {}): UpstreamModel {
  return { id, engine: 'vllm', contextLength: undefined, created: undefined, ...overrides };
}

function faultsOf(catalog: GeneratedCatalog): unknown {
  const parsed = parseModelCatalog(JSON.stringify(catalog), new Set(['DEMO', 'UPSTREAM_1', 'UPSTREAM_2']));
  return parsed.ok ? [...parsed.value.faulty] : parsed.error;
}

function createStore(entries: Record<string, string>) {
  const map = new Map(Object.entries(entries));
  return {
    map,
    get: (key: string) => Promise.resolve(map.get(key) ?? null),
    put: (key: string, value: string) => Promise.resolve(void map.set(key, value)),
  };
}

describe('§11 npm start: the generated catalog', () => {
  test('without upstreams it is the demo model, which says what it is', () => {
    const catalog = buildCatalog([], true);
    expect(catalog.models).toMatchObject({
      'turnpike-demo': {
        owned_by: 'turnpike-demo (no GPU, a seeded text generator)',
        aliases: ['demo'],
        endpoints: ['/v1/chat/completions', '/v1/completions', '/v1/responses'],
        context_length: 8192,
        max_output_tokens: 2048,
        capabilities: { tools: true, logprobs: true, echo: true, images: false },
        reasoning: { control: 'chat_template_kwargs' },
        pricing: { input: '0.15', cached_input: '0.075', output: '0.60' },
        backends: [{ binding: 'DEMO', upstream_model: 'turnpike-demo', engine: 'vllm' }],
      },
    });
    expect(Object.keys(catalog.models)).toHaveLength(1);
    expect(faultsOf(catalog)).toEqual([]);
  });

  test('an upstream model is open in all it may do and has no price', () => {
    const models = [model('Qwen/Qwen3-8B', { contextLength: 32768, created: 1764500000 })];
    const catalog = buildCatalog([{ binding: 'UPSTREAM_1', models }], true);
    expect(catalog.models['Qwen/Qwen3-8B']).toEqual({
      created: 1764500000,
      endpoints: ['/v1/chat/completions', '/v1/completions', '/v1/responses'],
      context_length: 32768,
      capabilities: {
        tools: true,
        tool_choice_required: true,
        parallel_tool_calls: true,
        strict_tools: true,
        response_formats: ['text', 'json_object', 'json_schema'],
        logprobs: true,
        images: false,
        echo: true,
        suffix: true,
      },
      backends: [{ binding: 'UPSTREAM_1', upstream_model: 'Qwen/Qwen3-8B', engine: 'vllm' }],
    });
    expect(Object.keys(catalog.models)).toEqual(['Qwen/Qwen3-8B', 'turnpike-demo']);
    expect(faultsOf(catalog)).toEqual([]);
  });

  test('a context that is not reported is left out, a date is a fixed one', () => {
    const catalog = buildCatalog([{ binding: 'UPSTREAM_1', models: [model('m')] }], false);
    expect(catalog.models['m']).not.toHaveProperty('context_length');
    expect(catalog.models['m']).toHaveProperty('created', 1796083200);
  });

  test('the same id on several upstreams is one entry with several backends, each with its engine', () => {
    const catalog = buildCatalog(
      [
        { binding: 'UPSTREAM_1', models: [model('m', { contextLength: 100 }), model('m')] },
        { binding: 'UPSTREAM_2', models: [model('m', { engine: 'llamacpp', contextLength: 50 }), model('n')] },
      ],
      false,
    );
    expect(catalog.models['m']?.backends).toEqual([
      { binding: 'UPSTREAM_1', upstream_model: 'm', engine: 'vllm' },
      { binding: 'UPSTREAM_2', upstream_model: 'm', engine: 'llamacpp' },
    ]);
    expect(Object.keys(catalog.models)).toEqual(['m', 'n']);
    expect(faultsOf(catalog)).toEqual([]);
  });

  test.each([
    ['demo', ['demo', 'turnpike-demo'], []],
    ['Demo', ['Demo', 'turnpike-demo'], []],
    ['turnpike-demo', ['turnpike-demo'], undefined],
  ])('an upstream that serves %s keeps that name', (id, ids, demoAliases) => {
    const catalog = buildCatalog([{ binding: 'UPSTREAM_1', models: [model(id)] }], true);
    expect(Object.keys(catalog.models)).toEqual(ids);
    expect(catalog.models['turnpike-demo']?.['aliases']).toEqual(demoAliases);
    expect(faultsOf(catalog)).toEqual([]);
  });
});

describe('§11 npm start: what an operator edited is never overwritten', () => {
  test.each([
    ['nothing stored', null, null, true],
    ['stored as generated last time', 'old', 'old', true],
    ['stored as generated now', 'new', 'old', true],
    ['edited after it was generated', 'edited', 'old', false],
    ['stored by hand, never generated', 'edited', null, false],
  ])('%s', (_, stored, lastGenerated, allowed) => {
    expect(mayReplaceCatalog(stored, lastGenerated, 'new')).toBe(allowed);
  });

  test('a generated catalog leaves its text behind, to know it again', async () => {
    const store = createStore({});
    expect(await putCatalog(store, { text: 'new', origin: 'generated' })).toEqual({
      catalogText: 'new',
      catalogKept: false,
    });
    expect(Object.fromEntries(store.map)).toEqual({ catalog: 'new', 'catalog:generated': 'new' });
  });

  test('an edited one is kept, and so is the memory of the last generated one', async () => {
    const store = createStore({ catalog: 'edited', 'catalog:generated': 'old' });
    expect(await putCatalog(store, { text: 'new', origin: 'generated' })).toEqual({
      catalogText: 'edited',
      catalogKept: true,
    });
    expect(Object.fromEntries(store.map)).toEqual({ catalog: 'edited', 'catalog:generated': 'old' });
  });

  test('--catalog always writes, and then counts as edited', async () => {
    const store = createStore({ catalog: 'edited', 'catalog:generated': 'old' });
    await putCatalog(store, { text: 'given', origin: 'given' });
    expect(store.map.get('catalog')).toBe('given');
    expect(await putCatalog(store, { text: 'new', origin: 'generated' })).toMatchObject({ catalogKept: true });
  });
});
