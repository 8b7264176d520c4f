// What a Responses request may say, and the chat request it becomes (SPEC §8): fields and their refusals, input items and
// instructions as messages, tools and formats in the client's own spelling.

import { describe, expect, test } from 'vitest';

import { type JsonObject } from '../../src/core/json-read.ts';
import { responses } from '../../src/openai/responses.ts';
import { buildResponsesContext, type ContextOptions, parseResponses } from './build-context.ts';

const TOGGLE = { reasoning: { control: 'chat_template_kwargs' } };
const tool = { type: 'function', name: 'f', parameters: { type: 'object' } };

/** The chat body that goes up, as text. */
function up(body: JsonObject | string, options: ContextOptions = {}): string {
  const request = parseResponses(body, options);
  if (!request.ok) throw new Error(JSON.stringify(request.error));
  return responses.toUpstreamBody(request.value, request.value.resolved.backends[0]);
}

function upValue(body: JsonObject, options: ContextOptions = {}): JsonObject {
  return JSON.parse(up(body, options));
}

function messagesOf(body: JsonObject, options: ContextOptions = {}): unknown {
  return upValue(body, options)['messages'];
}

function expectRefused(body: JsonObject, code: string, param: string, options: ContextOptions = {}): void {
  expect(parseResponses(body, options)).toMatchObject({ ok: false, error: { kind: 'invalid_parameter', code, param } });
}

