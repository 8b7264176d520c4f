// Every field of the reference documents: what passes, and with which code and param the rest is refused (SPEC §3, §4).

import { describe, expect, test } from 'vitest';
import { type ContextOptions, type Preset, parseRequest } from './build-context.ts';

type Fields = Readonly<Record<string, unknown>>;

/** `passes`, or `code param` of the refusal. */
function verdict(body: Fields, options: ContextOptions = {}): string {
  const request = parseRequest(body, options);
  if (request.ok) return 'passes';
  return request.error.kind === 'invalid_parameter'
    ? `${request.error.code} ${request.error.param}`
    : request.error.kind;
}

const PRESETS: readonly Preset[] = ['boardwalk', 'springboards', 'boole', undefined];
const ALL: ContextOptions = { policy: { max_n: 8 } };
const FUNCTION = { type: 'function', function: { name: 'f' } };
const CALL = { id: 'a', type: 'function', function: { name: 'f', arguments: '{}' } };
const user = (rest: object): Fields => ({ messages: [{ role: 'user', content: 'x', ...rest }] });
const assistant = (rest: object): Fields => ({ messages: [{ role: 'assistant', content: 'x', ...rest }] });
const call = (rest: object): Fields => assistant({ tool_calls: [{ ...CALL, ...rest }] });

/** Fields that every document lists: checked under every preset. */
const LISTED: Readonly<Record<string, { good: readonly unknown[]; bad: readonly (readonly [unknown, string])[] }>> = {
  stream: {
    good: [true, false],
    bad: [
      ['true', 'invalid_type'],
      [1, 'invalid_type'],
    ],
  },
  stream_options: {
    good: [{}, { include_usage: true }, { include_usage: null, other: 1 }],
    bad: [
      ['x', 'invalid_type'],
      [[], 'invalid_type'],
    ],
  },
  max_tokens: {
    good: [1, 4096, 2.0],
    bad: [
      ['1', 'invalid_type'],
      [1.5, 'invalid_type'],
      [0, 'integer_below_min_value'],
      [-5, 'integer_below_min_value'],
    ],
  },
  max_completion_tokens: {
    good: [1, 4096],
    bad: [
      [true, 'invalid_type'],
      [0, 'integer_below_min_value'],
    ],
  },
  temperature: {
    good: [0, 1, 2, 0.7],
    bad: [
      ['1', 'invalid_type'],
      [-0.1, 'decimal_below_min_value'],
      [2.1, 'decimal_above_max_value'],
    ],
  },
  top_p: {
    good: [0.0001, 1],
    bad: [
      ['1', 'invalid_type'],
      [0, 'decimal_below_min_value'],
      [-1, 'decimal_below_min_value'],
      [1.01, 'decimal_above_max_value'],
    ],
  },
  n: {
    good: [1, 8],
    bad: [
      ['1', 'invalid_type'],
      [1.5, 'invalid_type'],
      [0, 'integer_below_min_value'],
      [9, 'unsupported_value'],
    ],
  },
  stop: {
    good: ['x', '', [], ['a'], ['a', 'b', 'c', 'd']],
    bad: [
      [5, 'invalid_type'],
      [{}, 'invalid_type'],
    ],
  },
  presence_penalty: {
    good: [-2, 0, 2],
    bad: [
      ['0', 'invalid_type'],
      [-2.1, 'decimal_below_min_value'],
      [2.1, 'decimal_above_max_value'],
    ],
  },
  frequency_penalty: {
    good: [-2, 0, 2],
    bad: [
      ['0', 'invalid_type'],
      [-2.1, 'decimal_below_min_value'],
      [2.1, 'decimal_above_max_value'],
    ],
  },
  seed: {
    good: [0, -1, 42, 2 ** 60],
    bad: [
      ['1', 'invalid_type'],
      [1.5, 'invalid_type'],
    ],
  },
  user: {
    good: ['', 'u'],
    bad: [
      [5, 'invalid_type'],
      [{}, 'invalid_type'],
    ],
  },
  chat_template_kwargs: {
    good: [{}, { enable_thinking: 'any', __proto__: null }],
    bad: [
      ['x', 'invalid_type'],
      [[1, 2], 'invalid_type'],
    ],
  },
};

