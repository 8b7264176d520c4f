// JSON answers in the normal form of SPEC §4, and what is no answer.

import { describe, expect, test } from 'vitest';
import { chatCompletions } from '../../src/openai/chat-completions.ts';
import { type Progress } from '../../src/openai/endpoint.ts';
import { buildContext, type ContextOptions, readCapture, USAGE } from './build-context.ts';
import { chatAnswerSchema } from './published-schema.ts';

type Answer = {
  readonly choices: readonly { readonly message: Record<string, unknown> }[];
  readonly usage: Record<string, unknown>;
};

function answer(
  text: string | object,
  options: ContextOptions = {},
): { body: Answer; progress: Progress; text: string } {
  const context = buildContext({ ...options, body: { stream: false, ...options.body } });
  const result = chatCompletions.toJsonAnswer(typeof text === 'string' ? text : JSON.stringify(text), context);
  if (!result.ok) throw new Error(JSON.stringify(result.error));
  chatAnswerSchema.parse(JSON.parse(result.value.body));
  const body: Answer = JSON.parse(result.value.body);
  return { body, progress: result.value.progress, text: result.value.body };
}

const ENGINE = {
  id: 'chatcmpl-1',
  object: 'chat.completion',
  created: 1_796_000_001,
  model: 'org/Model-7B',
  choices: [{ index: 0, message: { role: 'assistant', content: 'Hi' }, finish_reason: 'stop' }],
  usage: USAGE,
};
const NORMAL = {
  ...ENGINE,
  model: 'support',
  choices: [
    { index: 0, message: { role: 'assistant', content: 'Hi', refusal: null }, logprobs: null, finish_reason: 'stop' },
  ],
};
const message = (own: object, rest: object = {}): object => ({
  ...ENGINE,
  choices: [{ index: 0, message: { role: 'assistant', content: 'Hi', ...own }, finish_reason: 'stop', ...rest }],
});

