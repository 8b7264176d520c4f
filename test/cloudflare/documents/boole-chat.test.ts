// Boole's chat completions document, from top to bottom, under its preset.

import { reset } from 'cloudflare:test';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { addKey, type EngineScript, prepare, UNLIMITED } from '../fixtures.ts';
import { call, type Called, type Fields, firstChoice, readDeltas } from './call.ts';
import { addErrorTests, expectError } from './document.ts';

const model = 'llama-3.3-70b-instruct';
let token = '';
beforeAll(async () => {
  await prepare();
  token = await addKey('boole', {}, UNLIMITED);
});
afterAll(reset);

const ask = async (fields: Fields, script?: EngineScript): Promise<Called> =>
  call(token, 'chat', { model, ...fields }, script);
const accepted = async (fields: Fields): Promise<void> => {
  const { status, sent } = await ask(fields);
  expect(status).toBe(200);
  expect(sent).toMatchObject(fields);
};
const TOOL = {
  type: 'function',
  function: { name: 'look', description: 'Looks.', parameters: { type: 'object', properties: {} } },
};

describe('the request body', () => {
  it('model: the slug, required', async () => {
    expect((await ask({})).answer['model']).toBe(model);
    expectError(await ask({ model: undefined }), 400, 'missing_required_parameter', 'model');
  });

  it('messages: required; system, user and assistant with text', async () => {
    const roles = ['system', 'user', 'assistant', 'user'];
    await accepted({ messages: roles.map((role) => ({ role, content: 'x' })) });
    expectError(await ask({ messages: undefined }), 400, 'missing_required_parameter', 'messages');
    const silent = await ask({ messages: [{ role: 'user' }] });
    expectError(silent, 400, 'missing_required_parameter', 'messages[0].content');
  });

  it('stream: false unless it is true', async () => {
    expect((await ask({ stream: true })).headers.get('content-type')).toContain('text/event-stream');
    for (const stream of [undefined, null, false]) {
      expect((await ask({ stream })).headers.get('content-type')).toBe('application/json');
    }
  });

  it('temperature: 0 to 2, 1 when it is left out', async () => {
    for (const temperature of [0, 0.5, 2]) await accepted({ temperature });
    for (const temperature of [undefined, null])
      expect((await ask({ temperature })).sent).toMatchObject({ temperature: 1 });
    expectError(await ask({ temperature: 2.1 }), 400, 'decimal_above_max_value', 'temperature');
    expectError(await ask({ temperature: -1 }), 400, 'decimal_below_min_value', 'temperature');
  });

  it('max tokens: when they are left out the model goes on to its end or its context’s', async () => {
    await accepted({ max_tokens: 64 });
    expect((await ask({})).sent).not.toHaveProperty('max_tokens');
    expectError(await ask({ max_tokens: 0 }), 400, 'integer_below_min_value', 'max_tokens');
  });

  it('top_p: 1 when it is left out', async () => {
    await accepted({ top_p: 0.9 });
    for (const top_p of [undefined, null]) expect((await ask({ top_p })).sent).toMatchObject({ top_p: 1 });
    expectError(await ask({ top_p: 1.5 }), 400, 'decimal_above_max_value', 'top_p');
  });

  it('stop: one sequence or any number of them', async () => {
    await accepted({ stop: 'END' });
    await accepted({ stop: Array.from({ length: 32 }, (_, index) => `stop ${index}`) });
    expectError(await ask({ stop: 5 }), 400, 'invalid_type', 'stop');
  });

  it('tools: functions with name, description and a schema', async () => {
    await accepted({ tools: [TOOL, { ...TOOL, function: { ...TOOL.function, name: 'other' } }] });
  });

  it.each(['auto', 'none', { type: 'function', function: { name: 'look' } }])(
    'tool_choice: %j',
    async (tool_choice) => {
      await accepted({ tools: [TOOL], tool_choice });
    },
  );

  it('response_format: JSON mode', async () => accepted({ response_format: { type: 'json_object' } }));

  it('n: 1 when it is left out, several when asked for', async () => {
    const choices = [0, 1].map((index) => ({ index, message: { content: `${index}` }, finish_reason: 'stop' }));
    const { answer, sent } = await ask({ n: 2 }, { json: { choices } });
    expect(sent).toMatchObject({ n: 2 });
    expect(answer['choices']).toMatchObject([{ index: 0 }, { index: 1 }]);
    expect((await ask({})).sent).not.toHaveProperty('n');
    expectError(await ask({ n: 0 }), 400, 'integer_below_min_value', 'n');
  });
});

