// Boardwalk's Responses document, from top to bottom, under its preset. Titles say each fact in our own words. Every answer
// here is judged by OpenAI's published schema on the way.

import { reset } from 'cloudflare:test';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { addKey, type EngineScript, get, post, prepare, readReceipt, readRecorded, UNLIMITED } from '../fixtures.ts';
import { call, type Called, callWithText, type Fields, toFields } from './call.ts';
import { addErrorTests, expectError } from './document.ts';

const model = 'support-agent';
let token = '';
beforeAll(async () => {
  await prepare();
  token = await addKey('boardwalk-responses', {}, UNLIMITED);
});
afterAll(reset);

const ask = async (fields: Fields, script?: EngineScript): Promise<Called> =>
  call(token, 'responses', { model, ...fields }, script);
const answer = (message: Fields, finish_reason = 'stop', usage: Fields = {}): EngineScript => ({
  json: {
    id: 'chatcmpl-engine',
    object: 'chat.completion',
    created: 1789516800,
    model: 'engine-model',
    choices: [{ index: 0, message: { role: 'assistant', ...message }, finish_reason }],
    usage: { prompt_tokens: 12, completion_tokens: 3, total_tokens: 15, ...usage },
  },
});
const user = { role: 'user', content: 'Hello' };
const TOOL = { type: 'function', name: 'look', description: 'Looks.', parameters: { type: 'object' } };
const CHAT_TOOL = {
  type: 'function',
  function: { name: 'look', description: 'Looks.', parameters: { type: 'object' } },
};
const CALL = { id: 'call_1', type: 'function', function: { name: 'look', arguments: '{"at":"it"}' } };

describe('which models', () => {
  it('those that list /v1/responses in supported_endpoints', async () => {
    const listed = await (await get(token, `/v1/models/${model}`)).json<Record<string, unknown>>();
    expect(listed['supported_endpoints']).toContain('/v1/responses');
    const called = await ask({ model: 'completions-only' });
    expectError(called, 400, 'unsupported_value', 'model');
  });
});

describe('authorization and content type', () => {
  it('a Bearer key that may infer', async () => {
    const writer = await addKey('boardwalk-responses-writer', { scopes: ['inference:write'] });
    expect((await call(writer, 'responses', { model })).status).toBe(200);
  });

  it('enough credits', async () => {
    const poor = await addKey('boardwalk-responses-poor', {}, { billing: 'prepaid' });
    const called = await call(poor, 'responses', { model: 'test-model' });
    expectError(called, 429, 'insufficient_quota');
  });

  it('the body is JSON', async () => {
    const body = JSON.stringify({ model, input: 'Hello' });
    const called = await callWithText(token, 'responses', body, { 'content-type': 'text/plain' });
    expectError(called, 415, 'unsupported_content_type');
  });
});

describe('the example', () => {
  it('a model, input, max_output_tokens and store false', async () => {
    const called = await ask({ input: 'Hello', max_output_tokens: 256, store: false }, answer({ content: 'Hello!' }));
    expect(called.sent).toEqual({
      model: 'engine-model',
      messages: [user],
      max_tokens: 256,
      x_script: called.sent?.['x_script'],
    });
    expect(called.answer).toMatchObject({
      object: 'response',
      model: 'engine-model',
      status: 'completed',
      output: [
        {
          type: 'message',
          role: 'assistant',
          status: 'completed',
          content: [{ type: 'output_text', text: 'Hello!', annotations: [] }],
        },
      ],
      usage: { input_tokens: 12, output_tokens: 3, total_tokens: 15 },
    });
    expect(called.answer['id']).toMatch(/^resp_/);
  });
});