describe('normal form', () => {
  test('§4 logprobs and refusal are there as null; the model is the requested one', () => {
    expect(answer(ENGINE).body).toEqual(NORMAL);
    expect(answer(ENGINE).progress).toEqual({
      usage: { input_tokens: 3, cached_input_tokens: 0, cache_write_tokens: 0, output_tokens: 2, reasoning_tokens: 0 },
      usageSource: 'engine',
      finishReason: 'stop',
      completionId: 'chatcmpl-1',
      servedModel: 'org/Model-7B',
      started: true,
    });
  });

  test('§4 idempotence: the answer fed in again is unchanged', () => {
    const once = answer(readCapture('chat-nonstream-logprobs'), { engine: 'llamacpp' }).text;
    expect(answer(once).text).toBe(once);
  });

  test('WIRE 32: BOM-free JSON with CR LF and white space is read', () => {
    expect(answer(`\r\n${JSON.stringify(ENGINE, null, 2).replaceAll('\n', '\r\n')}\r\n`).body).toEqual(NORMAL);
  });

  test.each<[string, object, ContextOptions, object]>([
    ['id "" (TGI): minted', { ...ENGINE, id: '' }, {}, { id: 'chatcmpl-0123456789' }],
    ['id absent: minted', { ...ENGINE, id: undefined }, {}, { id: 'chatcmpl-0123456789' }],
    [
      'an id that repeats (Ollama): minted',
      { ...ENGINE, id: 'chatcmpl-42' },
      { engine: 'ollama' },
      { id: 'chatcmpl-0123456789' },
    ],
    ['object another', { ...ENGINE, object: 'text' }, {}, { object: 'chat.completion' }],
    ['created absent', { ...ENGINE, created: undefined }, {}, { created: 1_796_000_000 }],
    ['created a fraction', { ...ENGINE, created: 1.5 }, {}, { created: 1_796_000_000 }],
    ['model by policy engine', ENGINE, { preset: 'boardwalk' }, { model: 'org/Model-7B' }],
    ['model by policy engine, none named', { ...ENGINE, model: '' }, { preset: 'boardwalk' }, { model: 'support' }],
  ])('§4 %s', (_name, engine, options, expected) => {
    expect(answer(engine, options).body).toMatchObject(expected);
  });

  test('§4 engine internals are gone', () => {
    const inner = {
      prompt_token_ids: [1],
      kv_transfer_params: {},
      timings: {},
      metrics: {},
      prompt_logprobs: null,
      error: null,
    };
    const engine = {
      ...ENGINE,
      ...inner,
      choices: [{ ...ENGINE.choices[0], stop_reason: 5, token_ids: [1], matched_stop: 2 }],
    };
    expect(answer(engine).body).toEqual(NORMAL);
  });

  test.each<[string, ContextOptions, object]>([
    ['both', {}, { reasoning: 'r', reasoning_content: 'r' }],
    ['Springboards, asked', { preset: 'springboards', body: { reasoning_effort: 'low' } }, { reasoning_content: 'r' }],
    ['effort none', { body: { reasoning_effort: 'none' } }, {}],
  ])('§4 reasoning by policy: %s', (_name, options, expected) => {
    const { message: said } = NORMAL.choices[0]!;
    for (const own of [{ reasoning: 'r' }, { reasoning_content: 'r' }, { reasoning: 'r', reasoning_content: '' }]) {
      expect(answer(message(own), options).body.choices[0]?.message).toEqual({ ...said, ...expected });
    }
  });

  test('§4 with effort none, log probabilities that spell the reasoning do not leave either', () => {
    const engine = message({ reasoning: 'secret' }, { logprobs: { content: [{ token: 'secret', logprob: -1 }] } });
    expect(answer(engine, { body: { reasoning_effort: 'none', logprobs: true } }).text).not.toContain('secret');
    expect(answer(engine, { body: { logprobs: true } }).text).toContain('"logprobs":{"content":[');
  });

  const called = { id: 'a', type: 'function', function: { name: 'f', arguments: '{"x":1}' } };
  test.each<[string, unknown, unknown]>([
    ['as they are', [called], [called]],
    ['arguments as an object', [{ ...called, function: { name: 'f', arguments: { x: 1 } } }], [called]],
    [
      'arguments absent',
      [{ ...called, function: { name: 'f' } }],
      [{ ...called, function: { name: 'f', arguments: '{}' } }],
    ],
    ['type absent, other members', [{ id: 'a', index: 0, function: { ...called.function, parsed: {} } }], [called]],
    ['id ""', [{ ...called, id: '' }], [{ ...called, id: 'call_0123456789_0_0' }]],
    [
      'two without id',
      [
        { ...called, id: null },
        { ...called, id: undefined },
      ],
      [
        { ...called, id: 'call_0123456789_0_0' },
        { ...called, id: 'call_0123456789_0_1' },
      ],
    ],
    ['none', [], undefined],
    ['null', null, undefined],
  ])('§4 tool calls: %s', (_name, tool_calls, expected) => {
    expect(answer(message({ tool_calls, content: null })).body.choices[0]?.message['tool_calls']).toEqual(expected);
  });

  test.each<[unknown, object, string]>([
    ['stop', {}, 'stop'],
    ['eos_token', {}, 'stop'],
    ['length', {}, 'length'],
    ['', {}, 'stop'],
    [null, {}, 'stop'],
    [undefined, { tool_calls: [called] }, 'tool_calls'],
    ['constructor', {}, 'stop'],
  ])('§4 finish_reason %j with %j is %s', (finish_reason, own, expected) => {
    const { body, progress } = answer(message(own, { finish_reason }));
    expect(body.choices[0]).toMatchObject({ finish_reason: expected });
    expect(progress.finishReason).toBe(expected);
  });

  test('§9 of several choices the reason that is not stop counts', () => {
    const choices = ['stop', 'length', 'stop'].map((finish_reason, index) => ({
      ...ENGINE.choices[0],
      index,
      finish_reason,
    }));
    const result = answer({ ...ENGINE, choices }, { policy: { max_n: 3 }, body: { n: 3 } });
    expect(result.progress.finishReason).toBe('length');
    expect(result.body.choices).toHaveLength(3);
  });
});