describe('§8 input as messages', () => {
  const user = { role: 'user', content: 'Hi' };
  const call = (id: string): JsonObject => ({
    type: 'function_call',
    id: `fc_${id}`,
    call_id: id,
    name: 'f',
    arguments: '{"a":1}',
  });
  const result = (id: string): JsonObject => ({ type: 'function_call_output', call_id: id, output: 'done' });
  const chatCall = (id: string): JsonObject => ({
    id,
    type: 'function',
    function: { name: 'f', arguments: '{"a":1}' },
  });
  const thought = { type: 'reasoning', id: 'rs_1', summary: [], content: [{ type: 'reasoning_text', text: 'hm' }] };
  const said = {
    type: 'message',
    id: 'msg_1',
    role: 'assistant',
    status: 'completed',
    content: [{ type: 'output_text', text: 'Yes', annotations: [] }],
  };

  test.each<[string, unknown, unknown]>([
    ['a string', 'Hi', [user]],
    ['a message without a type', [user], [user]],
    ['a message with one', [{ type: 'message', ...user }], [user]],
    ['one part is a string', [{ role: 'user', content: [{ type: 'input_text', text: 'Hi' }] }], [user]],
    [
      'several parts stay parts',
      [
        {
          role: 'user',
          content: [
            { type: 'input_text', text: 'a' },
            { type: 'input_text', text: 'b' },
          ],
        },
      ],
      [
        {
          role: 'user',
          content: [
            { type: 'text', text: 'a' },
            { type: 'text', text: 'b' },
          ],
        },
      ],
    ],
    [
      'an image',
      [
        {
          role: 'user',
          content: [
            { type: 'input_text', text: 'a' },
            { type: 'input_image', image_url: 'data:image/png;base64,AA', detail: 'low' },
          ],
        },
      ],
      [
        {
          role: 'user',
          content: [
            { type: 'text', text: 'a' },
            { type: 'image_url', image_url: { url: 'data:image/png;base64,AA', detail: 'low' } },
          ],
        },
      ],
    ],
    ['an assistant’s message', [user, said, user], [user, { role: 'assistant', content: 'Yes' }, user]],
    [
      'a refusal',
      [user, { role: 'assistant', content: [{ type: 'refusal', refusal: 'No' }] }],
      [user, { role: 'assistant', content: 'No' }],
    ],
    [
      'reasoning, text and calls of one turn are one message',
      [user, thought, said, call('c1'), call('c2'), result('c1'), result('c2')],
      [
        user,
        { role: 'assistant', content: 'Yes', reasoning: 'hm', tool_calls: [chatCall('c1'), chatCall('c2')] },
        { role: 'tool', tool_call_id: 'c1', content: 'done' },
        { role: 'tool', tool_call_id: 'c2', content: 'done' },
      ],
    ],
    [
      'order is kept: calls one after the other',
      [user, call('c1'), result('c1'), call('c2'), result('c2')],
      [
        user,
        { role: 'assistant', content: null, tool_calls: [chatCall('c1')] },
        { role: 'tool', tool_call_id: 'c1', content: 'done' },
        { role: 'assistant', content: null, tool_calls: [chatCall('c2')] },
        { role: 'tool', tool_call_id: 'c2', content: 'done' },
      ],
    ],
    ['reasoning alone', [user, thought], [user, { role: 'assistant', content: '', reasoning: 'hm' }]],
    [
      'reasoning that is encrypted says nothing',
      [user, { type: 'reasoning', id: 'rs', summary: [], encrypted_content: 'x' }],
      [user],
    ],
    [
      'two messages of an assistant stay two',
      [user, said, said],
      [user, { role: 'assistant', content: 'Yes' }, { role: 'assistant', content: 'Yes' }],
    ],
    [
      'a system message later on stays there',
      [user, { role: 'system', content: 's' }],
      [user, { role: 'system', content: 's' }],
    ],
    [
      'an output in parts',
      [user, call('c1'), { ...result('c1'), output: [{ type: 'input_text', text: 'done' }] }],
      [
        user,
        { role: 'assistant', content: null, tool_calls: [chatCall('c1')] },
        { role: 'tool', tool_call_id: 'c1', content: 'done' },
      ],
    ],
  ])('§8 %s', (_name, input, expected) => {
    expect(messagesOf({ input })).toEqual(expected);
  });

  test.each<[string, JsonObject, string]>([
    ['instructions alone', { input: [user], instructions: 'I' }, 'I'],
    ['a system item alone', { input: [{ role: 'system', content: 'S' }, user] }, 'S'],
    ['both', { input: [{ role: 'system', content: 'S' }, user], instructions: 'I' }, 'I\n\nS'],
    [
      'a developer item is one too (Codex)',
      {
        input: [{ role: 'developer', id: 'x', content: [{ type: 'input_text', text: 'D' }] }, user],
        instructions: 'I',
      },
      'I\n\nD',
    ],
    ['several', { input: [{ role: 'system', content: 'S' }, { role: 'developer', content: 'D' }, user] }, 'S\n\nD'],
  ])('§8 %s: one first system message', (_name, body, content) => {
    expect(messagesOf(body)).toEqual([{ role: 'system', content }, user]);
  });

  test('§4 a lone developer item keeps its role where the backend takes it', () => {
    const input = [{ role: 'developer', content: 'D' }, user];
    expect(messagesOf({ input }, { entry: { developer_role: 'pass' } })).toEqual(input);
  });

  test('§4 reasoning goes up under the name that the engine reads', () => {
    expect(messagesOf({ input: [user, thought] }, { engine: 'llamacpp' })).toEqual([
      user,
      { role: 'assistant', content: '', reasoning_content: 'hm' },
    ]);
  });

  test.each<[string, unknown, string, string]>([
    ['an empty string', '', 'invalid_value', 'input'],
    ['no items', [], 'empty_array', 'input'],
    ['none', null, 'missing_required_parameter', 'input'],
    ['a number', 5, 'invalid_type', 'input'],
    ['an item that is no object', ['Hi'], 'invalid_type', 'input[0]'],
    ['an item reference', [user, { type: 'item_reference', id: 'msg_1' }], 'unsupported_value', 'input[1].type'],
    ['an item of an id alone', [{ id: 'msg_1' }], 'missing_required_parameter', 'input[0].type'],
    ['a hosted tool’s call', [{ type: 'web_search_call', id: 'ws' }], 'unsupported_value', 'input[0].type'],
    ['a role nobody has', [{ role: 'tool', content: 'x' }], 'invalid_value', 'input[0].role'],
    ['a message without content', [{ role: 'user' }], 'missing_required_parameter', 'input[0].content'],
    [
      'a part without text',
      [{ role: 'user', content: [{ type: 'input_text' }] }],
      'missing_required_parameter',
      'input[0].content[0].text',
    ],
    [
      'a file',
      [{ role: 'user', content: [{ type: 'input_file', file_id: 'f' }] }],
      'unsupported_value',
      'input[0].content[0].type',
    ],
    [
      'an image by address',
      [{ role: 'user', content: [{ type: 'input_image', image_url: 'https://x/y.png' }] }],
      'unsupported_value',
      'input[0].content[0].image_url',
    ],
    [
      'an image by id',
      [{ role: 'user', content: [{ type: 'input_image', file_id: 'f' }] }],
      'unsupported_parameter',
      'input[0].content[0].file_id',
    ],
    [
      'an assistant’s image',
      [{ role: 'assistant', content: [{ type: 'input_image', image_url: 'data:x' }] }],
      'unsupported_value',
      'input[0].content[0].type',
    ],
    [
      'a call without its id',
      [{ type: 'function_call', name: 'f', arguments: '{}' }],
      'missing_required_parameter',
      'input[0].call_id',
    ],
    ['arguments that are no string', [{ ...call('c'), arguments: {} }], 'invalid_type', 'input[0].arguments'],
    [
      'an output without a call',
      [{ type: 'function_call_output', output: 'x' }],
      'missing_required_parameter',
      'input[0].call_id',
    ],
    [
      'an output that is none',
      [{ type: 'function_call_output', call_id: 'c', output: 5 }],
      'invalid_type',
      'input[0].output',
    ],
  ])('§8 %s is refused', (_name, input, code, param) => {
    expectRefused({ input }, code, param);
  });

  test('§4 an image on a model without images is refused', () => {
    const input = [{ role: 'user', content: [{ type: 'input_image', image_url: 'data:x' }] }];
    expectRefused({ input }, 'unsupported_value', 'input[0].content[0].type', { entry: { capabilities: {} } });
  });
});