describe('the request body', () => {
  it('model: a callable id, or one with a revision; required', async () => {
    for (const name of [model, `${model}@rev_7`]) expect((await ask({ model: name })).status).toBe(200);
    expectError(await ask({ model: null }), 400, 'missing_required_parameter', 'model');
  });

  it('input: text; required', async () => {
    expect((await ask({ input: 'Hello' })).sent?.['messages']).toEqual([user]);
    expectError(await ask({ input: null }), 400, 'missing_required_parameter', 'input');
    expectError(await ask({ input: [] }), 400, 'empty_array', 'input');
  });

  it('input: ordered messages, reasoning, calls and their outputs, as an earlier answer gave them', async () => {
    const said = await ask({ input: [user] }, answer({ reasoning: 'Hm.', content: 'Wait.', tool_calls: [CALL] }));
    const { output } = said.answer;
    expect(output).toMatchObject([{ type: 'reasoning' }, { type: 'message' }, { type: 'function_call' }]);
    if (!Array.isArray(output)) return;
    const result = { type: 'function_call_output', call_id: 'call_1', output: 'seen' };
    const { status, sent } = await ask({ input: [user, ...output, result] });
    expect(status).toBe(200);
    expect(sent?.['messages']).toEqual([
      user,
      { role: 'assistant', reasoning: 'Hm.', content: 'Wait.', tool_calls: [CALL] },
      { role: 'tool', tool_call_id: 'call_1', content: 'seen' },
    ]);
  });

  it('input: text and images of users, images where the model has them', async () => {
    const image_url = 'data:image/png;base64,AA==';
    const input = [
      {
        role: 'user',
        content: [
          { type: 'input_text', text: 'See' },
          { type: 'input_image', image_url },
        ],
      },
    ];
    expect((await ask({ input })).sent?.['messages']).toEqual([
      {
        role: 'user',
        content: [
          { type: 'text', text: 'See' },
          { type: 'image_url', image_url: { url: image_url } },
        ],
      },
    ]);
    const unable = await ask({ model: 'tools-alone', input });
    expectError(unable, 400, 'unsupported_value', 'input[0].content[1].type');
  });

  it('instructions: the first system message', async () => {
    const messages = [{ role: 'system', content: 'Be brief.' }, user];
    expect((await ask({ input: 'Hello', instructions: 'Be brief.' })).sent?.['messages']).toEqual(messages);
  });

  it('max_output_tokens: positive; what it cuts is incomplete; it shares the context with the input', async () => {
    expectError(await ask({ max_output_tokens: 0 }), 400, 'integer_below_min_value', 'max_output_tokens');
    expectError(await ask({ max_output_tokens: 1.5 }), 400, 'invalid_type', 'max_output_tokens');
    expectError(await ask({ max_output_tokens: 40_000 }), 400, 'context_length_exceeded', 'input');
  });

  it('stream: the events of Responses', async () => {
    const called = await ask({ stream: true });
    expect(called.headers.get('content-type')).toContain('text/event-stream');
    expect(called.chunks.map(({ type }) => type)).toEqual([
      'response.created',
      'response.in_progress',
      'response.output_item.added',
      'response.content_part.added',
      'response.output_text.delta',
      'response.output_text.done',
      'response.content_part.done',
      'response.output_item.done',
      'response.completed',
    ]);
  });

  it('store: false, and false where it is left out; true is refused', async () => {
    for (const store of [false, undefined, null]) expect((await ask({ store })).answer['store']).toBe(false);
    expectError(await ask({ store: true }), 400, 'unsupported_value', 'store');
  });

  it('background: false only', async () => {
    expect((await ask({ background: false })).status).toBe(200);
    expectError(await ask({ background: true }), 400, 'unsupported_value', 'background');
  });

  it('temperature 0 to 2, top_p above 0 up to 1', async () => {
    for (const fields of [{ temperature: 0 }, { temperature: 2 }, { top_p: 0.01 }, { top_p: 1 }]) {
      const { status, sent, answer: got } = await ask(fields);
      expect(status).toBe(200);
      expect(sent).toMatchObject(fields);
      expect(got).toMatchObject(fields);
    }
    expectError(await ask({ temperature: -0.1 }), 400, 'decimal_below_min_value', 'temperature');
    expectError(await ask({ temperature: 2.1 }), 400, 'decimal_above_max_value', 'temperature');
    expectError(await ask({ top_p: 0 }), 400, 'decimal_below_min_value', 'top_p');
    expectError(await ask({ top_p: 1.1 }), 400, 'decimal_above_max_value', 'top_p');
  });

  it('tools: functions; their answer is for the caller to give', async () => {
    const called = await ask({ tools: [TOOL] }, answer({ content: null, tool_calls: [CALL] }, 'tool_calls'));
    expect(called.sent?.['tools']).toEqual([CHAT_TOOL]);
    expect(called.answer['output']).toMatchObject([
      { type: 'function_call', call_id: 'call_1', name: 'look', arguments: '{"at":"it"}', status: 'completed' },
    ]);
    expectError(await ask({ tools: [{ type: 'web_search' }] }), 400, 'unsupported_value', 'tools[0].type');
    const missing = { type: 'function', name: 'look' };
    expectError(await ask({ tools: [missing] }), 400, 'missing_required_parameter', 'tools[0].parameters');
  });

  it('tools: strict where the model has it', async () => {
    const strict = { ...TOOL, strict: true };
    const { sent } = await ask({ tools: [strict] });
    expect(sent?.['tools']).toEqual([{ ...CHAT_TOOL, function: { ...CHAT_TOOL.function, strict: true } }]);
    expectError(
      await ask({ model: 'no-strict-tools', tools: [strict] }),
      400,
      'unsupported_parameter',
      'tools[0].strict',
    );
    expect((await ask({ model: 'no-strict-tools', tools: [{ ...TOOL, strict: false }] })).status).toBe(200);
  });

  it.each<[unknown, unknown]>([
    ['auto', 'auto'],
    ['none', 'none'],
    ['required', 'required'],
    [
      { type: 'function', name: 'look' },
      { type: 'function', function: { name: 'look' } },
    ],
  ])('tool_choice: %j', async (tool_choice, expected) => {
    const { status, sent, answer: got } = await ask({ tools: [TOOL], tool_choice });
    expect([status, sent?.['tool_choice'], got['tool_choice']]).toEqual([200, expected, tool_choice]);
  });

  it('tool_choice: required where the model has it, a name among the tools', async () => {
    const unable = await ask({ model: 'tools-alone', tools: [TOOL], tool_choice: 'required' });
    expectError(unable, 400, 'unsupported_value', 'tool_choice');
    const other = await ask({ tools: [TOOL], tool_choice: { type: 'function', name: 'listen' } });
    expectError(other, 400, 'invalid_value', 'tool_choice.name');
  });

  it('parallel_tool_calls: false where the model can; never on vLLM’s own endpoint', async () => {
    expect((await ask({ tools: [TOOL], parallel_tool_calls: false })).sent).toMatchObject({
      parallel_tool_calls: false,
    });
    for (const other of ['tools-alone', 'native-served']) {
      const refused = await ask({ model: other, tools: [TOOL], parallel_tool_calls: false });
      expectError(refused, 400, 'unsupported_parameter', 'parallel_tool_calls');
    }
  });

  it('text: a format of those that the model lists for this endpoint', async () => {
    const schema = { type: 'object', properties: {} };
    const formats: [Fields, Fields][] = [
      [{ type: 'text' }, { type: 'text' }],
      [{ type: 'json_object' }, { type: 'json_object' }],
      [
        { type: 'json_schema', name: 's', schema, strict: true },
        { type: 'json_schema', json_schema: { name: 's', schema, strict: true } },
      ],
    ];
    for (const [format, expected] of formats) {
      const { sent, answer: got } = await ask({ text: { format } });
      expect(sent?.['response_format']).toEqual(expected);
      expect(got['text']).toEqual({ format });
    }
    const refused = await ask({ model: 'tools-alone', text: { format: { type: 'json_schema', name: 's', schema } } });
    expectError(refused, 400, 'unsupported_value', 'text.format.type');
    const listed = await (await get(token, '/v1/models/tools-alone')).json<{ response_formats: Fields }>();
    expect(listed.response_formats['/v1/responses']).toEqual(['text', 'json_object']);
  });

  it('reasoning: effort none where thinking can be turned off; no other level, no budget', async () => {
    const quiet = await ask({ reasoning: { effort: 'none' } }, answer({ reasoning: 'Hm.', content: 'Hi' }));
    expect(quiet.sent?.['chat_template_kwargs']).toEqual({ enable_thinking: false });
    expect(quiet.answer['output']).toMatchObject([{ type: 'message' }]);
    for (const effort of ['low', 'medium', 'high', 'minimal', 'banana']) {
      expectError(await ask({ reasoning: { effort } }), 400, 'unsupported_value', 'reasoning.effort');
    }
    const none = await ask({ model: 'reasoning-unknown', reasoning: { effort: 'none' } });
    expectError(none, 400, 'unsupported_value', 'reasoning.effort');
    expectError(await ask({ reasoning: { max_tokens: 5 } }), 400, 'unsupported_parameter', 'reasoning.max_tokens');
  });

  it('truncation: disabled only', async () => {
    expect((await ask({ truncation: 'disabled' })).status).toBe(200);
    expectError(await ask({ truncation: 'auto' }), 400, 'unsupported_value', 'truncation');
  });
});

