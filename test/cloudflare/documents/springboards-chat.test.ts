// Springboards' chat completions document, from top to bottom, under its preset. Reasoning has more in reasoning.test.ts.

import { reset } from 'cloudflare:test';
import { exports } from 'cloudflare:workers';
import OpenAI from 'openai';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { addKey, type EngineScript, prepare, readReceipt, UNLIMITED } from '../fixtures.ts';
import { call, type Called, type Fields, firstChoice, readDeltas, toFields } from './call.ts';
import { addErrorTests, expectError } from './document.ts';

const model = 'flint-alpha';
const DATED = 'flint-alpha-2026-10-01';
let token = '';
beforeAll(async () => {
  await prepare();
  token = await addKey('springboards', {}, UNLIMITED);
});
afterAll(reset);

const ask = async (fields: Fields, script?: EngineScript): Promise<Called> =>
  call(token, 'chat', { model, ...fields }, script);
const accepted = async (fields: Fields): Promise<void> => {
  const { status, sent } = await ask(fields);
  expect(status).toBe(200);
  expect(sent).toMatchObject(fields);
};
const user = { role: 'user', content: 'Hi' };
const USAGE = { prompt_tokens: 9, completion_tokens: 30, total_tokens: 39 };
const THINKING: EngineScript = {
  json: {
    choices: [
      { index: 0, message: { role: 'assistant', content: 'Three.', reasoning: 'Counting.' }, finish_reason: 'stop' },
    ],
    usage: USAGE,
  },
};
const THINKING_STREAM: EngineScript = {
  stream: [
    { json: { choices: [{ index: 0, delta: { role: 'assistant', reasoning: 'Counting.' }, finish_reason: null }] } },
    { json: { choices: [{ index: 0, delta: { content: 'Three.' }, finish_reason: null }] } },
    { json: { choices: [{ index: 0, delta: {}, finish_reason: 'stop' }] } },
    { json: { choices: [], usage: USAGE } },
    { data: '[DONE]' },
  ],
};

describe('what it says of itself', () => {
  it('an answer, or a stream of events that ends with [DONE], which is no JSON', async () => {
    const plain = await ask({});
    expect([plain.headers.get('content-type'), plain.answer['object']]).toEqual([
      'application/json',
      'chat.completion',
    ]);
    const streamed = await ask({ stream: true });
    expect(streamed.headers.get('content-type')).toContain('text/event-stream');
    expect(streamed.text.endsWith('data: [DONE]\n\n')).toBe(true);
    const blocks = streamed.text.split('\n\n').slice(0, -1);
    expect(blocks.every((block) => block.startsWith('data: ') && !block.includes('\n'))).toBe(true);
    expect(streamed.chunks.every((chunk) => chunk['object'] === 'chat.completion.chunk')).toBe(true);
  });

  it('fields it does not know go up unchanged', async () => {
    await accepted({ top_k: 40, repetition_penalty: 1.1, guided_json: { a: [1, { b: null }] }, x: 'é 🙂' });
  });
});

describe('reasoning', () => {
  it.each<[string, Fields, boolean]>([
    ['not asked for: none', {}, false],
    ['none', { reasoning_effort: 'none' }, false],
    ['low', { reasoning_effort: 'low' }, true],
    ['medium', { reasoning_effort: 'medium' }, true],
    ['high', { reasoning_effort: 'high' }, true],
    ['the other form', { reasoning: { effort: 'high' } }, true],
    ['both forms: the field wins', { reasoning_effort: 'none', reasoning: { effort: 'high' } }, false],
    ['a level it does not know', { reasoning_effort: 'extreme' }, false],
    ['null', { reasoning_effort: null }, false],
  ])('%s, streamed or not', async (_name, fields, thinks) => {
    const plain = await ask(fields, THINKING);
    const streamed = await ask({ ...fields, stream: true }, THINKING_STREAM);
    for (const { sent } of [plain, streamed])
      expect(sent?.['chat_template_kwargs']).toEqual({ enable_thinking: thinks });
    const message = { role: 'assistant', content: 'Three.', refusal: null };
    expect(firstChoice(plain.answer)['message']).toEqual(
      thinks ? { ...message, reasoning_content: 'Counting.' } : message,
    );
    expect(readDeltas(streamed)).toEqual(
      thinks
        ? [{ role: 'assistant', reasoning_content: 'Counting.' }, { content: 'Three.' }, {}]
        : [{ role: 'assistant', content: '' }, { content: 'Three.' }, {}],
    );
  });

  it('it is billed as completion tokens and counts against the tokens of a minute', async () => {
    const limited = await addKey('springboards-tpm', {}, { limits: { tpm: 100 } });
    const { response } = await call(limited, 'chat', { model, reasoning_effort: 'high', max_tokens: 50 }, THINKING);
    expect(await readReceipt(limited, response)).toMatchObject({ usage: { output_tokens: 30 } });
    const next = await call(limited, 'chat', { model, max_tokens: 1 });
    expect(Number(next.headers.get('x-ratelimit-remaining-tokens'))).toBeLessThan(100 - 39);
  });
});

