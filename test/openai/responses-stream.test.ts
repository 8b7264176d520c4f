// A chat stream told as a response (SPEC §8): the canonical events of each kind of item, how a response ends, and what of it
// is on the receipt. Every stream here is as published, or the parser throws.

import { describe, expect, test } from 'vitest';

import { type GatewayError } from '../../src/core/errors.ts';
import { createSseParser } from '../../src/core/sse.ts';
import { responses } from '../../src/openai/responses.ts';
import {
  buildResponsesContext,
  chunk,
  type ContextOptions,
  NORMAL,
  readCapture,
  toSse,
  USAGE,
} from './build-context.ts';
import { responseSchema } from './published-response-schema.ts';
import { checkEnd, joinParts, parsePublishedResponses, type PublishedResponses } from './published-responses.ts';

type Told = PublishedResponses & { readonly text: string; readonly progress: object };

/** What the client gets of an engine's chat stream, as the relay would end it. */
function tell(upstream: string, options: ContextOptions = {}, done = false): Told {
  const translator = responses.createTranslator(buildResponsesContext(options));
  let text = '';
  let error: GatewayError | null = null;
  let isDone = false;
  for (const event of createSseParser(1024 * 1024).push(upstream).events) {
    const translated = translator.push(event);
    if (translated.type !== 'fault') text += translated.text;
    if (translated.type === 'fault') error = translated.error;
    isDone ||= translated.type === 'done';
  }
  if (!isDone && !translator.isComplete()) error ??= { kind: 'upstream', failure: 'upstream_disconnected' };
  text += error === null ? translator.finish() : translator.fail(error);
  return { ...parsePublishedResponses(text, done), text, progress: translator.progress() };
}

const tellChunks = (chunks: readonly unknown[], options?: ContextOptions): Told => tell(toSse(chunks), options);
const typesOf = ({ events }: Told): readonly string[] => events.map(({ type }) => type.replace('response.', ''));
const call = (index: number, parts: object): object => ({ tool_calls: [{ index, ...parts }] });
const finish = (reason: string): Record<string, unknown> => chunk({}, { finish_reason: reason });
const usage = chunk(null, { usage: USAGE });