describe.each(PRESETS)('fields that every document lists, preset %s', (preset) => {
  const options: ContextOptions = { ...ALL, preset };
  test.each(Object.entries(LISTED))('§4 %s', (field, { good, bad }) => {
    for (const value of good) expect(verdict({ [field]: value }, options), JSON.stringify(value)).toBe('passes');
    for (const [value, code] of bad)
      expect(verdict({ [field]: value }, options), JSON.stringify(value)).toBe(`${code} ${field}`);
    expect(verdict({ [field]: null }, options), 'null is absent').toBe('passes');
  });
});

/** Fields that Springboards' document does not list. */
const FURTHER: Readonly<
  Record<string, { good: readonly unknown[]; bad: readonly (readonly [unknown, string, string?])[] }>
> = {
  logprobs: { good: [true, false], bad: [[1, 'invalid_type']] },
  top_logprobs: {
    good: [0, 20],
    bad: [
      ['1', 'invalid_type'],
      [-1, 'integer_below_min_value'],
      [21, 'integer_above_max_value'],
      [1.5, 'invalid_type'],
    ],
  },
  logit_bias: {
    good: [{}, { 5: -100, 6: 0.5 }],
    bad: [
      [[], 'invalid_type'],
      ['x', 'invalid_type'],
      [{ 5: 'x' }, 'invalid_type', 'logit_bias.5'],
    ],
  },
  tools: {
    good: [[], [FUNCTION], [{ ...FUNCTION, function: { name: 'f', description: 'd', parameters: {}, strict: true } }]],
    bad: [
      [{}, 'invalid_type'],
      [['x'], 'invalid_type', 'tools[0]'],
      [[{ function: { name: 'f' } }], 'missing_required_parameter', 'tools[0].type'],
      [[{ type: 'web_search' }], 'invalid_value', 'tools[0].type'],
      [[{ type: 'function' }], 'missing_required_parameter', 'tools[0].function'],
      [[FUNCTION, { type: 'function', function: {} }], 'missing_required_parameter', 'tools[1].function.name'],
      [[{ type: 'function', function: { name: 5 } }], 'invalid_type', 'tools[0].function.name'],
      [
        [{ type: 'function', function: { name: 'f', parameters: 'x' } }],
        'invalid_type',
        'tools[0].function.parameters',
      ],
      [[{ type: 'function', function: { name: 'f', strict: 'x' } }], 'invalid_type', 'tools[0].function.strict'],
    ],
  },
  tool_choice: {
    good: ['none', 'auto'],
    bad: [
      ['always', 'invalid_value'],
      [5, 'invalid_type'],
      [{ type: 'function' }, 'missing_required_parameter', 'tool_choice.function'],
      [{ type: 'function', function: {} }, 'missing_required_parameter', 'tool_choice.function.name'],
      [{ type: 'tool', function: { name: 'f' } }, 'invalid_value', 'tool_choice.type'],
    ],
  },
  parallel_tool_calls: { good: [true, false], bad: [['x', 'invalid_type']] },
  response_format: {
    good: [
      { type: 'text' },
      { type: 'json_object' },
      { type: 'json_schema', json_schema: { name: 'n', schema: {}, strict: true } },
    ],
    bad: [
      ['json', 'invalid_type'],
      [{}, 'missing_required_parameter', 'response_format.type'],
      [{ type: 'xml' }, 'invalid_value', 'response_format.type'],
      [{ type: 'json_schema' }, 'missing_required_parameter', 'response_format.json_schema'],
      [{ type: 'json_schema', json_schema: null }, 'missing_required_parameter', 'response_format.json_schema'],
      [{ type: 'json_schema', json_schema: {} }, 'missing_required_parameter', 'response_format.json_schema.name'],
    ],
  },
};

