// Boardwalk's text completions document, from top to bottom, under its preset.

import { reset } from 'cloudflare:test';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { addKey, type EngineScript, post, prepare, readReceipt, readRecorded, UNLIMITED } from '../fixtures.ts';
import { call, type Called, type Fields, firstChoice } from './call.ts';
import { addErrorTests, expectError } from './document.ts';

const model = 'support-agent';
let token = '';
beforeAll(async () => {
  await prepare();
  token = await addKey('boardwalk-text', {}, UNLIMITED);
});
afterAll(reset);

const ask = async (fields: Fields, script?: EngineScript): Promise<Called> =>
  call(token, 'text', { model, ...fields }, script);
const accepted = async (fields: Fields): Promise<void> => {
  const { status, sent } = await ask(fields);
  expect(status).toBe(200);
  expect(sent).toMatchObject(fields);
};
const answer = (choices: readonly Fields[], usage: Fields = {}): EngineScript => ({
  json: {
    id: 'cmpl-engine',
    object: 'text_completion',
    created: 1789516800,
    model: 'engine-model',
    choices,
    usage: { prompt_tokens: 6, completion_tokens: 2, total_tokens: 8, ...usage },
  },
});

describe('the example', () => {
  it('a prompt and max_tokens; no chat template, no messages', async () => {
    const { status, sent, answer: got } = await ask({ prompt: 'Once upon a', max_tokens: 32 });
    expect([status, got['object']]).toEqual([200, 'text_completion']);
    expect(sent).toEqual({ model: 'engine-model', prompt: 'Once upon a', max_tokens: 32 });
  });
});

describe('the request body', () => {
  it('model: an id or one with a revision; required', async () => {
    expect((await ask({ model: `${model}@rev_7` })).status).toBe(200);
    expectError(await ask({ model: undefined }), 400, 'missing_required_parameter', 'model');
  });

  it('prompt: a text or several; required', async () => {
    await accepted({ prompt: 'Once' });
    await accepted({ prompt: ['Once', 'Twice'] });
    expectError(await ask({ prompt: undefined }), 400, 'missing_required_parameter', 'prompt');
    expectError(await ask({ prompt: [] }), 400, 'empty_array', 'prompt');
    expectError(await ask({ prompt: [50256] }), 400, 'invalid_type', 'prompt[0]');
  });

  it.each([undefined, null, { include_usage: false }, { include_usage: true }])(
    'stream_options %j: usage closes a stream that went well',
    async (stream_options) => {
      const { chunks } = await ask({ stream: true, stream_options });
      expect(chunks.filter((chunk) => 'usage' in chunk)).toHaveLength(1);
      expect(chunks.at(-1)).toMatchObject({ choices: [], usage: { total_tokens: 5 } });
    },
  );

  it('max_tokens: positive, within the context', async () => {
    await accepted({ max_tokens: 32768 });
    expectError(await ask({ max_tokens: 0 }), 400, 'integer_below_min_value', 'max_tokens');
    expectError(await ask({ max_tokens: 32769 }), 400, 'context_length_exceeded', 'prompt');
  });

  it('max_tokens: over what the prompt leaves, which the engine counts', async () => {
    const body = '{"object":"error","message":"This model\'s maximum context length is 32768 tokens.","code":400}';
    expectError(await ask({ max_tokens: 32768 }, { status: 400, body }), 400, 'context_length_exceeded', 'prompt');
  });

  it('max_tokens: omitted, what is left of the context is asked for', async () => {
    expect((await ask({})).sentText).toContain('"max_tokens":null');
  });

  it.each<[string, readonly unknown[], readonly unknown[]]>([
    ['temperature', [0, 1, 2], [-0.1, 2.1, '1']],
    ['top_p', [0.01, 1], [0, 1.1, '1']],
    ['n', [1], [0, 2, 1.5]],
    ['stop', ['x', ['a', 'b', 'c', 'd']], [['a', 'b', 'c', 'd', 'e'], 5]],
    ['presence_penalty', [-2, 2], [-2.1, 2.1]],
    ['frequency_penalty', [-2, 2], [-2.1, 2.1]],
    ['seed', [0, -7, 7], [1.5, '7']],
    ['logit_bias', [{ 50256: -100 }], [{ 50256: 'x' }, []]],
    ['user', ['u-1'], [5]],
    ['echo', [true, false], ['yes']],
    ['suffix', ['The end.'], [5]],
  ])('%s: within its range it goes up, outside it is refused', async (field, good, bad) => {
    for (const value of good) await accepted({ [field]: value });
    for (const value of bad) {
      const { status, error, sent } = await ask({ [field]: value });
      expect([status, String(error['param']).startsWith(field), sent]).toEqual([400, true, null]);
    }
  });

  it.each<[Fields, unknown]>([
    [{ logprobs: true }, 0],
    [{ logprobs: true, top_logprobs: 0 }, 0],
    [{ logprobs: true, top_logprobs: 20 }, 20],
    [{ logprobs: false }, undefined],
    [{ logprobs: 3 }, 3],
  ])('logprobs and top_logprobs: %j is %s in the form that engines know', async (fields, expected) => {
    const { status, sent } = await ask(fields);
    expect([status, sent?.['logprobs']]).toEqual([200, expected]);
    expect(sent).not.toHaveProperty('top_logprobs');
  });

  it('top_logprobs: 0 to 20', async () => {
    expectError(await ask({ logprobs: true, top_logprobs: 21 }), 400, 'integer_above_max_value', 'top_logprobs');
    expectError(await ask({ logprobs: true, top_logprobs: -1 }), 400, 'integer_below_min_value', 'top_logprobs');
  });

  it.each(['echo', 'suffix', 'logprobs'])('%s: only where the model is known to have it', async (field) => {
    const value = field === 'suffix' ? 'x' : true;
    expectError(await ask({ model: 'unlimited-model', [field]: value }), 400, 'unsupported_parameter', field);
  });

  it('user: is on the receipt', async () => {
    const { response } = await ask({ user: 'u-77' });
    expect(await readReceipt(token, response)).toMatchObject({ end_user: 'u-77', endpoint: '/v1/completions' });
  });
});

