// Boardwalk's chat completions document, from top to bottom, under its preset. Titles say each fact in our own words.

import { reset } from 'cloudflare:test';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import {
  addKey,
  type EngineScript,
  post,
  prepare,
  readEvents,
  readReceipt,
  readRecorded,
  UNLIMITED,
} from '../fixtures.ts';
import { call, type Called, callWithText, type Fields, firstChoice, readDeltas, toFields } from './call.ts';
import { addErrorTests, expectError } from './document.ts';

const model = 'support-agent';
let token = '';
beforeAll(async () => {
  await prepare();
  token = await addKey('boardwalk', {}, UNLIMITED);
});
afterAll(reset);

const ask = async (fields: Fields, script?: EngineScript): Promise<Called> =>
  call(token, 'chat', { model, ...fields }, script);
const answer = (message: Fields, rest: Fields = {}, usage: Fields = {}): EngineScript => ({
  json: {
    id: 'chatcmpl-engine',
    object: 'chat.completion',
    created: 1789516800,
    model: 'engine-model',
    choices: [{ index: 0, message: { role: 'assistant', ...message }, finish_reason: 'stop', ...rest }],
    usage: { prompt_tokens: 12, completion_tokens: 8, total_tokens: 20, ...usage },
  },
});
const accepted = async (fields: Fields): Promise<void> => {
  const { status, sent } = await ask(fields);
  expect(status).toBe(200);
  expect(sent).toMatchObject(fields);
};
const TOOL = { type: 'function', function: { name: 'look', description: 'Looks.', parameters: { type: 'object' } } };
const CALL = { id: 'call_1', type: 'function', function: { name: 'look', arguments: '{}' } };
const user = { role: 'user', content: 'Hi' };

describe('authorization and content type', () => {
  it('a Bearer key, however the scheme is spelled', async () => {
    for (const scheme of ['Bearer', 'bearer', 'BEARER']) {
      const body = JSON.stringify({ model, messages: [user] });
      expect((await callWithText(null, 'chat', body, { authorization: `${scheme} ${token}` })).status).toBe(200);
    }
  });

  it('it needs inference:write, and nothing else', async () => {
    const writer = await addKey('boardwalk-writer', { scopes: ['inference:write'] });
    expect((await call(writer, 'chat', { model })).status).toBe(200);
  });

  it('the body is JSON', async () => {
    const body = JSON.stringify({ model, messages: [user] });
    for (const type of ['application/json', 'application/json; charset=utf-8']) {
      expect((await callWithText(token, 'chat', body, { 'content-type': type })).status).toBe(200);
    }
    const called = await callWithText(token, 'chat', body, { 'content-type': 'text/plain' });
    expectError(called, 415, 'unsupported_content_type');
  });
});

describe('the example', () => {
  it('a model, one user message and max_completion_tokens', async () => {
    const { status, sent, answer: got } = await ask({ messages: [user], max_completion_tokens: 256 });
    expect([status, got['object']]).toEqual([200, 'chat.completion']);
    expect(sent).toEqual({ model: 'engine-model', messages: [user], max_tokens: 256 });
  });
});

