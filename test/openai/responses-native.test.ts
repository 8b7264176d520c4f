// An engine's own responses told anew (SPEC §8): true captures of llama.cpp, and streams shaped after what WIRE §4d says of
// vLLM, its older versions, its harmony parser, SGLang and Ollama. What leaves is as published, whatever they leave out.

import { describe, expect, test } from 'vitest';

import { type GatewayError } from '../../src/core/errors.ts';
import { createSseParser } from '../../src/core/sse.ts';
import { responses } from '../../src/openai/responses.ts';
import { buildResponsesContext, type ContextOptions, readCapture } from './build-context.ts';
import { type PublishedResponse, responseSchema } from './published-response-schema.ts';
import { checkEnd, joinParts, parsePublishedResponses, type PublishedResponses } from './published-responses.ts';

type Options = ContextOptions & { readonly ends?: 'whole' | 'cut' };
type Told = PublishedResponses & { readonly progress: object; readonly text: string };

function buildNative({ entry = {}, ...options }: ContextOptions): ReturnType<typeof buildResponsesContext> {
  const reasoning = { control: 'chat_template_kwargs' };
  return buildResponsesContext({ ...options, entry: { responses: 'native', reasoning, ...entry } });
}

/** What the client gets of an engine's stream, as the relay would end it. */
function tell(stream: string, options: Options = {}): Told {
  const translator = responses.createTranslator(buildNative(options));
  let text = '';
  let error: GatewayError | null = { kind: 'upstream', failure: 'upstream_disconnected' };
  for (const event of createSseParser(1024 * 1024).push(stream).events) {
    const translated = translator.push(event);
    if (translated.type !== 'fault') text += translated.text;
    if (translated.type === 'fault') error = translated.error;
    if (translated.type === 'done') error = null;
    if (translated.type !== 'output') break;
  }
  text += error === null ? translator.finish() : translator.fail(error);
  return { ...parsePublishedResponses(text), progress: translator.progress(), text };
}

/** Events as an engine sends them. */
function toEvents(events: readonly Readonly<Record<string, unknown>>[]): string {
  return events.map((event) => `event: ${String(event['type'])}\ndata: ${JSON.stringify(event)}\n\n`).join('');
}

const USAGE = {
  input_tokens: 9,
  input_tokens_details: { cached_tokens: 4, input_tokens_per_turn: [9] },
  output_tokens: 6,
  output_tokens_details: { reasoning_tokens: 2, tool_output_tokens: 0 },
  total_tokens: 15,
};
const head = (status: string, output: unknown = [], more: object = {}): object => ({
  id: 'resp_engine',
  object: 'response',
  created_at: 1,
  model: 'org/Model-7B',
  status,
  output,
  ...more,
});
const opening = [
  { type: 'response.created', sequence_number: 0, response: head('in_progress') },
  { type: 'response.in_progress', sequence_number: 1, response: head('in_progress') },
];
const message = (id: string, text: string): object => ({
  id,
  type: 'message',
  role: 'assistant',
  status: 'completed',
  content: [{ type: 'output_text', text, annotations: [], logprobs: null }],
});
const thought = (id: string, text: string): object => ({
  id,
  type: 'reasoning',
  summary: [],
  content: [{ type: 'reasoning_text', text }],
});
const called = (id: string, call_id: string, args: string): object => ({
  id,
  type: 'function_call',
  call_id,
  name: 'f',
  arguments: args,
  status: 'completed',
});