describe('the response', () => {
  it('output: reasoning, messages and calls in the order they were made', async () => {
    const script = answer({ reasoning: 'Hm.', content: 'Wait.', tool_calls: [CALL, { ...CALL, id: 'call_2' }] });
    const { output } = (await ask({ tools: [TOOL] }, script)).answer;
    expect(Array.isArray(output) ? output.map((item) => toFields(item)['type']) : null).toEqual([
      'reasoning',
      'message',
      'function_call',
      'function_call',
    ]);
  });

  it('status: a token limit makes it incomplete, with its reason, and so is its receipt', async () => {
    const called = await ask({}, answer({ content: 'Hel' }, 'length'));
    expect(called.answer).toMatchObject({ status: 'incomplete', incomplete_details: { reason: 'max_output_tokens' } });
    expect(await readReceipt(token, called.response)).toMatchObject({ status: 'incomplete', finish_reason: 'length' });
  });

  it('usage: cache reads are part of the input, reasoning of the output; nothing is added twice', async () => {
    const usage = {
      prompt_tokens_details: { cached_tokens: 4 },
      completion_tokens_details: { reasoning_tokens: 2 },
    };
    const called = await ask({}, answer({ content: 'Hi' }, 'stop', usage));
    expect(called.answer['usage']).toEqual({
      input_tokens: 12,
      input_tokens_details: { cached_tokens: 4 },
      output_tokens: 3,
      output_tokens_details: { reasoning_tokens: 2 },
      total_tokens: 15,
    });
    expect(await readReceipt(token, called.response)).toMatchObject({
      endpoint: '/v1/responses',
      completion_id: called.answer['id'],
      usage: { input_tokens: 12, cached_input_tokens: 4, output_tokens: 3, reasoning_tokens: 2 },
    });
  });
});