describe('fields that Springboards’ document does not list', () => {
  test.each(Object.entries(FURTHER))('§4 %s: checked under `all`, unread under `listed`', (field, { good, bad }) => {
    const base = field === 'top_logprobs' ? { logprobs: true } : {};
    for (const preset of ['boardwalk', undefined] as const) {
      for (const value of good)
        expect(verdict({ ...base, [field]: value }, { preset }), JSON.stringify(value)).toBe('passes');
      for (const [value, code, param] of bad) {
        expect(verdict({ [field]: value }, { preset }), JSON.stringify(value)).toBe(`${code} ${param ?? field}`);
      }
      expect(verdict({ [field]: null }, { preset }), 'null is absent').toBe('passes');
    }
    for (const preset of ['springboards', 'boole'] as const) {
      for (const value of [...good, ...bad.map(([wrong]) => wrong), null]) {
        const options: ContextOptions = { preset, entry: { capabilities: {} } };
        expect(verdict({ [field]: value }, options), JSON.stringify(value)).toBe('passes');
      }
    }
  });
});

describe('messages', () => {
  test.each<[string, Fields, string]>([
    ['absent', { messages: undefined }, 'missing_required_parameter messages'],
    ['null', { messages: null }, 'missing_required_parameter messages'],
    ['empty', { messages: [] }, 'empty_array messages'],
    ['a string', { messages: 'x' }, 'invalid_type messages'],
    ['of strings', { messages: ['x'] }, 'invalid_type messages[0]'],
    ['without role', { messages: [{ content: 'x' }] }, 'missing_required_parameter messages[0].role'],
    ['role null', user({ role: null }), 'missing_required_parameter messages[0].role'],
    ['role unknown', user({ role: 'function' }), 'invalid_value messages[0].role'],
    ['role of a wrong type', user({ role: 5 }), 'invalid_type messages[0].role'],
    ['content of a wrong type', user({ content: 5 }), 'invalid_type messages[0].content'],
    ['a part of a wrong type', user({ content: ['x'] }), 'invalid_type messages[0].content[0]'],
    [
      'a part without type',
      user({ content: [{ text: 'x' }] }),
      'missing_required_parameter messages[0].content[0].type',
    ],
    [
      'a text part without text',
      user({ content: [{ type: 'text' }] }),
      'missing_required_parameter messages[0].content[0].text',
    ],
    ['text parts', user({ content: [{ type: 'text', text: 'x' }] }), 'passes'],
    ['name', user({ name: 'n' }), 'passes'],
    ['name of a wrong type', user({ name: 5 }), 'invalid_type messages[0].name'],
    ['a tool call', call({}), 'passes'],
    ['tool_calls of a wrong type', assistant({ tool_calls: {} }), 'invalid_type messages[0].tool_calls'],
    ['a call without id', call({ id: undefined }), 'missing_required_parameter messages[0].tool_calls[0].id'],
    ['a call without type', call({ type: undefined }), 'missing_required_parameter messages[0].tool_calls[0].type'],
    ['a call of another type', call({ type: 'custom' }), 'invalid_value messages[0].tool_calls[0].type'],
    [
      'a call without name',
      call({ function: { arguments: '' } }),
      'missing_required_parameter messages[0].tool_calls[0].function.name',
    ],
    [
      'arguments as an object',
      call({ function: { name: 'f', arguments: {} } }),
      'invalid_type messages[0].tool_calls[0].function.arguments',
    ],
    ['tool_call_id', { messages: [{ role: 'tool', content: 'x', tool_call_id: 'a' }] }, 'passes'],
    [
      'tool_call_id of a wrong type',
      { messages: [{ role: 'tool', content: 'x', tool_call_id: 5 }] },
      'invalid_type messages[0].tool_call_id',
    ],
    ['reasoning', assistant({ reasoning: 'r', reasoning_content: 'r' }), 'passes'],
    ['reasoning of a wrong type', assistant({ reasoning: {} }), 'invalid_type messages[0].reasoning'],
    [
      'the second of two',
      {
        messages: [
          { role: 'user', content: 'x' },
          { role: 'x', content: 'x' },
        ],
      },
      'invalid_value messages[1].role',
    ],
  ])('§4 %s', (_name, body, expected) => {
    for (const preset of PRESETS) expect(verdict(body, { preset }), String(preset)).toBe(expected);
  });

  test.each(['system', 'developer', 'user', 'assistant', 'tool'])('§4 role %s passes', (role) => {
    expect(verdict(user({ role }))).toBe('passes');
  });

  const missing = 'missing_required_parameter messages[0].content';
  test.each<[string, Fields, string]>([
    ['absent', user({ content: undefined }), missing],
    ['null', user({ content: null }), missing],
    ['null beside tool calls', call({}), 'passes'],
    [
      'absent beside tool calls',
      {
        messages: [
          { role: 'assistant', tool_calls: [{ id: 'a', type: 'function', function: { name: 'f', arguments: '' } }] },
        ],
      },
      'passes',
    ],
    ['null beside no tool calls', { messages: [{ role: 'assistant', content: null, tool_calls: [] }] }, missing],
    ['null beside tool calls of a user', { messages: [{ role: 'user', content: null, tool_calls: [CALL] }] }, missing],
  ])('§4 content %s: optional, or required by Springboards and Boole', (_name, body, expected) => {
    for (const preset of ['boardwalk', undefined] as const) expect(verdict(body, { preset })).toBe('passes');
    for (const preset of ['springboards', 'boole'] as const) expect(verdict(body, { preset })).toBe(expected);
  });

  test('§4 reasoning_content on a role other than assistant: refused by boardwalk, null is absent', () => {
    const body = user({ reasoning_content: 'r' });
    expect(verdict(body, { preset: 'boardwalk' })).toBe('unsupported_parameter messages[0].reasoning_content');
    for (const preset of ['springboards', 'boole', undefined] as const)
      expect(verdict(body, { preset })).toBe('passes');
    expect(verdict(user({ reasoning_content: null, reasoning: 'r' }), { preset: 'boardwalk' })).toBe('passes');
  });
});