describe('§8 the events of each kind of item', () => {
  const opening = ['created', 'in_progress'];
  test('§8 text', () => {
    const told = tellChunks(NORMAL);
    expect(typesOf(told)).toEqual([
      ...opening,
      'output_item.added',
      'content_part.added',
      'output_text.delta',
      'output_text.done',
      'content_part.done',
      'output_item.done',
      'completed',
    ]);
    expect(told.response).toMatchObject({
      id: 'resp_0123456789',
      model: 'support',
      created_at: 1_796_000_000,
      completed_at: 1_796_000_000,
      output: [{ id: 'msg_0123456789_0', content: [{ text: 'Hi' }] }],
      usage: { input_tokens: 3, output_tokens: 2, total_tokens: 5 },
    });
    expect(told.progress).toMatchObject({
      completionId: 'resp_0123456789',
      servedModel: 'org/Model-7B',
      finishReason: 'stop',
      usageSource: 'engine',
    });
  });

  test('§8 reasoning, then text: two items', () => {
    const chunks = [
      chunk({ reasoning: 'Let me ' }),
      chunk({ reasoning_content: 'see.', content: 'Hi' }),
      finish('stop'),
      usage,
    ];
    const told = tellChunks(chunks);
    expect(typesOf(told)).toEqual([
      ...opening,
      'output_item.added',
      'content_part.added',
      'reasoning_text.delta',
      'reasoning_text.delta',
      'reasoning_text.done',
      'content_part.done',
      'output_item.done',
      'output_item.added',
      'content_part.added',
      'output_text.delta',
      'output_text.done',
      'content_part.done',
      'output_item.done',
      'completed',
    ]);
    expect(joinParts(told.response, 'reasoning_text')).toBe('Let me see.');
  });

  test('§8 a refusal is a part of its own', () => {
    const told = tellChunks([chunk({ content: 'Well, ' }), chunk({ refusal: 'no.' }), finish('stop'), usage]);
    expect(typesOf(told)).toContain('refusal.delta');
    expect(told.response.output).toMatchObject([
      {
        content: [
          { type: 'output_text', text: 'Well, ' },
          { type: 'refusal', refusal: 'no.' },
        ],
      },
    ]);
  });

  test('§8 calls with split arguments, one after the other: each done before the next begins', () => {
    const told = tellChunks([
      chunk({ content: 'So: ' }),
      chunk(call(0, { id: 'c0', function: { name: 'f', arguments: '{"a"' } })),
      chunk(call(0, { function: { arguments: ':1}' } })),
      chunk(call(1, { id: 'c1', function: { name: 'g', arguments: '' } })),
      chunk(call(1, { function: { arguments: '{}' } })),
      finish('tool_calls'),
      usage,
    ]);
    expect(typesOf(told).slice(8)).toEqual([
      'output_item.added',
      'function_call_arguments.delta',
      'function_call_arguments.delta',
      'function_call_arguments.done',
      'output_item.done',
      'output_item.added',
      'function_call_arguments.delta',
      'function_call_arguments.done',
      'output_item.done',
      'completed',
    ]);
    expect(told.response.output.slice(1)).toMatchObject([
      { id: 'fc_0123456789_1', call_id: 'c0', name: 'f', arguments: '{"a":1}' },
      { id: 'fc_0123456789_2', call_id: 'c1', name: 'g', arguments: '{}' },
    ]);
    expect(told.progress).toMatchObject({ finishReason: 'tool_calls' });
  });

  test('§8 calls whose arguments come in turns: both whole', () => {
    const told = tellChunks([
      chunk(call(0, { id: 'c0', function: { name: 'f', arguments: '{"a"' } })),
      chunk(call(1, { id: 'c1', function: { name: 'g', arguments: '{"b"' } })),
      chunk(call(0, { function: { arguments: ':1}' } })),
      chunk(call(1, { function: { arguments: ':2}' } })),
      finish('tool_calls'),
    ]);
    expect(told.response.output).toMatchObject([{ arguments: '{"a":1}' }, { arguments: '{"b":2}' }]);
  });

  test('§8 call ids: minted where they are empty, come again, or stand for a call of the input', () => {
    const calls = ['', 'c1', 'c1', 'c0'].map((id, index) =>
      chunk(call(index, { id, function: { name: 'f', arguments: '{}' } })),
    );
    const input = [
      { type: 'function_call', call_id: 'c0', name: 'f', arguments: '{}' },
      { type: 'function_call_output', call_id: 'c0', output: '1' },
    ];
    const { response } = tellChunks([...calls, finish('tool_calls')], { body: { input } });
    const ids = response.output.map((item) => (item.type === 'function_call' ? item.call_id : ''));
    expect(new Set(ids).size).toBe(4);
    expect(ids[1]).toBe('c1');
    expect(ids).not.toContain('c0');
    expect(ids).not.toContain('');
  });

  test('§8 structured output is text', () => {
    const format = { type: 'json_schema', name: 's', schema: { type: 'object' } };
    const told = tellChunks([chunk({ content: '{"a":1}' }), finish('stop'), usage], { body: { text: { format } } });
    expect(joinParts(told.response, 'output_text')).toBe('{"a":1}');
    expect(told.response.text).toEqual({ format });
  });

  test('§8 captures of llama.cpp’s chat: several calls, and a story', () => {
    const calls = tell(readCapture('chat-tools-parallel-stream'), { engine: 'llamacpp' }).response.output;
    expect(calls.filter(({ type }) => type === 'function_call').length).toBeGreaterThan(1);
    const story = tell(readCapture('chat-stream-usage'), { engine: 'llamacpp' });
    expect(joinParts(story.response, 'output_text').length).toBeGreaterThan(50);
  });
});