describe('the response', () => {
  it('has the shape of the example, under the name that the engine gives the model', async () => {
    const { answer: got, headers } = await ask({}, answer([{ index: 0, text: ' time.', finish_reason: 'stop' }]));
    expect(got).toEqual({
      id: 'cmpl-engine',
      object: 'text_completion',
      created: 1789516800,
      model: 'engine-model',
      choices: [{ index: 0, text: ' time.', finish_reason: 'stop', logprobs: null }],
      usage: { prompt_tokens: 6, completion_tokens: 2, total_tokens: 8 },
    });
    expect(headers.get('x-request-id')).toMatch(/^req_/);
  });

  it('a choice of each prompt, by its index', async () => {
    const choices = [0, 1].map((index) => ({ index, text: `${index}`, logprobs: null, finish_reason: 'length' }));
    const called = await ask({ prompt: ['a', 'b'] }, answer(choices));
    expect(called.answer['choices']).toEqual(choices);
    expect(await readReceipt(token, called.response)).toMatchObject({ status: 'incomplete' });
  });

  it('log probabilities in the shape of this endpoint, although the engine sends those of chat', async () => {
    const content = [{ token: 'x', logprob: -0.5, bytes: [120], top_logprobs: [{ token: 'x', logprob: -0.5 }] }];
    const choice = { index: 0, text: 'x', logprobs: { content }, finish_reason: 'stop' };
    const called = await ask({ logprobs: 1 }, answer([choice]));
    expect(firstChoice(called.answer)['logprobs']).toEqual({
      tokens: ['x'],
      token_logprobs: [-0.5],
      top_logprobs: [{ x: -0.5 }],
      text_offset: [0],
    });
  });

  it('usage: the cache’s share of the prompt, read and written', async () => {
    const prompt_tokens_details = { cached_tokens: 4, created_cache_tokens: 1 };
    const choice = { index: 0, text: 'x', finish_reason: 'stop' };
    const called = await ask({}, answer([choice], { prompt_tokens_details }));
    expect(called.answer['usage']).toMatchObject({ prompt_tokens: 6, prompt_tokens_details });
    expect(await readReceipt(token, called.response)).toMatchObject({
      usage: { cached_input_tokens: 4, cache_write_tokens: 1 },
    });
  });
});

describe('streaming', () => {
  it('chunks with text, final usage, [DONE]', async () => {
    const called = await ask({ stream: true });
    expect(called.headers.get('content-type')).toContain('text/event-stream');
    expect(called.text.endsWith('data: [DONE]\n\n')).toBe(true);
    expect(called.chunks.map((chunk) => [chunk['object'], firstChoice(chunk)['text']])).toEqual([
      ['text_completion', 'Hi'],
      ['text_completion', ''],
      ['text_completion', undefined],
    ]);
    expect(called.chunks.at(-1)).toMatchObject({ choices: [], usage: { total_tokens: 5 } });
  });

  it('a client that closes the connection stops the engine', async () => {
    const step = { json: { choices: [{ index: 0, text: 'a', finish_reason: null }] }, wait: 20 };
    const x_script = { stream: Array.from({ length: 100 }, () => step) };
    const body = JSON.stringify({ model, prompt: 'Once', stream: true, x_script });
    const response = await post(token, body, {}, '/v1/completions');
    const reader = response.body?.getReader();
    await reader?.read();
    await reader?.cancel();
    expect(await readReceipt(token, response)).toMatchObject({ status: 'interrupted' });
    expect((await readRecorded(response))?.aborted).toBe(true);
  });
});

describe('errors', () => addErrorTests({ name: 'boardwalk-text', model, endpoint: 'text' }));