/** vLLM: reasoning by parts of its own, then text; the final output has other ids. */
const VLLM = [
  ...opening,
  { type: 'response.output_item.added', output_index: 0, item: { ...thought('rs_a', ''), status: 'in_progress' } },
  { type: 'response.reasoning_part.added', item_id: 'rs_a', output_index: 0, content_index: 0, part: { text: '' } },
  { type: 'response.reasoning_text.delta', item_id: 'rs_a', output_index: 0, content_index: 0, delta: 'Let me ' },
  { type: 'response.reasoning_text.delta', item_id: 'rs_a', output_index: 0, content_index: 0, delta: 'see.' },
  { type: 'response.reasoning_text.done', item_id: 'rs_a', output_index: 0, content_index: 0, text: 'Let me see.' },
  { type: 'response.reasoning_part.done', item_id: 'rs_a', output_index: 0, content_index: 0, part: {} },
  { type: 'response.output_item.done', output_index: 0, item: thought('rs_a', 'Let me see.') },
  { type: 'response.output_item.added', output_index: 1, item: { ...message('msg_b', ''), content: [] } },
  { type: 'response.content_part.added', item_id: 'msg_b', output_index: 1, content_index: 0, part: {} },
  {
    type: 'response.output_text.delta',
    item_id: 'msg_b',
    output_index: 1,
    content_index: 0,
    delta: 'Hi',
    logprobs: [],
  },
  { type: 'response.output_text.delta', item_id: 'msg_b', output_index: 1, content_index: 0, delta: ' there' },
  { type: 'response.output_text.done', item_id: 'msg_b', output_index: 1, content_index: 0, text: 'Hi there' },
  { type: 'response.content_part.done', item_id: 'msg_b', output_index: 1, content_index: 0, part: {} },
  { type: 'response.output_item.done', output_index: 1, item: message('msg_b', 'Hi there') },
];
const end = (status: string, output: readonly object[], more: object = {}): Readonly<Record<string, unknown>> => ({
  type: 'response.completed',
  response: head(status, output, { usage: USAGE, ...more }),
});
const OUTPUT = [thought('rs_z', 'Let me see.'), message('msg_z', 'Hi there')];
const INCOMPLETE = { incomplete_details: { reason: 'max_output_tokens' } };

const texts = ({ response }: { response: PublishedResponse }): readonly string[] => [
  joinParts(response, 'reasoning_text'),
  joinParts(response, 'output_text'),
];

describe('§8 native: llama.cpp as captured', () => {
  test('§8 a stream without positions, numbers or a created response; its limit ended it, though it says completed', () => {
    const told = tell(readCapture('responses-stream'), { engine: 'llamacpp', body: { max_output_tokens: 20 } });
    const said = 'The sun was slow, until the tokens in the reader must know that the client without delay. The';
    expect(texts(told)).toEqual(['', said]);
    expect(told.response).toMatchObject({
      id: 'resp_0123456789',
      status: 'incomplete',
      incomplete_details: { reason: 'max_output_tokens' },
      usage: { input_tokens: 38, input_tokens_details: { cached_tokens: 37 }, output_tokens: 20, total_tokens: 58 },
    });
    expect(told.progress).toMatchObject({ finishReason: 'length', usageSource: 'engine', servedModel: 'tiny' });
  });

  test('§8 the same without a limit is complete', () => {
    expect(tell(readCapture('responses-stream'), { engine: 'llamacpp' }).response.status).toBe('completed');
  });

  test('§8 several calls with split arguments: each an item of its own; the limit cut the last', () => {
    const options = { engine: 'llamacpp', body: { max_output_tokens: 200 } } as const;
    const { response } = tell(readCapture('responses-tools-stream'), options);
    const calls = response.output.filter((item) => item.type === 'function_call');
    expect(calls.length).toBeGreaterThan(2);
    for (const call of calls) {
      expect(call).toMatchObject({ name: 'get_weather', call_id: expect.stringMatching(/^call_\w{32}$/) });
    }
    for (const call of calls.slice(0, -1)) expect(JSON.parse(call.arguments)).toHaveProperty('city');
    expect(new Set(calls.map(({ call_id }) => call_id)).size).toBe(calls.length);
    expect(response.status).toBe('incomplete');
    expect(calls.map(({ status }) => status === 'completed')).toEqual(calls.map((_, at) => at < calls.length - 1));
  });

  test('§8 a whole answer', () => {
    const context = buildNative({ engine: 'llamacpp', body: { stream: false, max_output_tokens: 20 } });
    const answer = responses.toJsonAnswer(readCapture('responses-nonstream'), context);
    if (!answer.ok) return expect.fail(answer.error.detail);
    const response = responseSchema.parse(JSON.parse(answer.value.body));
    checkEnd(response);
    expect(response).toMatchObject({ status: 'incomplete', model: 'support', usage: { output_tokens: 20 } });
    expect(joinParts(response, 'output_text')).toContain('The robot walked home');
  });

  test('§8 cut in the middle: failed, with what came', () => {
    const capture = readCapture('responses-stream');
    const told = tell(capture.slice(0, capture.indexOf('" without"')));
    expect(told.response).toMatchObject({ status: 'failed', output: [{ status: 'incomplete' }] });
    expect(joinParts(told.response, 'output_text')).toBe(
      'The sun was slow, until the tokens in the reader must know that the client',
    );
  });
});

