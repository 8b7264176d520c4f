// What goes up: the client's own text with single fields set or removed, to the letter (SPEC §4).

import { describe, expect, test } from 'vitest';
import { chatCompletions } from '../../src/openai/chat-completions.ts';
import { listOwnedFields } from '../../src/openai/upstream-body.ts';
import { GATEWAY_OWNED_FIELDS } from '../../src/openai/engine-quirks.ts';
import { type Engine, ENGINES } from '../../src/core/model-entry.ts';
import { ALL_CAPABILITIES, buildRequest, type ContextOptions } from './build-context.ts';

type Fields = Readonly<Record<string, unknown>>;

function toUpstream(body: string | Fields, options: ContextOptions = {}): string {
  const request = buildRequest(body, options);
  return chatCompletions.toUpstreamBody(request, request.resolved.backends[0]);
}

/** The upstream body's fields but model and messages. */
function readUpstream(body: string | Fields, options: ContextOptions = {}): Fields {
  const fields: Record<string, unknown> = JSON.parse(toUpstream(body, options));
  const { model: _model, messages: _messages, ...rest } = fields;
  return rest;
}

const messages = (text: string, options: ContextOptions = {}): string =>
  toUpstream(`{"model":"support","messages": ${text}}`, options).replace(/^.*?"messages": (.*)\}$/s, '$1');

describe('fidelity', () => {
  test('§4 all that is not named stays to the letter: numbers, escapes, order, white space', () => {
    const body =
      '{ "seed":9007199254740993 ,\n "messages" : [ {"role":"user","content":"\\u00e9 \\/ 🙂 \\ud83d"} ],\t"x":1e400,' +
      '"model":"support", "temperature":1.0,"odd":{"b":1,"a":[1.50,-0]}, "logit_bias":{"10":1E+1}}';
    expect(toUpstream(body)).toBe(body.replace('"model":"support"', '"model":"org/Model-7B"'));
  });

  test('§4 an escaped model key is the model', () => {
    const body = '{"mod\\u0065l":"support","messages":[{"role":"user","content":"x"}]}';
    expect(toUpstream(body)).toBe(body.replace('"support"', '"org/Model-7B"'));
  });

  test('§4 null on an optional field is not sent up; false, 0, "" and {} are', () => {
    const body = {
      temperature: null,
      stop: null,
      user: null,
      made_up: null,
      logprobs: false,
      seed: 0,
      x: '',
      y: {},
    };
    expect(readUpstream(body)).toEqual({ logprobs: false, seed: 0, x: '', y: {} });
  });

  test('§4 __proto__ goes up as it came', () => {
    const body = '{"model":"support","__proto__":{"a":1},"messages":[{"role":"user","content":"x"}]}';
    expect(toUpstream(body)).toContain('"__proto__":{"a":1}');
  });
});

describe('gateway-owned fields', () => {
  const OWNED = [
    'priority',
    'request_id',
    'cache_salt',
    'chat_template',
    'mm_processor_kwargs',
    'kv_transfer_params',
    'vllm_xargs',
    'prompt_logprobs',
    'logits_processors',
    'use_beam_search',
    'truncate_prompt_tokens',
    'return_token_ids',
    'return_tokens_as_token_ids',
    'continue_final_message',
    'add_generation_prompt',
    'data_parallel_rank',
    'bootstrap_host',
    'bootstrap_port',
    'bootstrap_room',
    'rid',
    'lora_path',
    'session_params',
    'custom_logit_processor',

    'slot',
    'id_slot',
    'cache_prompt',
    'timings_per_token',
    'sse_ping_interval',
    'grammar',
    'keep_alive',
    'options',
    'best_of',
    'n_cmpl',
    'n_probs',
    'lora',
    'n_predict',
    'max_new_tokens',
    'min_tokens',
    'ignore_eos',
  ];
  test.each(OWNED)('§4 %s is removed and named for the log', (field) => {
    const body = { [field]: 1, kept: 1 };
    expect(readUpstream(body)).toEqual({ kept: 1 });
    expect(listOwnedFields(buildRequest(body))).toEqual([field]);
    expect(GATEWAY_OWNED_FIELDS.has(field)).toBe(true);
  });

  test('§4 spelt with an escape it is removed all the same', () => {
    const body = '{"model":"support","messages":[{"role":"user","content":"x"}],"prior\\u0069ty":5}';
    expect(toUpstream(body)).not.toContain('ty');
  });
});

