// What each engine answers to GET /v1/models (shapes as the engines send them), and what is read out of it.

import { createServer, type Server } from 'node:http';

import { afterEach, describe, expect, test } from 'vitest';

import { fetchUpstreamModels, parseModelList } from '../../src/cli/upstream-models.ts';

const answers = {
  vllm: {
    object: 'list',
    data: [
      {
        id: 'Qwen/Qwen3-8B',
        object: 'model',
        created: 1764500000,
        owned_by: 'vllm',
        root: 'Qwen/Qwen3-8B',
        parent: null,
        max_model_len: 32768,
        permission: [{ id: 'modelperm-1', object: 'model_permission', allow_sampling: true }],
      },
      { id: 'lora', object: 'model', created: 1764500000, owned_by: 'vllm', root: '/l', parent: 'Qwen/Qwen3-8B' },
    ],
  },
  sglang: {
    object: 'list',
    data: [{ id: 'm', object: 'model', created: 1764500001, owned_by: 'sglang', root: 'm', max_model_len: 4096 }],
  },
  llamacpp: {
    models: [{ name: 'gemma.gguf', model: 'gemma.gguf', type: 'model' }],
    object: 'list',
    data: [
      {
        id: 'gemma.gguf',
        object: 'model',
        created: 1764500002,
        owned_by: 'llamacpp',
        meta: { vocab_type: 2, n_vocab: 262144, n_ctx_train: 131072, n_embd: 2560, n_params: 3880099328, size: 2 },
      },
    ],
  },
  ollama: { object: 'list', data: [{ id: 'llama3.2:3b', object: 'model', created: 1764500003, owned_by: 'library' }] },
  other: { data: [{ id: 'x', owned_by: 'somebody', context_window: 8192, created: 'yesterday' }, { id: 'y' }] },
};

describe('§11 --upstream: models are taken from its /v1/models', () => {
  test.each([
    [
      'vllm',
      [
        { id: 'Qwen/Qwen3-8B', engine: 'vllm', contextLength: 32768, created: 1764500000 },
        { id: 'lora', engine: 'vllm', contextLength: undefined, created: 1764500000 },
      ],
    ],
    ['sglang', [{ id: 'm', engine: 'sglang', contextLength: 4096, created: 1764500001 }]],
    ['llamacpp', [{ id: 'gemma.gguf', engine: 'llamacpp', contextLength: 131072, created: 1764500002 }]],
    ['ollama', [{ id: 'llama3.2:3b', engine: 'ollama', contextLength: undefined, created: 1764500003 }]],
    [
      'other',
      [
        { id: 'x', engine: 'openai', contextLength: 8192, created: undefined },
        { id: 'y', engine: 'openai', contextLength: undefined, created: undefined },
      ],
    ],
  ] as const)('%s', (name, models) => {
    expect(parseModelList(JSON.stringify(answers[name]))).toEqual(models);
  });

  test('llama.cpp: the context it runs with wins over the one it was trained for', () => {
    const data = [{ id: 'g', owned_by: 'llamacpp', meta: { n_ctx: 4096, n_ctx_train: 131072 } }];
    expect(parseModelList(JSON.stringify({ data }))?.[0]?.contextLength).toBe(4096);
  });

  test.each(['', 'null', '[]', '{"data":{}}', '{"data":[{"id":""}]}', '<html>'])('%j is no list of models', (text) => {
    expect(parseModelList(text)).toBeNull();
  });
});

describe('§11 --upstream: one that cannot be read is told in one line', () => {
  let server: Server | undefined;
  afterEach(() => {
    server?.closeAllConnections();
    server?.close();
  });

  async function listen(status: number, body: string): Promise<string> {
    const started = createServer((_request, response) => response.writeHead(status).end(body));
    server = started;
    await new Promise<void>((resolve) => started.listen(0, '127.0.0.1', resolve));
    const address = started.address();
    if (typeof address !== 'object' || address === null) throw new Error('not listening');
    return `http://127.0.0.1:${address.port}/v1`;
  }

  test.each([
    [404, 'nothing', /cannot read .*\/v1\/models \(status 404\)$/],
    [200, '<html>', /did not answer with a list of models$/],
    [200, '{"data":[]}', /lists no models$/],
  ])('status %i, body %s', async (status, body, line) => {
    await expect(fetchUpstreamModels(await listen(status, body))).rejects.toThrow(line);
  });

  test('nobody listens', async () => {
    const url = await listen(200, '');
    await new Promise((resolve) => server?.close(resolve));
    await expect(fetchUpstreamModels(url)).rejects.toThrow(`upstream ${url}: cannot read ${url}/models (ECONNREFUSED)`);
  });
});