test('§10 very many items cost linear time', () => {
  const one = { type: 'function_call', call_id: 'c', name: 'f', arguments: '{}' };
  const input = Array.from({ length: 60_000 }, () => one);
  const [message] = JSON.parse(up({ input }))['messages'];
  expect(message['tool_calls']).toHaveLength(input.length);
});

describe('§8 fields', () => {
  test.each<[string, JsonObject, string, string, ContextOptions?]>([
    ['store true', { store: true }, 'unsupported_value', 'store'],
    ['store of another type', { store: 'yes' }, 'invalid_type', 'store'],
    ['background true', { background: true }, 'unsupported_value', 'background'],
    ['previous_response_id', { previous_response_id: 'resp_1' }, 'unsupported_parameter', 'previous_response_id'],
    ['conversation', { conversation: 'conv_1' }, 'unsupported_parameter', 'conversation'],
    ['prompt', { prompt: { id: 'p' } }, 'unsupported_parameter', 'prompt'],
    ['include', { include: ['reasoning.encrypted_content'] }, 'unsupported_parameter', 'include'],
    ['client_metadata', { client_metadata: { a: 'b' } }, 'unsupported_parameter', 'client_metadata'],
    ['max_tool_calls', { max_tool_calls: 3 }, 'unsupported_parameter', 'max_tool_calls'],
    ['truncation auto', { truncation: 'auto' }, 'unsupported_value', 'truncation'],
    ['truncation that is none', { truncation: 'x' }, 'invalid_value', 'truncation'],
    ['service_tier', { service_tier: 'flex' }, 'unsupported_value', 'service_tier'],
    ['verbosity', { text: { verbosity: 'low' } }, 'unsupported_parameter', 'text.verbosity'],
    ['top_logprobs', { top_logprobs: 3 }, 'unsupported_parameter', 'top_logprobs'],
    [
      'obfuscation',
      { stream_options: { include_obfuscation: true } },
      'unsupported_value',
      'stream_options.include_obfuscation',
    ],
    ['effort low', { reasoning: { effort: 'low' } }, 'unsupported_value', 'reasoning.effort', { entry: TOGGLE }],
    [
      'effort that is none',
      { reasoning: { effort: 'banana' } },
      'unsupported_value',
      'reasoning.effort',
      { entry: TOGGLE },
    ],
    ['effort none without a toggle', { reasoning: { effort: 'none' } }, 'unsupported_value', 'reasoning.effort'],
    ['effort of another type', { reasoning: { effort: 5 } }, 'invalid_type', 'reasoning.effort'],
    ['reasoning.summary', { reasoning: { summary: 'auto' } }, 'unsupported_parameter', 'reasoning.summary'],
    ['a hosted tool', { tools: [tool, { type: 'web_search' }] }, 'unsupported_value', 'tools[1].type'],
    [
      'a tool without parameters',
      { tools: [{ type: 'function', name: 'f' }] },
      'missing_required_parameter',
      'tools[0].parameters',
    ],
    [
      'a tool without a name',
      { tools: [{ type: 'function', parameters: {} }] },
      'missing_required_parameter',
      'tools[0].name',
    ],
    [
      'strict without strict tools',
      { tools: [{ ...tool, strict: true }] },
      'unsupported_parameter',
      'tools[0].strict',
      { entry: { capabilities: { tools: true } } },
    ],
    ['tools without tools', { tools: [tool] }, 'unsupported_parameter', 'tools', { entry: { capabilities: {} } }],
    ['a choice that is none', { tools: [tool], tool_choice: 'any' }, 'invalid_value', 'tool_choice'],
    [
      'a choice of a hosted tool',
      { tools: [tool], tool_choice: { type: 'web_search' } },
      'unsupported_value',
      'tool_choice.type',
    ],
    [
      'a choice of another tool',
      { tools: [tool], tool_choice: { type: 'function', name: 'g' } },
      'invalid_value',
      'tool_choice.name',
    ],
    [
      'a choice without a name',
      { tools: [tool], tool_choice: { type: 'function' } },
      'missing_required_parameter',
      'tool_choice.name',
    ],
    [
      'required without the control',
      { tools: [tool], tool_choice: 'required' },
      'unsupported_value',
      'tool_choice',
      { entry: { capabilities: { tools: true } } },
    ],
    ['required without tools', { tool_choice: 'required' }, 'invalid_value', 'tool_choice'],
    [
      'parallel_tool_calls false without the control',
      { parallel_tool_calls: false },
      'unsupported_parameter',
      'parallel_tool_calls',
      { entry: { capabilities: { tools: true } } },
    ],
    ['a format nobody has', { text: { format: { type: 'grammar' } } }, 'invalid_value', 'text.format.type'],
    [
      'a format the model lacks',
      { text: { format: { type: 'json_object' } } },
      'unsupported_value',
      'text.format.type',
      { entry: { capabilities: {} } },
    ],
    [
      'a schema without a name',
      { text: { format: { type: 'json_schema', schema: {} } } },
      'missing_required_parameter',
      'text.format.name',
    ],
    [
      'a format without its schema',
      { text: { format: { type: 'json_schema', name: 's' } } },
      'missing_required_parameter',
      'text.format.schema',
    ],
    ['temperature', { temperature: 2.1 }, 'decimal_above_max_value', 'temperature'],
    ['top_p', { top_p: 0 }, 'decimal_below_min_value', 'top_p'],
    ['max_output_tokens 0', { max_output_tokens: 0 }, 'integer_below_min_value', 'max_output_tokens'],
    [
      'max_output_tokens above the model’s',
      { max_output_tokens: 11 },
      'integer_above_max_value',
      'max_output_tokens',
      { entry: { max_output_tokens: 10 } },
    ],
    [
      'max_output_tokens above the context',
      { max_output_tokens: 11 },
      'context_length_exceeded',
      'input',
      { entry: { context_length: 10 } },
    ],
    [
      'an input that does not fit',
      { input: 'x'.repeat(400) },
      'context_length_exceeded',
      'input',
      { engine: 'llamacpp', entry: { context_length: 10 } },
    ],
    ['metadata of another type', { metadata: { a: 5 } }, 'invalid_type', 'metadata.a'],
    ['chat’s messages', { messages: [], n: 2 }, 'unsupported_parameter', 'n'],
    ['chat’s response_format', { response_format: { type: 'text' } }, 'unsupported_parameter', 'response_format'],
    [
      'a field nobody knows, under a policy that rejects',
      { foo: 1 },
      'unknown_parameter',
      'foo',
      { policy: { unknown_fields: 'reject' } },
    ],
    ['a field that chat knows', { frequency_penalty: 3 }, 'decimal_above_max_value', 'frequency_penalty'],
  ])('§8 %s is refused', (_name, body, code, param, options = {}) => {
    expectRefused(body, code, param, options);
  });

  test('§8 null, [] and {} are absent, and so is what asks for nothing', () => {
    const fields = [
      'previous_response_id',
      'conversation',
      'include',
      'tools',
      'tool_choice',
      'text',
      'reasoning',
      'metadata',
      'truncation',
      'store',
      'background',
      'user',
      'instructions',
      'prompt',
      'max_tool_calls',
      'service_tier',
      'stream_options',
      'temperature',
      'top_p',
      'max_output_tokens',
      'parallel_tool_calls',
    ];
    for (const empty of [null, [], {}]) {
      const body = Object.fromEntries(fields.map((name) => [name, empty]));
      expect(upValue(body)).toEqual(upValue({}));
    }
    const nothing = {
      store: false,
      background: false,
      truncation: 'disabled',
      top_logprobs: 0,
      parallel_tool_calls: true,
      reasoning: { effort: null, summary: null },
      text: { format: { type: 'text' }, verbosity: null },
      stream_options: { include_obfuscation: false },
    };
    expect(upValue(nothing)).toEqual({ ...upValue({}), response_format: { type: 'text' } });
  });

  test('§8 a choice of none or auto without tools is nothing', () => {
    for (const tool_choice of ['none', 'auto']) expect(upValue({ tool_choice })).toEqual(upValue({}));
  });

  test('§8 accepted without effect', () => {
    const body = {
      metadata: { a: 'b' },
      user: 'u-1',
      safety_identifier: 's',
      prompt_cache_key: 'k',
      service_tier: 'default',
    };
    expect(upValue(body)).toEqual(upValue({}));
    expect(parseResponses(body)).toMatchObject({ value: { endUser: 'u-1' } });
    expect(parseResponses({ ...body, service_tier: 'auto' })).toMatchObject({ ok: true });
  });

  test('§8 what goes up: chat’s names, schemas and numbers as they were spelled, unknown fields as they came', () => {
    const body = `{"model":"support","stream":true,"input":"Hi","temperature":0.50,"top_p":1.0,"max_output_tokens":9,
      "tools":[{"type":"function","name":"f","description":"d","parameters":{"maximum":12345678901234567890},"strict":true}],
      "tool_choice":{"type":"function","name":"f"},"parallel_tool_calls":false,"top_k":1e2,"priority":3,
      "text":{"format":{"type":"json_schema","name":"s","schema":{"const":1.10},"strict":true}}}`;
    const text = up(body);
    expect(text).toContain('"temperature":0.50,"top_p":1.0,"top_k":1e2');
    expect(text).toContain('"parameters":{"maximum":12345678901234567890},"strict":true');
    expect(text).toContain('"json_schema":{"name":"s","schema":{"const":1.10},"strict":true}');
    expect(JSON.parse(text)).toMatchObject({
      model: 'org/Model-7B',
      max_tokens: 9,
      tool_choice: { type: 'function', function: { name: 'f' } },
      parallel_tool_calls: false,
      stream_options: { include_usage: true, continuous_usage_stats: true },
    });
    for (const name of ['input', 'text', 'max_output_tokens', 'priority', 'store'])
      expect(JSON.parse(text)).not.toHaveProperty(name);
  });

  test('§8 effort none goes up in the engine’s form', () => {
    expect(upValue({ reasoning: { effort: 'none' } }, { entry: TOGGLE })).toMatchObject({
      chat_template_kwargs: { enable_thinking: false },
    });
  });

  test.each(['boardwalk', 'springboards', 'boole'] as const)('§4 §8 the preset %s checks and asks alike', (preset) => {
    const options = { preset, entry: { ...TOGGLE, capabilities: {} } };
    expectRefused({ tools: [tool] }, 'unsupported_parameter', 'tools', options);
    expectRefused({ store: true }, 'unsupported_value', 'store', options);
    const sent = upValue(
      {
        input: [
          { role: 'user', content: 'Hi' },
          { type: 'function_call', call_id: 'c', name: 'f', arguments: '{}' },
        ],
      },
      options,
    );
    expect(sent['messages']).toHaveLength(2);
    expect(sent['temperature']).toBe(preset === 'boole' ? 1 : undefined);
    const thinks = preset === 'springboards' ? { enable_thinking: false } : undefined;
    expect(sent['chat_template_kwargs']).toEqual(thinks);
  });
});