describe('unknown fields', () => {
  test.each<[string, Fields]>([
    ['pass', { made_up: { a: 1 }, metadata: {}, top_k: 5 }],
    ['drop', {}],
  ])('§4 unknown_fields %s', (unknown_fields, expected) => {
    const body = { made_up: { a: 1 }, metadata: {}, top_k: 5, temperature: 1 };
    expect(readUpstream(body, { policy: { unknown_fields } })).toEqual({ ...expected, temperature: 1 });
  });
});

describe('stream and usage', () => {
  const asked = { include_usage: true };
  test.each<[Engine, Fields]>([
    ['vllm', { stream_options: { ...asked, continuous_usage_stats: true } }],
    ['sglang', { stream_options: { ...asked, continuous_usage_stats: true } }],
    ['llamacpp', { stream_options: asked, timings_per_token: true }],
    ['ollama', { stream_options: asked }],
    ['tgi', { stream_options: asked }],
    ['openai', { stream_options: asked }],
  ])('WIRE 3, §7 %s is always asked for usage, and as it runs where it can', (engine, expected) => {
    for (const stream_options of [undefined, null, {}, { include_usage: false }, { continuous_usage_stats: false }]) {
      const body = { stream: true, stream_options, timings_per_token: false };
      expect(readUpstream(body, { engine })).toEqual({ stream: true, ...expected });
    }
    expect(readUpstream({ stream: true }, { engine, entry: { running_counts: false } })).toEqual({
      stream: true,
      stream_options: asked,
    });
  });

  test('§4 what else stream_options has goes up to the letter; running counts only where they are asked for', () => {
    const text =
      '{"model":"support","messages":[{"role":"user","content":"x"}],"stream":true,"stream_options":{ "x":1.0, "continuous_usage_stats":true}}';
    const sent = toUpstream(text, { entry: { running_counts: false } });
    expect(sent).toContain('"stream_options":{ "x":1.0,"include_usage":true}');
  });

  test.each([undefined, false, null])('§4 stream %s: stream_options is removed', (stream) => {
    expect(readUpstream({ stream, stream_options: asked })).toEqual(stream === false ? { stream } : {});
  });
});

describe('output limit', () => {
  test.each<[string, Fields, number | undefined, ContextOptions]>([
    ['max_tokens', { max_tokens: 5 }, 5, {}],
    ['max_completion_tokens', { max_completion_tokens: 5 }, 5, {}],
    ['both: the newer', { max_tokens: 5, max_completion_tokens: 7 }, 7, {}],
    ['neither', {}, undefined, {}],
    ['null', { max_tokens: null, max_completion_tokens: null }, undefined, {}],
    ['neither: the model’s ceiling', {}, 9, { entry: { max_output_tokens: 9 } }],
    ['below the model’s ceiling', { max_completion_tokens: 3 }, 3, { entry: { max_output_tokens: 9 } }],
  ])('§4 one number under the name each engine knows: %s', (_name, body, expected, options) => {
    for (const engine of ENGINES) {
      expect(readUpstream(body, { ...options, engine }), engine).toEqual(
        expected === undefined ? {} : { max_tokens: expected },
      );
    }
  });
});