describe('limits of the policy and the model', () => {
  test.each<[string, Fields, ContextOptions, string]>([
    ['n over max_n', { n: 2 }, {}, 'unsupported_value n'],
    ['n of max_n', { n: 2 }, { policy: { max_n: 2 } }, 'passes'],
    ['n on tgi', { n: 2 }, { policy: { max_n: 8 }, engine: 'tgi' }, 'unsupported_value n'],
    ['n on ollama', { n: 2 }, { preset: 'springboards', engine: 'ollama' }, 'unsupported_value n'],
    ['n of 1 on tgi', { n: 1 }, { policy: { max_n: 8 }, engine: 'tgi' }, 'passes'],
    ['five stops', { stop: ['a', 'b', 'c', 'd', 'e'] }, {}, 'array_above_max_length stop'],
    ['five stops, Boole', { stop: ['a', 'b', 'c', 'd', 'e'] }, { preset: 'boole' }, 'passes'],
    ['a stop that is no string', { stop: ['a', 5] }, {}, 'invalid_type stop[1]'],
    [
      'max_tokens over the model’s ceiling',
      { max_tokens: 101 },
      { entry: { max_output_tokens: 100 } },
      'integer_above_max_value max_tokens',
    ],
    [
      'max_completion_tokens over it',
      { max_completion_tokens: 101, max_tokens: 5 },
      { entry: { max_output_tokens: 100 } },
      'integer_above_max_value max_completion_tokens',
    ],
    [
      'max_tokens over it, but not the one that counts',
      { max_completion_tokens: 100, max_tokens: 500 },
      { entry: { max_output_tokens: 100 } },
      'passes',
    ],
    [
      'a limit over the context',
      { max_tokens: 101 },
      { entry: { context_length: 100 } },
      'context_length_exceeded messages',
    ],
    ['a limit of the context', { max_tokens: 100 }, { entry: { context_length: 100 } }, 'passes'],
    ['stream_options without stream is still checked', { stream_options: 5 }, {}, 'invalid_type stream_options'],
  ])('§4 %s', (_name, body, options, expected) => {
    expect(verdict(body, options)).toBe(expected);
  });

  const long = { messages: [{ role: 'user', content: 'word '.repeat(4000) }] };
  test.each<[string, Fields, ContextOptions, string]>([
    ['llamacpp, a prompt that surely is too long', long, { engine: 'llamacpp' }, 'context_length_exceeded messages'],
    ['ollama likewise', long, { engine: 'ollama' }, 'context_length_exceeded messages'],
    ['vllm refuses for itself', long, { engine: 'vllm' }, 'passes'],
    [
      'llamacpp, prompt and limit together',
      { max_tokens: 990, messages: [{ role: 'user', content: 'word '.repeat(100) }] },
      { engine: 'llamacpp' },
      'context_length_exceeded messages',
    ],
    [
      'llamacpp, in doubt the engine decides',
      { max_tokens: 700, messages: [{ role: 'user', content: 'word '.repeat(280) }] },
      { engine: 'llamacpp' },
      'passes',
    ],
    ['llamacpp, a short prompt', {}, { engine: 'llamacpp' }, 'passes'],
  ])('§4 engines that truncate silently: %s', (_name, body, options, expected) => {
    expect(verdict(body, { ...options, entry: { context_length: 1000 } })).toBe(expected);
  });

  test('§4 what a limit over the context says names the maximum', () => {
    const request = parseRequest({ max_tokens: 101 }, { entry: { context_length: 100 } });
    expect(request).toMatchObject({
      error: { message: expect.stringContaining('maximum context length is 100 tokens') },
    });
  });
});