describe('usage', () => {
  test.each<[string, object, object]>([
    ['total absent: summed', { prompt_tokens: 3, completion_tokens: 2 }, USAGE],
    [
      'zero is zero',
      { prompt_tokens: 0, completion_tokens: 0 },
      { prompt_tokens: 0, completion_tokens: 0, total_tokens: 0 },
    ],
    [
      'cache counters by their documented names',
      { ...USAGE, prompt_tokens_details: { cached_tokens: 1, cache_write_tokens: 2 } },
      { ...USAGE, prompt_tokens_details: { cached_tokens: 1, created_cache_tokens: 2 } },
    ],
    ['extra members gone', { ...USAGE, per_turn: [] }, USAGE],
  ])('§4 %s', (_name, usage, expected) => {
    expect(answer({ ...ENGINE, usage }).body.usage).toEqual(expected);
  });

  test.each([undefined, null, {}, 'x'])('§7 usage %j: the gateway’s own count, marked estimated', (usage) => {
    const { body, progress } = answer({ ...ENGINE, usage });
    expect(body.usage).toMatchObject({ completion_tokens: expect.any(Number), estimated: true });
    expect(body.usage['prompt_tokens']).toBeGreaterThan(0);
    expect(progress).toMatchObject({ usageSource: 'estimated' });
    expect(progress.usage.output_tokens).toBeGreaterThan(0);
  });

  test('§7 an estimate grows with the answer', () => {
    const long = answer({ ...message({ content: 'word '.repeat(100) }), usage: null });
    expect(long.progress.usage.output_tokens).toBeGreaterThan(100);
  });
});

describe('no answer', () => {
  test.each<[string, string, string | object]>([
    ['empty', 'upstream_error', ''],
    ['HTML', 'upstream_error', '<html>502</html>'],
    ['cut JSON', 'upstream_error', '{"id":"chatcmpl-1","choices":[{"ind'],
    ['an array', 'upstream_error', '[]'],
    ['no choices', 'upstream_error', { ...ENGINE, choices: undefined }],
    ['choices empty', 'upstream_error', { ...ENGINE, choices: [] }],
    ['WIRE 11: 200 with an error', 'upstream_error', { error: { message: 'boom', code: 500 } }],
    ['200 with an error as text', 'upstream_error', { error: 'boom' }],
    ['200 with SGLang’s error object', 'upstream_error', { object: 'error', message: 'boom', code: 500 }],
    ['200 with an overload', 'server_is_overloaded', { error: { message: 'busy', code: 503 } }],
    ['SGLang’s finish abort', 'upstream_error', message({}, { finish_reason: 'abort' })],
  ])('§3 %s: %s', (_name, failure, engine) => {
    const result = chatCompletions.toJsonAnswer(
      typeof engine === 'string' ? engine : JSON.stringify(engine),
      buildContext(),
    );
    expect(result).toMatchObject({ ok: false, error: { error: { kind: 'upstream', failure } } });
  });
});

describe('llama-server captures', () => {
  test.each<[string, object, object]>([
    [
      'chat-nonstream',
      {
        choices: [{ finish_reason: 'stop', logprobs: null }],
        usage: {
          prompt_tokens: 24,
          completion_tokens: 38,
          total_tokens: 62,
          prompt_tokens_details: { cached_tokens: 23 },
        },
      },
      { finishReason: 'stop' },
    ],
    ['chat-nonstream-length', { choices: [{ finish_reason: 'length' }] }, { finishReason: 'length' }],
    [
      'chat-tools-required-nonstream',
      {
        choices: [
          {
            finish_reason: 'tool_calls',
            message: { tool_calls: [{ type: 'function', function: { name: 'get_weather' } }] },
          },
        ],
      },
      { finishReason: 'tool_calls' },
    ],
    ['chat-nonstream-n2', { choices: [{ index: 0 }, { index: 1 }] }, { finishReason: 'stop' }],
  ])('§4 %s', (name, body, progress) => {
    const result = answer(readCapture(name), { engine: 'llamacpp', policy: { max_n: 2 } });
    expect(result.body).toMatchObject(body);
    expect(result.progress).toMatchObject({ usageSource: 'engine', ...progress });
    expect(result.text).not.toContain('timings');
  });
});