describe('the example', () => {
  const messages = [
    { role: 'system', content: 'Answer briefly.' },
    { role: 'user', content: 'Which river runs through Paris?' },
  ];

  it('two messages in, an answer of the shape shown out', async () => {
    const { answer, sent } = await ask({ messages });
    expect(sent).toEqual({ model: 'engine-model', messages, temperature: 1, top_p: 1 });
    expect(answer).toMatchObject({
      id: expect.stringMatching(/.+/),
      object: 'chat.completion',
      created: expect.any(Number),
      model,
      choices: [{ index: 0, message: { role: 'assistant', content: 'Hi' }, finish_reason: 'stop' }],
      usage: { prompt_tokens: 3, completion_tokens: 2, total_tokens: 5 },
    });
  });

  it.each(['stop', 'length', 'tool_calls'])('finish_reason: %s', async (reason) => {
    const json = { choices: [{ index: 0, message: { content: 'x' }, finish_reason: reason }] };
    expect(firstChoice((await ask({}, { json })).answer)['finish_reason']).toBe(reason);
  });
});

describe('streaming', () => {
  it('each event is one chunk with a partial delta; joined they are the answer; then [DONE]', async () => {
    const delta = (content: string): Fields => ({
      json: { choices: [{ index: 0, delta: { content }, finish_reason: null }] },
    });
    const end = { json: { choices: [{ index: 0, delta: {}, finish_reason: 'stop' }] } };
    const script = { stream: [delta('One'), delta(', two'), end, { data: '[DONE]' }] };
    const called = await ask({ stream: true, messages: [{ role: 'user', content: 'Count.' }] }, script);
    expect(called.chunks[0]).toMatchObject({ object: 'chat.completion.chunk', model });
    expect(called.chunks.map((chunk) => firstChoice(chunk)['finish_reason'])).toEqual([null, null, 'stop']);
    const text = readDeltas(called).map((part) => (typeof part['content'] === 'string' ? part['content'] : ''));
    expect(text.join('')).toBe('One, two');
    expect(called.text.endsWith('data: [DONE]\n\n')).toBe(true);
    expect(called.text).not.toContain('"usage"');
  });

  it('usage only when it is asked for', async () => {
    const { chunks } = await ask({ stream: true, stream_options: { include_usage: true } });
    expect(chunks.at(-1)).toMatchObject({ choices: [], usage: { total_tokens: 5 } });
  });

  it('tool calls arrive in pieces with an index, the id and name on the first', async () => {
    const piece = (toolCall: Fields): Fields => ({
      json: { choices: [{ index: 0, delta: { tool_calls: [toolCall] }, finish_reason: null }] },
    });
    const script = {
      stream: [
        piece({ index: 0, id: 'call_1', type: 'function', function: { name: 'look', arguments: '' } }),
        piece({ index: 0, function: { arguments: '{"at":' } }),
        piece({ index: 0, function: { arguments: '1}' } }),
        { json: { choices: [{ index: 0, delta: {}, finish_reason: 'tool_calls' }] } },
        { data: '[DONE]' },
      ],
    };
    const called = await ask({ stream: true, tools: [TOOL] }, script);
    expect(readDeltas(called)).toEqual([
      {
        role: 'assistant',
        tool_calls: [{ index: 0, id: 'call_1', type: 'function', function: { name: 'look', arguments: '' } }],
      },
      { tool_calls: [{ index: 0, function: { arguments: '{"at":' } }] },
      { tool_calls: [{ index: 0, function: { arguments: '1}' } }] },
      {},
    ]);
  });

  it('reasoning, if the engine thinks, goes by both names', async () => {
    const json = {
      choices: [{ index: 0, message: { content: 'x', reasoning_content: 'Hm.' }, finish_reason: 'stop' }],
    };
    const message = firstChoice((await ask({}, { json })).answer)['message'];
    expect(message).toMatchObject({ reasoning: 'Hm.', reasoning_content: 'Hm.' });
  });
});

describe('errors', () => addErrorTests({ name: 'boole', model, endpoint: 'chat' }));