describe('unknown fields', () => {
  const body = { ...user({ unknown_too: 1 }), made_up: 1 };
  test.each<[string, Fields, string]>([
    ['pass', body, 'passes'],
    ['drop', body, 'passes'],
    ['reject', body, 'unknown_parameter made_up'],
    ['reject', { metadata: { a: 'b' }, made_up: null }, 'unknown_parameter metadata'],
    ['reject', { made_up: null }, 'passes'],
    ['reject', { reasoning_effort: 'low', reasoning: {}, tools: [], user: 'u', chat_template_kwargs: {} }, 'passes'],
    ['reject', { priority: 5 }, 'passes'],
  ])('§4 unknown_fields %s: %j', (unknown_fields, fields, expected) => {
    expect(verdict(fields, { policy: { unknown_fields } })).toBe(expected);
  });
});

describe('what is read out', () => {
  test('§4 a bare request', () => {
    const request = parseRequest({});
    expect(request).toMatchObject({
      ok: true,
      value: { stream: false, usageRequested: false, choices: 1, outputLimit: null, effort: null, endUser: null },
    });
  });

  test.each<[string, Fields, ContextOptions, object]>([
    ['stream', { stream: true }, {}, { stream: true, usageRequested: false }],
    ['usage asked for', { stream: true, stream_options: { include_usage: true } }, {}, { usageRequested: true }],
    [
      'usage asked for without stream',
      { stream_options: { include_usage: true } },
      {},
      { stream: false, usageRequested: false },
    ],
    ['the newer limit wins', { max_tokens: 5, max_completion_tokens: 7 }, {}, { outputLimit: 7 }],
    ['the older limit alone', { max_tokens: 5, max_completion_tokens: null }, {}, { outputLimit: 5 }],
    ['the model’s ceiling', {}, { entry: { max_output_tokens: 9 } }, { outputLimit: 9 }],
    ['n', { n: 3 }, { policy: { max_n: 3 } }, { choices: 3 }],
    ['user', { user: 'u' }, {}, { endUser: 'u' }],
    ['effort', { reasoning_effort: 'low' }, {}, { effort: 'low' }],
  ])('§4 %s', (_name, body, options, expected) => {
    expect(parseRequest(body, options)).toMatchObject({ ok: true, value: expected });
  });
});

test('§10 names of Object.prototype are fields like any other', () => {
  const odd: Fields = JSON.parse('{"__proto__":{"stream":"x"},"constructor":1,"toString":null}');
  expect(verdict(odd)).toBe('passes');
  const logit =
    '{"model":"m","messages":[{"role":"user","content":"x","__proto__":{"role":"x"}}],"logit_bias":{"__proto__":1}}';
  expect(parseRequest(logit).ok).toBe(true);
});