describe('§8 native: vLLM and others, shaped after WIRE §4d', () => {
  test.each<[string, readonly Readonly<Record<string, unknown>>[]]>([
    ['as it is', [...VLLM, end('completed', OUTPUT)]],
    ['[DONE] of its own behind it', [...VLLM, end('completed', OUTPUT), { type: 'x' }]],
    ['the final output empty', [...VLLM, end('completed', [])]],
    [
      'no deltas, done items only',
      [...opening, ...VLLM.filter(({ type }) => /item\.done/.test(type)), end('completed', OUTPUT)],
    ],
    ['nothing but the end', [...opening, end('completed', OUTPUT)]],
    [
      'harmony: ids that start msg_, a content_index that grows',
      [
        ...JSON.parse(
          JSON.stringify(VLLM)
            .replaceAll('rs_a', 'msg_a')
            .replaceAll('"output_index":1,"content_index":0', '"output_index":1,"content_index":1'),
        ),
        end('completed', OUTPUT),
      ],
    ],
    [
      'SGLang, llama.cpp: neither ids nor positions',
      [
        ...VLLM.map(
          ({
            output_index: _index,
            item_id: _id,
            content_index: _content,
            ...event
          }: Readonly<Record<string, unknown>>) => event,
        ),
        end('completed', OUTPUT),
      ],
    ],
    [
      'Open Responses: reasoning under another name',
      [
        ...JSON.parse(JSON.stringify(VLLM).replaceAll('reasoning_text.delta', 'reasoning.delta')),
        end('completed', OUTPUT),
      ],
    ],
    [
      'Ollama: a summary in place of reasoning, its part never added',
      [
        ...JSON.parse(JSON.stringify(VLLM).replaceAll('reasoning_text.delta', 'reasoning_summary_text.delta')),
        end('completed', OUTPUT),
      ],
    ],
  ])('§8 %s: one reasoning item, one message, the same words', (_name, events) => {
    const told = tell(toEvents(events));
    expect(texts(told)).toEqual(['Let me see.', 'Hi there']);
    expect(told.response.output.map(({ type }) => type)).toEqual(['reasoning', 'message']);
    expect(told.response).toMatchObject({
      status: 'completed',
      usage: { input_tokens: 9, output_tokens: 6, output_tokens_details: { reasoning_tokens: 2 } },
    });
    expect(told.text).not.toMatch(/reasoning_part|per_turn|resp_engine|msg_[abz]|rs_[az]/);
    expect(told.progress).toMatchObject({ completionId: 'resp_0123456789', usageSource: 'engine', started: true });
  });

  test('§8 `completed` with the status incomplete (older vLLM) is incomplete', () => {
    const told = tell(toEvents([...VLLM, end('incomplete', OUTPUT, INCOMPLETE)]));
    expect(told.events.at(-1)?.type).toBe('response.incomplete');
    expect(told.response.incomplete_details).toEqual({ reason: 'max_output_tokens' });
  });

  test('§8 call ids: minted where they are empty, come again, or stand for a call of the input', () => {
    const calls = ['', 'c1', 'c1', 'c0'].map((id, index) => ({
      type: 'response.output_item.done',
      output_index: index,
      item: called(`fc_${index}`, id, `{"n":${index}}`),
    }));
    const input = [
      { type: 'function_call', call_id: 'c0', name: 'f', arguments: '{}' },
      { type: 'function_call_output', call_id: 'c0', output: '1' },
    ];
    const { response } = tell(toEvents([...opening, ...calls, end('completed', [])]), { body: { input } });
    const ids = response.output.map((item) => (item.type === 'function_call' ? item.call_id : ''));
    expect(ids).toEqual(['call_0123456789_0', 'c1', 'call_0123456789_2', 'call_0123456789_3']);
  });

  test('§8 calls whose arguments come in turns: both whole', () => {
    const added = [0, 1].map((index) => ({
      type: 'response.output_item.added',
      output_index: index,
      item: called(`fc_${index}`, `c${index}`, ''),
    }));
    const deltas = [0, 1, 0, 1].map((index, at) => ({
      type: 'response.function_call_arguments.delta',
      item_id: `fc_${index}`,
      output_index: index,
      delta: at < 2 ? '{"a"' : ':1}',
    }));
    const { response } = tell(toEvents([...opening, ...added, ...deltas, end('completed', [])]));
    expect(response.output).toMatchObject([
      { call_id: 'c0', arguments: '{"a":1}' },
      { call_id: 'c1', arguments: '{"a":1}' },
    ]);
  });

  test('§4 effort none: reasoning that the engine sends all the same does not leave, its tokens are billed', () => {
    const told = tell(toEvents([...VLLM, end('completed', OUTPUT)]), { body: { reasoning: { effort: 'none' } } });
    expect(texts(told)).toEqual(['', 'Hi there']);
    expect(told.text).not.toContain('Let me');
    expect(told.progress).toMatchObject({ usage: { reasoning_tokens: 2 } });
  });

  test.each<[string, readonly Readonly<Record<string, unknown>>[], string]>([
    ['an error event, nested', [{ type: 'error', error: { message: 'boom', code: 500 } }], 'upstream_error'],
    ['an error event, flat', [{ type: 'error', message: 'boom', code: null, param: null }], 'upstream_error'],
    [
      'response.failed',
      [{ type: 'response.failed', response: head('failed', [], { error: { message: 'x' } }) }],
      'upstream_error',
    ],
    ['response.failed without an error', [{ type: 'response.failed', response: {} }], 'upstream_error'],
    ['cancelled', [end('cancelled', [])], 'upstream_error'],
    ['no terminal event (aborted)', [], 'upstream_disconnected'],
  ])('§8 %s: failed, the partial output stays', (_name, tail) => {
    const told = tell(toEvents([...VLLM.slice(0, -3), ...tail]));
    expect(told.response).toMatchObject({ status: 'failed', error: { code: 'server_error' }, usage: null });
    expect(texts(told)).toEqual(['Let me see.', 'Hi there']);
    expect(told.text).not.toContain('boom');
  });

  test('§6 nothing is said before the engine has: an error behind `created` still has its status', () => {
    const translator = responses.createTranslator(buildNative({}));
    const { events } = createSseParser(1024 * 1024).push(
      toEvents([...opening, { type: 'error', error: { message: 'bad regex', code: 400 } }]),
    );
    expect(events.map((event) => translator.push(event))).toMatchObject([
      { type: 'output', text: '' },
      { type: 'output', text: '' },
      { type: 'fault', error: { kind: 'upstream_rejected' } },
    ]);
  });

  test.each(['{"error":{"message":"x"}}', '{"object":"response","status":"failed","output":[]}', '{}', '<html>'])(
    '§3 a whole answer that is none: %s',
    (text) => {
      const answer = responses.toJsonAnswer(text, buildNative({ body: { stream: false } }));
      expect(answer).toMatchObject({ ok: false, error: { error: { kind: 'upstream', failure: 'upstream_error' } } });
    },
  );

  test('§7 a whole answer to a streamed request is told as the stream it stands for', () => {
    const told = tell(responses.toStreamText({ ...head('completed', OUTPUT, { usage: USAGE }) }));
    expect(texts(told)).toEqual(['Let me see.', 'Hi there']);
  });
});