describe('the request body', () => {
  it('model: a callable id, or one with a revision', async () => {
    for (const name of [model, `${model}@rev_7`]) expect((await ask({ model: name })).status).toBe(200);
    expectError(await ask({ model: `${model}@rev_8` }), 404, 'model_not_found', 'model');
  });

  it('messages: at least one', async () => {
    expectError(await ask({ messages: [] }), 400, 'empty_array', 'messages');
    expectError(await ask({ messages: undefined }), 400, 'missing_required_parameter', 'messages');
  });

  it('role: five of them; a developer is the system to the engine', async () => {
    const roles = ['system', 'developer', 'user', 'assistant', 'tool'];
    const { status, sent } = await ask({ messages: roles.map((role) => ({ role, content: 'x' })) });
    expect(status).toBe(200);
    const sentRoles = ['system', 'system', 'user', 'assistant', 'tool'];
    expect(sent?.['messages']).toEqual(sentRoles.map((role) => ({ role, content: 'x' })));
    expectError(
      await ask({ messages: [{ role: 'function', content: 'x' }] }),
      400,
      'invalid_value',
      'messages[0].role',
    );
  });

  it('content: text, text parts, null or absent', async () => {
    for (const content of ['x', [{ type: 'text', text: 'x' }], null])
      await accepted({ messages: [{ role: 'user', content }] });
    await accepted({ messages: [{ role: 'user' }] });
    const part = (value: Fields): Fields => ({ messages: [{ role: 'user', content: [value] }] });
    const path = 'messages[0].content[0]';
    expectError(await ask(part({ text: 'x' })), 400, 'missing_required_parameter', `${path}.type`);
    expectError(await ask(part({ type: 'text' })), 400, 'missing_required_parameter', `${path}.text`);
  });

  it('name, tool_calls and tool_call_id of a whole exchange go up as they are', async () => {
    await accepted({
      messages: [
        { ...user, name: 'ada' },
        { role: 'assistant', content: null, tool_calls: [CALL, { ...CALL, id: 'call_2' }] },
        { role: 'tool', content: '4', tool_call_id: 'call_1' },
        { role: 'tool', content: '5', tool_call_id: 'call_2' },
      ],
    });
  });

  it.each(['id', 'type', 'function', 'function.name', 'function.arguments'])(
    'a tool call needs its %s',
    async (path) => {
      const { name, arguments: args } = CALL.function;
      const partial: Fields = {
        id: { ...CALL, id: undefined },
        type: { ...CALL, type: undefined },
        function: { ...CALL, function: undefined },
        'function.name': { ...CALL, function: { arguments: args } },
        'function.arguments': { ...CALL, function: { name } },
      };
      const called = await ask({ messages: [user, { role: 'assistant', tool_calls: [partial[path]] }] });
      expectError(called, 400, 'missing_required_parameter', `messages[1].tool_calls[0].${path}`);
    },
  );

  it('reasoning of an earlier turn, or null, goes up under the name that the engine reads', async () => {
    const turn = (fields: Fields): Fields => ({
      messages: [user, { role: 'assistant', content: 'x', ...fields }, user],
    });
    const read = ({ sent }: Called): Fields => toFields(Array.isArray(sent?.['messages']) ? sent['messages'][1] : null);
    expect(read(await ask(turn({ reasoning: 'Hm.' })))).toMatchObject({ reasoning: 'Hm.' });
    expect(read(await ask(turn({ reasoning_content: 'Hm.' })))).toEqual({
      role: 'assistant',
      content: 'x',
      reasoning: 'Hm.',
    });
    expect(read(await ask(turn({ reasoning: null, reasoning_content: null })))).toEqual({
      role: 'assistant',
      content: 'x',
    });
  });

  it.each(['system', 'developer', 'user', 'tool'])(
    'reasoning_content is refused on a message of role %s',
    async (role) => {
      const called = await ask({ messages: [{ role, content: 'x', reasoning_content: 'Hm.' }] });
      expectError(called, 400, 'unsupported_parameter', 'messages[0].reasoning_content');
    },
  );

  it('stream: events instead of one answer', async () => {
    expect((await ask({ stream: true })).headers.get('content-type')).toContain('text/event-stream');
    expect((await ask({ stream: false })).headers.get('content-type')).toBe('application/json');
  });

  it.each([undefined, null, {}, { include_usage: false }, { include_usage: true }])(
    'stream_options %j: usage closes a stream that went well',
    async (stream_options) => {
      const { chunks } = await ask({ stream: true, stream_options });
      expect(chunks.filter((chunk) => 'usage' in chunk)).toHaveLength(1);
      expect(chunks.at(-1)).toMatchObject({ choices: [], usage: { total_tokens: 5 } });
    },
  );

  it('max_tokens: positive; over the context it is refused', async () => {
    await accepted({ max_tokens: 1 });
    await accepted({ max_tokens: 32768 });
    expectError(await ask({ max_tokens: 0 }), 400, 'integer_below_min_value', 'max_tokens');
    expectError(await ask({ max_tokens: 32769 }), 400, 'context_length_exceeded', 'messages');
  });

  it('max_tokens: over what the prompt leaves, which the engine counts, it is refused', async () => {
    const message = "This model's maximum context length is 32768 tokens. However, you requested 32769 tokens.";
    const called = await ask({ max_tokens: 32768 }, { status: 400, body: JSON.stringify({ error: { message } }) });
    expectError(called, 400, 'context_length_exceeded', 'messages');
    expect(called.error['message']).toContain('32768');
  });

  it('max_tokens: omitted, the engine may use what is left', async () => {
    expect((await ask({})).sent).not.toHaveProperty('max_tokens');
  });

  it.each<[string, readonly unknown[], readonly unknown[]]>([
    ['temperature', [0, 1, 2], [-0.1, 2.1, '1']],
    ['top_p', [0.01, 1], [0, 1.1, '1']],
    ['n', [1], [0, 2, 1.5]],
    ['stop', ['x', ['a', 'b', 'c', 'd']], [['a', 'b', 'c', 'd', 'e'], 5]],
    ['presence_penalty', [-2, 2], [-2.1, 2.1]],
    ['frequency_penalty', [-2, 2], [-2.1, 2.1]],
    ['seed', [0, -7, 7], [1.5, '7']],
    ['logprobs', [true, false], ['yes']],
    ['logit_bias', [{ 50256: -100 }], [{ 50256: 'x' }, []]],
    ['user', ['u-1'], [5]],
    ['parallel_tool_calls', [], ['no']],
  ])('%s: within its range it goes up, outside it is refused', async (field, good, bad) => {
    for (const value of good) await accepted({ [field]: value });
    for (const value of bad) {
      const { status, error, sent } = await ask({ [field]: value });
      expect([status, String(error['param']).startsWith(field), sent]).toEqual([400, true, null]);
    }
  });

  it('top_logprobs: 0 to 20, beside logprobs', async () => {
    for (const top_logprobs of [0, 20]) await accepted({ logprobs: true, top_logprobs });
    expectError(await ask({ logprobs: true, top_logprobs: 21 }), 400, 'integer_above_max_value', 'top_logprobs');
  });

  it('user: is on the receipt', async () => {
    const { response } = await ask({ user: 'u-77' });
    expect(await readReceipt(token, response)).toMatchObject({ end_user: 'u-77' });
  });

  it('max_completion_tokens: wins over max_tokens', async () => {
    const { sent } = await ask({ max_tokens: 5, max_completion_tokens: 7 });
    expect(sent).toMatchObject({ max_tokens: 7 });
    expect(sent).not.toHaveProperty('max_completion_tokens');
    expectError(await ask({ max_completion_tokens: 0 }), 400, 'integer_below_min_value', 'max_completion_tokens');
  });

  it('tools: functions with name, description, parameters and strict', async () => {
    await accepted({ tools: [TOOL, { type: 'function', function: { name: 'b', strict: true } }] });
    expectError(await ask({ tools: [{ type: 'web_search' }] }), 400, 'invalid_value', 'tools[0].type');
    const nameless = { type: 'function', function: {} };
    expectError(await ask({ tools: [nameless] }), 400, 'missing_required_parameter', 'tools[0].function.name');
  });

  it('tools, logprobs, formats: only where the model is known to have them', async () => {
    const unable = 'unlimited-model';
    expectError(await ask({ model: unable, tools: [TOOL] }), 400, 'unsupported_parameter', 'tools');
    expectError(await ask({ model: unable, logprobs: true }), 400, 'unsupported_parameter', 'logprobs');
    const format = await ask({ model: unable, response_format: { type: 'json_object' } });
    expectError(format, 400, 'unsupported_value', 'response_format.type');
  });

  it('tool_choice: none, auto, required, or a function among the tools', async () => {
    for (const choice of ['none', 'auto', 'required', { type: 'function', function: { name: 'look' } }]) {
      await accepted({ tools: [TOOL], tool_choice: choice });
    }
    const other = { type: 'function', function: { name: 'other' } };
    const called = await ask({ tools: [TOOL], tool_choice: other });
    expectError(called, 400, 'invalid_value', 'tool_choice.function.name');
    expectError(await ask({ tools: [TOOL], tool_choice: 'any' }), 400, 'invalid_value', 'tool_choice');
  });

  it('parallel_tool_calls: either way, beside tools', async () => {
    for (const parallel of [true, false]) await accepted({ tools: [TOOL], parallel_tool_calls: parallel });
  });

  it('response_format: text, json_object, or a schema with its name', async () => {
    const json_schema = { name: 'answer', schema: { type: 'object' }, strict: true };
    for (const format of [{ type: 'text' }, { type: 'json_object' }, { type: 'json_schema', json_schema }]) {
      await accepted({ response_format: format });
    }
    const path = 'response_format.json_schema';
    expectError(await ask({ response_format: { type: 'json_schema' } }), 400, 'missing_required_parameter', path);
    const nameless = { type: 'json_schema', json_schema: { schema: {} } };
    expectError(await ask({ response_format: nameless }), 400, 'missing_required_parameter', `${path}.name`);
  });
});