describe('§8 how a response ends', () => {
  test.each([
    ['length', 'max_output_tokens'],
    ['content_filter', 'content_filter'],
  ])('§8 %s: incomplete, with its reason; the item that was cut is too', (reason, expected) => {
    const told = tellChunks([chunk({ content: 'Hi' }), finish(reason), usage]);
    expect(told.events.at(-1)?.type).toBe('response.incomplete');
    expect(told.response).toMatchObject({
      incomplete_details: { reason: expected },
      output: [{ status: 'incomplete' }],
    });
    expect(told.progress).toMatchObject({ finishReason: reason });
  });

  test('§8 a call that the limit cut is incomplete; one that was whole is not', () => {
    const told = tellChunks([
      chunk(call(0, { id: 'c0', function: { name: 'f', arguments: '{}' } })),
      chunk(call(1, { id: 'c1', function: { name: 'f', arguments: '{"a' } })),
      finish('length'),
    ]);
    expect(told.response.output).toMatchObject([{ status: 'completed' }, { status: 'incomplete', arguments: '{"a' }]);
  });

  test('§8 an engine that breaks: failed, what came, its counts, no word of the engine’s', () => {
    const counted = chunk({ content: 'Hi' }, { usage: USAGE });
    const told = tell(toSse([counted, { error: { message: 'GPU fell over', code: 500 } }]));
    expect(told.response).toMatchObject({
      status: 'failed',
      error: { code: 'server_error', message: 'The upstream inference endpoint failed.' },
      output: [{ status: 'incomplete', content: [{ text: 'Hi' }] }],
      usage: { input_tokens: 3, output_tokens: 2 },
    });
    expect(told.text).not.toContain('GPU');
  });

  test('§8 a half call of an engine that was cut is never done: no client runs it', () => {
    const half = chunk(call(0, { id: 'c0', function: { name: 'rm', arguments: '{"path":"/tmp' } }));
    const told = tell(toSse([half], false));
    expect(typesOf(told)).not.toContain('output_item.done');
    expect(told.response).toMatchObject({ status: 'failed', usage: null, output: [{ status: 'incomplete' }] });
  });

  test('§8 an engine that never spoke: created, in progress, failed', () => {
    expect(typesOf(tell(''))).toEqual(['created', 'in_progress', 'failed']);
  });

  test('§8 nothing said, and that was all: an empty message', () => {
    const told = tellChunks([chunk({ role: 'assistant', content: '' }), finish('stop'), usage]);
    expect(told.response).toMatchObject({
      status: 'completed',
      output: [{ type: 'message', content: [{ text: '' }] }],
    });
  });

  test('§7 an engine that counts nothing: an estimate, and it says so', () => {
    expect(tellChunks([chunk({ content: 'Hi' }), finish('stop')]).response.usage).toMatchObject({
      output_tokens: 1,
      estimated: true,
    });
  });

  test('§9 details of usage: cached, written to the cache, reasoning', () => {
    const counts = {
      ...USAGE,
      prompt_tokens_details: { cached_tokens: 1, created_cache_tokens: 2 },
      completion_tokens_details: { reasoning_tokens: 1 },
    };
    const told = tellChunks([chunk({ content: 'Hi' }), finish('stop'), chunk(null, { usage: counts })]);
    expect(told.response.usage).toMatchObject({
      input_tokens_details: { cached_tokens: 1, cache_write_tokens: 2 },
      output_tokens_details: { reasoning_tokens: 1 },
    });
  });

  test('§4 effort none: no reasoning leaves, streamed or whole', () => {
    const options = {
      entry: { reasoning: { control: 'chat_template_kwargs' } },
      body: { reasoning: { effort: 'none' } },
    };
    const told = tellChunks([chunk({ reasoning: 'secret' }), chunk({ content: 'Hi' }), finish('stop'), usage], options);
    expect(told.text).not.toContain('secret');
    expect(told.response.output.map(({ type }) => type)).toEqual(['message']);
    const whole = { choices: [{ index: 0, message: { content: 'Hi', reasoning: 'secret' }, finish_reason: 'stop' }] };
    const answer = responses.toJsonAnswer(JSON.stringify(whole), buildResponsesContext(options));
    expect(JSON.stringify(answer)).not.toContain('secret');
  });

  test('§4 the model is named as the policy wants it, the same in every event', () => {
    expect(tellChunks(NORMAL, { preset: 'boardwalk' }).response.model).toBe('org/Model-7B');
    expect(tellChunks(NORMAL, { preset: 'springboards' }).response.model).toBe('support');
  });

  test('§8 responses_done adds [DONE], to every end', () => {
    const entry = { responses_done: true };
    expect(tell(toSse(NORMAL), { entry }, true).response.status).toBe('completed');
    expect(tell('', { entry }, true).response.status).toBe('failed');
    expect(tellChunks(NORMAL).text).not.toContain('[DONE]');
  });
});

describe('§8 a whole answer is the response that its stream ends with', () => {
  const message = {
    role: 'assistant',
    content: 'Hi',
    reasoning: 'hm',
    tool_calls: [
      { id: 'c0', type: 'function', function: { name: 'f', arguments: '{"a":1}' } },
      { id: 'c1', type: 'function', function: { name: 'g', arguments: '{}' } },
    ],
  };
  test.each(['tool_calls', 'length'])('§8 finish_reason %s', (finish_reason) => {
    const whole = { id: 'x', model: 'org/Model-7B', choices: [{ index: 0, message, finish_reason }], usage: USAGE };
    const answer = responses.toJsonAnswer(JSON.stringify(whole), buildResponsesContext({ body: { stream: false } }));
    if (!answer.ok) return expect.fail(answer.error.detail);
    const response = responseSchema.parse(JSON.parse(answer.value.body));
    checkEnd(response);
    const streamed = tellChunks([
      chunk({ reasoning: 'hm' }),
      chunk({ content: 'Hi' }),
      ...message.tool_calls.map((one, index) => chunk(call(index, one))),
      finish(finish_reason),
      usage,
    ]);
    expect(response).toEqual(streamed.response);
    expect(answer.value.progress).toMatchObject({ completionId: response.id, usageSource: 'engine' });
    expect(JSON.parse(responses.assembleAnswer(streamed.text, buildResponsesContext()))).toEqual(response);
  });

  test('§3 an engine’s 400 about the chat body is told in the words of the request', () => {
    const answer = responses.toJsonAnswer(
      '{"error":{"message":"no","code":400,"param":"max_tokens"}}',
      buildResponsesContext(),
    );
    expect(answer).toMatchObject({
      ok: false,
      error: { error: { kind: 'upstream_rejected', param: 'max_output_tokens' } },
    });
  });
});