describe('§8 native: what goes up', () => {
  const up = (
    body: Readonly<Record<string, unknown>>,
    options: ContextOptions = {},
  ): Readonly<Record<string, unknown>> => {
    const { request, backend } = buildNative({ ...options, body });
    return JSON.parse(responses.toUpstreamBody(request, backend));
  };

  test('§8 the client’s own text: what is for the gateway alone is removed, nothing is stored', () => {
    const sent = up({
      metadata: { a: 'b' },
      user: 'u',
      safety_identifier: 's',
      prompt_cache_key: 'k',
      service_tier: 'auto',
      truncation: 'disabled',
      background: false,
      include: [],
      temperature: null,
      top_p: [],
      text: {},
      top_k: 5,
      priority: 1,
      input: [
        { role: 'developer', content: 'Be brief.' },
        { role: 'user', content: 'Hi' },
      ],
      tools: [],
      tool_choice: 'auto',
      max_output_tokens: 7,
      reasoning: { effort: 'none' },
    });
    expect(sent).toEqual({
      model: 'org/Model-7B',
      stream: true,
      store: false,
      input: [
        { role: 'system', content: 'Be brief.' },
        { role: 'user', content: 'Hi' },
      ],
      max_output_tokens: 7,
      top_k: 5,
      chat_template_kwargs: { enable_thinking: false },
    });
  });

  test('§8 parallel_tool_calls false is refused on vLLM’s own endpoint, whatever the catalog says', () => {
    expect(() => up({ parallel_tool_calls: false })).toThrow('parallel_tool_calls');
    expect(up({ parallel_tool_calls: false }, { engine: 'llamacpp' })).toHaveProperty('model');
  });
});