describe('stop', () => {
  test.each(ENGINES)('WIRE §4a a single sequence goes up to %s in a form it knows, to the letter', (engine) => {
    const body = '{"model":"support","messages":[{"role":"user","content":"x"}],"stop": "\\u0041"}';
    expect(toUpstream(body, { engine })).toContain(engine === 'tgi' ? '"stop": ["\\u0041"]' : '"stop": "\\u0041"');
    expect(readUpstream({ stop: ['a', 'b'] }, { engine })).toEqual({ stop: ['a', 'b'] });
  });
});

describe('sampling', () => {
  test.each<[string, Fields, Fields]>([
    ['omitted', {}, { temperature: 1, top_p: 1 }],
    ['null', { temperature: null, top_p: null }, { temperature: 1, top_p: 1 }],
    ['given', { temperature: 0, top_p: 0.5 }, { temperature: 0, top_p: 0.5 }],
  ])('§4 Boole sends 1 for what is omitted: %s', (_name, body, expected) => {
    expect(readUpstream(body, { preset: 'boole' })).toEqual(expected);
    expect(readUpstream(body)).toEqual(body['temperature'] === 0 ? expected : {});
  });
});

describe('reasoning', () => {
  const kwargs: ContextOptions = { entry: { reasoning: { control: 'chat_template_kwargs', kwarg: 'thinking' } } };
  const field: ContextOptions = { entry: { reasoning: { control: 'reasoning_effort', levels: ['low', 'high'] } } };
  test.each<[string, Fields, ContextOptions, Fields]>([
    ['both forms are removed', { reasoning_effort: 'low', reasoning: { effort: 'high' } }, {}, {}],
    ['kwarg on', { reasoning_effort: 'low' }, kwargs, { chat_template_kwargs: { thinking: true } }],
    ['kwarg off', { reasoning: { effort: 'none' } }, kwargs, { chat_template_kwargs: { thinking: false } }],
    ['kwarg, not asked', {}, kwargs, {}],
    [
      'kwarg, not asked, Springboards',
      {},
      { ...kwargs, preset: 'springboards' },
      { chat_template_kwargs: { thinking: false } },
    ],
    [
      'kwarg beside the caller’s own',
      { reasoning_effort: 'low', chat_template_kwargs: { a: 1 } },
      kwargs,
      { chat_template_kwargs: { a: 1, thinking: true } },
    ],
    [
      'the caller’s own kwarg is never overwritten',
      { reasoning_effort: 'none', chat_template_kwargs: { thinking: 'x' } },
      kwargs,
      { chat_template_kwargs: { thinking: 'x' } },
    ],
    [
      'the caller’s own kwarg of null neither',
      { reasoning_effort: 'none', chat_template_kwargs: { thinking: null } },
      kwargs,
      { chat_template_kwargs: { thinking: null } },
    ],
    [
      'kwarg with kwargs null',
      { reasoning_effort: 'low', chat_template_kwargs: null },
      kwargs,
      { chat_template_kwargs: { thinking: true } },
    ],
    ['field', { reasoning: { effort: 'high' } }, field, { reasoning_effort: 'high' }],
    ['field, a level it lacks', { reasoning_effort: 'medium' }, field, {}],
    ['kwargs without control go up', { chat_template_kwargs: { a: 1 } }, {}, { chat_template_kwargs: { a: 1 } }],
  ])('§4 %s', (_name, body, options, expected) => {
    expect(readUpstream(body, options)).toEqual(expected);
  });

  test('§4 chat_template_kwargs goes up verbatim, one key more', () => {
    const own = '{ "b" : 1.0,\n"a":9007199254740993 }';
    const body = `{"model":"support","messages":[{"role":"user","content":"x"}],"reasoning_effort":"low","chat_template_kwargs": ${own}}`;
    expect(toUpstream(body, kwargs)).toContain(`"chat_template_kwargs": ${own.replace(' }', ' ,"thinking":true}')}`);
    expect(toUpstream(body)).toContain(`"chat_template_kwargs": ${own}}`);
  });
});