describe('the response', () => {
  it('has the shape of the example, under the name that the engine gives the model', async () => {
    const { answer: got, headers } = await ask({}, answer({ content: 'Good day.' }));
    expect(got).toEqual({
      id: 'chatcmpl-engine',
      object: 'chat.completion',
      created: 1789516800,
      model: 'engine-model',
      choices: [
        {
          index: 0,
          message: { role: 'assistant', content: 'Good day.', refusal: null },
          finish_reason: 'stop',
          logprobs: null,
        },
      ],
      usage: { prompt_tokens: 12, completion_tokens: 8, total_tokens: 20 },
    });
    expect(headers.get('x-request-id')).not.toBe(got['id']);
  });

  it('tool calls: id, type, name and arguments as text; content null', async () => {
    const raw = { ...CALL, function: { name: 'look', arguments: { at: 1 } } };
    const called = await ask(
      { tools: [TOOL] },
      answer({ content: null, tool_calls: [raw] }, { finish_reason: 'tool_calls' }),
    );
    expect(firstChoice(called.answer)).toMatchObject({
      message: { content: null, tool_calls: [{ ...CALL, function: { name: 'look', arguments: '{"at":1}' } }] },
      finish_reason: 'tool_calls',
    });
  });

  it('reasoning and its older name, when the engine reports any', async () => {
    const shown = firstChoice((await ask({}, answer({ content: 'x', reasoning: 'Hm.' }))).answer);
    expect(shown['message']).toMatchObject({ reasoning: 'Hm.', reasoning_content: 'Hm.' });
    const plain = firstChoice((await ask({}, answer({ content: 'x', reasoning: null }))).answer);
    expect(Object.keys(toFields(plain['message']))).toEqual(['role', 'content', 'refusal']);
  });

  it('log probabilities, when they were asked for', async () => {
    const logprobs = { content: [{ token: 'x', logprob: -0.1, bytes: [120], top_logprobs: [] }] };
    const called = await ask({ logprobs: true }, answer({ content: 'x' }, { logprobs }));
    expect(firstChoice(called.answer)['logprobs']).toEqual({ ...logprobs, refusal: null });
  });

  it('finish_reason length, and what it does to the receipt', async () => {
    const called = await ask({ max_tokens: 8 }, answer({ content: 'x' }, { finish_reason: 'length' }));
    expect(firstChoice(called.answer)['finish_reason']).toBe('length');
    expect(await readReceipt(token, called.response)).toMatchObject({ status: 'incomplete', finish_reason: 'length' });
  });

  it('usage: the cache’s share of the prompt, read and written; the total summed when the engine gives none', async () => {
    const details = { cached_tokens: 4, created_cache_tokens: 2 };
    const called = await ask(
      {},
      answer({ content: 'x' }, {}, { prompt_tokens_details: details, total_tokens: undefined }),
    );
    expect(called.answer['usage']).toEqual({
      prompt_tokens: 12,
      completion_tokens: 8,
      total_tokens: 20,
      prompt_tokens_details: details,
    });
    expect(await readReceipt(token, called.response)).toMatchObject({
      usage: { input_tokens: 12, cached_input_tokens: 4, cache_write_tokens: 2, output_tokens: 8 },
      usage_source: 'engine',
    });
  });
});