describe('history and tools', () => {
  it.each([
    ['previous_response_id', { previous_response_id: 'resp_1' }, 'previous_response_id', 'unsupported_parameter'],
    ['a conversation', { conversation: 'conv_1' }, 'conversation', 'unsupported_parameter'],
    ['an item reference', { input: [{ type: 'item_reference', id: 'msg_1' }] }, 'input[0].type', 'unsupported_value'],
    ['a hosted tool', { tools: [{ type: 'file_search' }] }, 'tools[0].type', 'unsupported_value'],
  ])('%s is not supported: nothing is kept', async (_name, fields, param, code) => {
    expectError(await ask(fields), 400, code, param);
  });

  it('a response cannot be read again', async () => {
    const response = await get(token, '/v1/responses/resp_1');
    expect([response.status, (await response.json<{ error: Fields }>()).error['code']]).toEqual([404, 'unknown_url']);
  });
});

describe('streaming', () => {
  const word = (content: string): Record<string, unknown> => ({
    json: { choices: [{ index: 0, delta: { content }, finish_reason: null }] },
  });

  it.each([
    ['completed', [word('Hi'), { json: { choices: [{ index: 0, delta: {}, finish_reason: 'stop' }] } }]],
    ['incomplete', [word('Hi'), { json: { choices: [{ index: 0, delta: {}, finish_reason: 'length' }] } }]],
    ['failed', [word('Hi'), { wait: 20, cut: true }]],
  ])('it ends with response.%s', async (status, stream) => {
    const { chunks } = await ask({ stream: true }, { stream });
    expect(chunks.at(-1)).toMatchObject({ type: `response.${status}`, response: { status } });
  });

  it('a client that closes the connection stops the engine', async () => {
    const step = { ...word('a'), wait: 20 };
    const x_script = { stream: Array.from({ length: 100 }, () => step) };
    const body = JSON.stringify({ model, input: 'Hello', stream: true, x_script });
    const response = await post(token, body, {}, '/v1/responses');
    const reader = response.body?.getReader();
    await reader?.read();
    await reader?.cancel();
    expect(await readReceipt(token, response)).toMatchObject({ status: 'interrupted' });
    expect((await readRecorded(response))?.aborted).toBe(true);
  });
});