describe('§8 responses_lenient', () => {
  const lenient = { entry: { responses_lenient: true, reasoning: { control: 'reasoning_effort' } } };
  /** What Codex 0.171 sends, as WIRE §2e has it; its texts shortened. */
  const codex = {
    instructions: 'You are a coding agent.',
    input: [
      { type: 'message', id: 'msg_dev', role: 'developer', content: [{ type: 'input_text', text: 'Sandbox.' }] },
      { type: 'message', role: 'user', content: [{ type: 'input_text', text: 'Fix it.' }] },
    ],
    tools: [{ ...tool, strict: false }, { type: 'namespace', name: 'mcp', tools: [tool] }, { type: 'web_search' }],
    tool_choice: 'auto',
    parallel_tool_calls: true,
    reasoning: { effort: 'medium', summary: 'auto' },
    store: false,
    include: ['reasoning.encrypted_content'],
    prompt_cache_key: 'k',
    client_metadata: { 'x-codex-installation-id': 'i' },
    text: { verbosity: 'medium' },
    service_tier: 'priority',
  };

  test('§8 what Codex sends passes; without it, it does not', () => {
    const sent = upValue(codex, lenient);
    expect(sent).toMatchObject({
      messages: [
        { role: 'system', content: 'You are a coding agent.\n\nSandbox.' },
        { role: 'user', content: 'Fix it.' },
      ],
      tools: [{ type: 'function', function: { name: 'f' } }],
      reasoning_effort: 'medium',
    });
    for (const name of ['include', 'client_metadata', 'prompt_cache_key', 'service_tier', 'store', 'reasoning'])
      expect(sent).not.toHaveProperty(name);
    expectRefused(codex, 'unsupported_parameter', 'include');
  });

  test('§8 hosted tools alone are no tools', () => {
    expect(upValue({ tools: [{ type: 'web_search' }], tool_choice: 'auto' }, lenient)).not.toHaveProperty('tools');
  });

  test.each([
    { store: true },
    { background: true },
    { previous_response_id: 'resp_1' },
    { truncation: 'auto' },
    { tools: [{ type: 'function', name: 'f' }] },
  ])('§8 what would mislead the client is refused all the same: %j', (body) => {
    expect(parseResponses(body, lenient).ok).toBe(false);
  });

  test('§8 the response says what was taken', () => {
    const { echo } = buildResponsesContext({ ...lenient, body: codex }).request;
    expect(echo?.members).toMatchObject({
      instructions: codex.instructions,
      tools: [{ type: 'function', name: 'f', description: null, strict: false }],
      reasoning: { effort: 'medium', summary: null },
      text: { format: { type: 'text' } },
    });
  });
});