describe('streaming', () => {
  it('chunks with deltas, a usage chunk without choices, [DONE]', async () => {
    const called = await ask({ stream: true });
    expect(called.text.endsWith('data: [DONE]\n\n')).toBe(true);
    expect(called.chunks.map((chunk) => chunk['object'])).toEqual(called.chunks.map(() => 'chat.completion.chunk'));
    expect(called.chunks.map((chunk) => chunk['model'])).toEqual(called.chunks.map(() => 'engine-model'));
    expect(readDeltas(called)).toEqual([{ role: 'assistant', content: '' }, { content: 'Hi' }, {}]);
    expect(called.chunks.map((chunk) => firstChoice(chunk)['finish_reason'])).toEqual([null, null, 'stop', undefined]);
    expect(called.chunks.at(-1)).toMatchObject({
      choices: [],
      usage: { prompt_tokens: 3, completion_tokens: 2, total_tokens: 5 },
    });
    expect(called.chunks.slice(0, -1).some((chunk) => 'usage' in chunk)).toBe(false);
  });

  const endless = {
    stream: Array.from({ length: 100 }, () => ({
      json: { choices: [{ index: 0, delta: { content: 'a' }, finish_reason: null }] },
      wait: 20,
    })),
  };

  it('a client that closes the connection stops the engine; the receipt tells the rest', async () => {
    const body = JSON.stringify({ model, messages: [user], stream: true, x_script: endless });
    const response = await post(token, body);
    const reader = response.body?.getReader();
    await reader?.read();
    await reader?.cancel();
    expect(await readReceipt(token, response)).toMatchObject({ status: 'interrupted', stream: true });
    expect((await readRecorded(response))?.aborted).toBe(true);
  });

  it('an interrupted stream may lack usage, but not its error and its end; the receipt is there by x-request-id', async () => {
    const body = JSON.stringify({
      model,
      messages: [user],
      stream: true,
      x_script: { stream: [...endless.stream.slice(0, 2), { cut: true }] },
    });
    const response = await post(token, body);
    const events = await readEvents(response);
    expect(events.at(-1)).toBe('[DONE]');
    expect(JSON.parse(events.at(-2) ?? '')).toMatchObject({ error: { code: 'upstream_disconnected' } });
    expect(events.some((event) => event.includes('"usage"'))).toBe(false);
    expect(await readReceipt(token, response)).toMatchObject({
      id: response.headers.get('x-request-id'),
      status: 'failed',
    });
  });

  it('a retry is a new request, whatever key of idempotency it carries', async () => {
    const twice = async (): Promise<Called> => call(token, 'chat', { model }, undefined, { 'idempotency-key': 'same' });
    const [first, second] = [await twice(), await twice()];
    expect(first.headers.get('x-request-id')).not.toBe(second.headers.get('x-request-id'));
    expect(second.sentText).toBe(first.sentText);
  });
});

describe('errors', () => addErrorTests({ name: 'boardwalk', model, endpoint: 'chat' }));