describe('the request body', () => {
  it('model: an alias or a dated version; it comes back as it was sent', async () => {
    for (const name of [model, DATED, 'Flint-Alpha']) expect((await ask({ model: name })).answer['model']).toBe(name);
  });

  it('messages: required, a list of objects', async () => {
    expectError(await ask({ messages: undefined }), 400, 'missing_required_parameter', 'messages');
    expectError(await ask({ messages: ['Hi'] }), 400, 'invalid_type', 'messages[0]');
  });

  it('chat_template_kwargs: any keys and values, to the letter', async () => {
    const chat_template_kwargs = { enable_thinking: true, today: '2026-12-01', nested: { a: [1, null] } };
    await accepted({ chat_template_kwargs });
    expectError(await ask({ chat_template_kwargs: 'x' }), 400, 'invalid_type', 'chat_template_kwargs');
  });

  it.each<[string, readonly unknown[], readonly unknown[]]>([
    ['frequency_penalty', [-2, 0, 2], [-2.1, 2.1, 'x']],
    ['max_tokens', [1, 100], [0, 1.5, '1']],
    ['n', [1, 8], [0, 9]],
    ['presence_penalty', [-2, 0, 2], [-2.1, 2.1, 'x']],
    ['seed', [0, 42, -1], [1.5, 'x']],
    ['stop', [['a', 'b', 'c', 'd'], ['a'], 'a'], [['a', 'b', 'c', 'd', 'e'], [1]]],
    ['stream', [true, false], ['x', 1]],
    ['temperature', [0, 2], [-0.1, 2.1]],
    ['top_p', [0.1, 1], [0, 1.1]],
    ['user', ['u-1'], [1]],
  ])('%s', async (field, good, bad) => {
    for (const value of good) await accepted({ [field]: value });
    for (const value of bad) {
      const { status, error } = await ask({ [field]: value });
      expect([status, String(error['param']).startsWith(field)]).toEqual([400, true]);
    }
  });

  it('max_completion_tokens: takes the place of max_tokens', async () => {
    expect((await ask({ max_completion_tokens: 9, max_tokens: 5 })).sent).toMatchObject({ max_tokens: 9 });
  });

  it('stream_options: only for streams; without one they are not sent up', async () => {
    expect((await ask({ stream_options: { include_usage: true } })).sent).not.toHaveProperty('stream_options');
  });

  it.each(['system', 'user', 'assistant', 'tool'])('messages[].role: %s', async (role) => {
    await accepted({ messages: [{ role, content: 'x' }] });
  });

  it('messages[].content: required, but for an assistant that called tools', async () => {
    for (const content of [undefined, null]) {
      const called = await ask({ messages: [{ role: 'user', content }] });
      expectError(called, 400, 'missing_required_parameter', 'messages[0].content');
    }
    const calls = [{ id: 'call_1', type: 'function', function: { name: 'f', arguments: '{}' } }];
    await accepted({ messages: [user, { role: 'assistant', content: null, tool_calls: calls }] });
    await accepted({ messages: [{ role: 'user', content: '' }] });
  });

  it('messages[].name', async () => accepted({ messages: [{ ...user, name: 'ada' }] }));

  it.each<[string, unknown]>([
    ['tools', [{ type: 'retrieval', anything: true }]],
    ['tool_choice', 'whatever'],
    ['response_format', { type: 'grammar', grammar: 'root ::= "a"' }],
    ['logprobs', 'x'],
    ['top_logprobs', 99],
    ['logit_bias', [1]],
    ['parallel_tool_calls', 'maybe'],
  ])('%s is not listed, so it goes up unread, capable or not', async (field, value) => {
    for (const name of [model, 'unread-unable']) {
      const { status, sent } = await ask({ model: name, [field]: value });
      expect([status, sent?.[field]]).toEqual([200, value]);
    }
  });
});