describe('messages', () => {
  test('§4 developer becomes system, and only that; unless the backend says pass', () => {
    const text =
      '[ {"role" : "developer","content":"\\u0061", "name":"developer"} ,{"role":"user","content":"developer"}]';
    expect(messages(text)).toBe(text.replace('"role" : "developer"', '"role" : "system"'));
    expect(messages(text, { entry: { developer_role: 'pass' } })).toBe(text);
  });

  const both = '"reasoning":"r","reasoning_content":"r"';
  test.each<[Engine, string, string]>([
    ['vllm', '"reasoning_content":"r"', '"reasoning":"r"'],
    ['vllm', '"reasoning":"r"', '"reasoning":"r"'],
    ['vllm', both, '"reasoning":"r"'],
    ['vllm', '"reasoning":null,"reasoning_content":"r"', '"reasoning":"r"'],
    ['vllm', '"reasoning":"r","reasoning_content":null', '"reasoning":"r"'],
    ['vllm', '"reasoning_content":null', ''],
    ['sglang', '"reasoning":"r"', '"reasoning_content":"r"'],
    ['llamacpp', '"reasoning":"r"', '"reasoning_content":"r"'],
    ['llamacpp', '"reasoning":null', ''],
    ['ollama', '"reasoning_content":"r"', '"reasoning":"r"'],
    ['tgi', both, both],
    ['openai', both, both],
  ])('§4 reasoning of an assistant goes up under the name %s reads: {%s}', (engine, sent, expected) => {
    const [before, after] = [sent, expected].map((own) => `{"role":"assistant","content":"x"${own && `,${own}`}}`);
    expect(JSON.parse(messages(`[${before}]`, { engine }))).toEqual([JSON.parse(after!)]);
  });

  test('§4 on another role it stays as it came', () => {
    const text = '[{"role":"user","content":"x","reasoning_content":"r"}]';
    expect(messages(text)).toBe(text);
  });

  test('§4 one message of many is edited, the rest stays to the letter', () => {
    const text =
      '[{"role":"user","content":"\\u0041"}, {"content":null,"reasoning_content":"é\\n","role":"assistant","tool_calls":[{"id":"a","type":"function","function":{"name":"f","arguments":"{\\"reasoning_content\\":1}"}}]},{"role":"tool" ,"content":""}]';
    const edited = text
      .replace('"reasoning_content":"é\\n",', '')
      .replace(/\]\},\{"role":"tool"/, '],"reasoning":"é\\n"},{"role":"tool"');
    expect(messages(text)).toBe(edited);
  });
});

describe('tools', () => {
  test.each<[string, Fields, Fields]>([
    ['[]', { tools: [], tool_choice: 'auto', parallel_tool_calls: false }, {}],
    ['null', { tools: null, tool_choice: 'none' }, {}],
    ['absent', { tool_choice: 'none', parallel_tool_calls: true }, {}],
  ])('§4 no tools ask for nothing and go up as nothing: %s', (_name, body, expected) => {
    expect(readUpstream(body)).toEqual(expected);
    const unread = Object.fromEntries(Object.entries(body).filter(([, value]) => value !== null));
    expect(readUpstream(body, { preset: 'springboards' })).toEqual(unread);
  });

  const tools =
    '[ {"type":"function","function":{"name":"f","strict":true, "parameters":{"strict":1.0}}},{"type":"function","function":{"name":"g"}}]';
  const body = `{"model":"support","messages":[{"role":"user","content":"x"}],"tools":${tools}}`;
  test('§4 strict without strict_tools is dropped, and only that', () => {
    const without = { capabilities: { ...ALL_CAPABILITIES, strict_tools: false } };
    expect(toUpstream(body, { entry: without })).toContain(`"tools":${tools.replace('"strict":true,', '')}`);
  });

  test.each<[string, ContextOptions]>([
    ['with strict_tools', {}],
    ['unread under `listed`', { preset: 'springboards', entry: { capabilities: {} } }],
  ])('§4 strict goes up %s', (_name, options) => {
    expect(toUpstream(body, options)).toContain(`"tools":${tools}`);
  });
});