describe('§8 beyond the document', () => {
  it.each(['native-served', 'native-assembled'])('§8 native: the engine’s own endpoint is asked: %s', async (name) => {
    for (const stream of [false, true]) {
      const called = await ask({ model: name, stream, metadata: { a: 'b' }, max_output_tokens: 9 });
      const response = stream ? toFields(called.chunks.at(-1)?.['response']) : called.answer;
      expect(response).toMatchObject({ status: 'completed', usage: { total_tokens: 5 }, metadata: { a: 'b' } });
      expect(JSON.stringify(response)).not.toContain('_engine');
      const recorded = await readRecorded(called.response);
      expect(recorded?.path).toBe('/v1/responses');
      expect(called.sent).toMatchObject({ store: false, input: 'Say hello.', max_output_tokens: 9 });
      expect(called.sent?.['stream'] === true).toBe(stream || name === 'native-assembled');
      expect(await readReceipt(token, called.response)).toMatchObject({
        status: 'completed',
        usage: { input_tokens: 3, output_tokens: 2 },
        usage_source: 'engine',
        served_model: 'engine-model',
        completion_id: response['id'],
      });
    }
  });

  it('§8 native: an engine that says everything in its terminal event, or in JSON', async () => {
    const content = [{ type: 'output_text', text: 'Hi', annotations: [] }];
    const response = {
      object: 'response',
      status: 'completed',
      output: [{ type: 'message', id: 'm', role: 'assistant', content }],
      usage: { input_tokens: 3, output_tokens: 2, total_tokens: 5 },
    };
    const scripts = [{ stream: [{ json: { type: 'response.completed', response } }] }, { json: response }];
    for (const script of scripts) {
      const { chunks } = await ask({ model: 'native-served', stream: true }, script);
      expect(chunks.at(-1)).toMatchObject({ response: { status: 'completed', output: [{ content }] } });
      expect(chunks.map(({ type }) => type)).toContain('response.output_text.delta');
    }
  });

  it('§8 native: an engine’s refusal is the caller’s, its failure is not', async () => {
    const refusal = { status: 400, body: '{"error":{"message":"no","param":"input"}}' };
    expectError(await ask({ model: 'native-served' }, refusal), 400, null, 'input');
    expectError(
      await ask({ model: 'native-served', stream: true }, { status: 404, body: '' }),
      502,
      'upstream_misconfigured',
    );
    const cut = { stream: [{ json: { type: 'response.output_text.delta', delta: 'Hi' } }, { wait: 20, cut: true }] };
    const { chunks, response } = await ask({ model: 'native-served', stream: true }, cut);
    expect(chunks.at(-1)).toMatchObject({ type: 'response.failed', response: { output: [{ status: 'incomplete' }] } });
    expect(await readReceipt(token, response)).toMatchObject({ status: 'failed', error_code: 'upstream_disconnected' });
  });

  it('§8 responses_lenient takes what Codex sends; without it, it is refused', async () => {
    const codex = {
      include: ['reasoning.encrypted_content'],
      reasoning: { summary: 'auto' },
      tools: [TOOL, { type: 'web_search' }],
      client_metadata: { a: 'b' },
      prompt_cache_key: 'k',
      store: false,
      stream: true,
    };
    expect((await ask({ model: 'codex-served', ...codex })).sent?.['tools']).toEqual([CHAT_TOOL]);
    expectError(await ask(codex), 400, 'unsupported_parameter', 'include');
  });

  it('§8 responses_done: [DONE] behind the terminal event', async () => {
    expect((await ask({ model: 'open-responses', stream: true })).text.endsWith('\n\ndata: [DONE]\n\n')).toBe(true);
    expect((await ask({ stream: true })).text).not.toContain('[DONE]');
  });
});

describe('errors', () => addErrorTests({ name: 'boardwalk-responses', model, endpoint: 'responses' }));