describe('200', () => {
  it('the fields of an answer', async () => {
    const { answer } = await ask({ model: DATED });
    expect(answer).toEqual({
      id: expect.stringMatching(/.+/),
      object: 'chat.completion',
      created: expect.any(Number),
      model: DATED,
      choices: [
        {
          index: 0,
          message: { role: 'assistant', content: 'Hi', refusal: null },
          logprobs: null,
          finish_reason: 'stop',
        },
      ],
      usage: { prompt_tokens: 3, completion_tokens: 2, total_tokens: 5 },
    });
  });

  it.each([
    ['stop', 'stop'],
    ['length', 'length'],
    ['content_filter', 'content_filter'],
    ['tool_calls', 'tool_calls'],
    ['eos_token', 'stop'],
    ['something new', 'stop'],
  ])('finish_reason is one of four: %s is %s', async (reason, expected) => {
    const json = { choices: [{ index: 0, message: { content: 'x' }, finish_reason: reason }] };
    expect(firstChoice((await ask({}, { json })).answer)['finish_reason']).toBe(expected);
  });

  it('several choices, each with its index', async () => {
    const choices = [0, 1, 2].map((index) => ({ index, message: { content: `${index}` }, finish_reason: 'stop' }));
    const { answer } = await ask({ n: 3 }, { json: { choices, usage: USAGE } });
    const got: unknown[] = Array.isArray(answer['choices']) ? answer['choices'] : [];
    expect(got.map((choice) => toFields(choice)['index'])).toEqual([0, 1, 2]);
  });
});

describe('streaming', () => {
  it('one id through all chunks; the model as it was sent; the role on the first; null until it is finished', async () => {
    const called = await ask({ model: DATED, stream: true });
    const { chunks } = called;
    expect(new Set(chunks.map(({ id, created, model: name }) => JSON.stringify([id, created, name]))).size).toBe(1);
    expect(chunks[0]).toMatchObject({ model: DATED, object: 'chat.completion.chunk' });
    expect(readDeltas(called).map((delta) => delta['role'])).toEqual(['assistant', undefined, undefined]);
    expect(chunks.map((chunk) => firstChoice(chunk)['finish_reason'])).toEqual([null, null, 'stop']);
  });

  it.each([undefined, null, {}, { include_usage: false }, { include_usage: null }])(
    'usage is left out with stream_options %j; the receipt has it',
    async (stream_options) => {
      const { text, response } = await ask({ stream: true, stream_options });
      expect(text).not.toContain('"usage"');
      expect(await readReceipt(token, response)).toMatchObject({ usage_source: 'engine', usage: { output_tokens: 2 } });
    },
  );

  it('usage is asked for: one last chunk, without choices', async () => {
    const { chunks, text } = await ask({ stream: true, stream_options: { include_usage: true } });
    expect(chunks.at(-1)).toMatchObject({
      choices: [],
      usage: { prompt_tokens: 3, completion_tokens: 2, total_tokens: 5 },
    });
    expect(text.match(/"usage"/g)).toHaveLength(1);
  });

  it('reasoning comes before content', async () => {
    const deltas = readDeltas(await ask({ stream: true, reasoning_effort: 'high' }, THINKING_STREAM));
    const at = (name: string): number => deltas.findIndex((delta) => typeof delta[name] === 'string');
    expect(at('reasoning_content')).toBeLessThan(at('content'));
  });
});

describe('errors', () => addErrorTests({ name: 'springboards', model, endpoint: 'chat' }));

describe('the examples', () => {
  it.each<[string, Fields]>([
    ['a request', { messages: [user] }],
    ['a stream', { messages: [user], stream: true }],
    ['reasoning', { messages: [user], reasoning_effort: 'high' }],
  ])('%s', async (_name, fields) => {
    const { status, sent } = await ask(fields);
    expect([status, sent?.['messages']]).toEqual([200, [user]]);
  });

  it('with the OpenAI client, of which only the address and the key are new', async () => {
    const client = new OpenAI({
      baseURL: 'https://turnpike.test/v1',
      apiKey: token,
      maxRetries: 0,
      fetch: (url, init) => exports.default.fetch(new Request(url, init)),
    });
    const completion = await client.chat.completions.create({ model, messages: [{ role: 'user', content: 'Hi' }] });
    expect(completion.choices[0]?.message.content).toBe('Hi');
    const streamed = client.chat.completions.stream({ model, messages: [{ role: 'user', content: 'Hi' }] });
    expect((await streamed.finalChatCompletion()).choices[0]?.message.content).toBe('Hi');
  });
});
