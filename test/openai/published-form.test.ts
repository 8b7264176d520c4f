// What engines send that OpenAI's schema does not know, on both endpoints, streamed and whole: what leaves is as published.
// What the members mean is tested beside their sources; here only that each holds to the schema, and what stands for it.

import { describe, expect, test } from 'vitest';

import { chatCompletions } from '../../src/openai/chat-completions.ts';
import { textCompletions } from '../../src/openai/text-completions.ts';
import { buildContext, readCapture, relay } from './build-context.ts';
import {
  chatAnswerSchema,
  parsePublishedStream,
  type PublishedChunk,
  type PublishedStream,
  textAnswerSchema,
} from './published-schema.ts';

const ENDPOINTS = { chat: chatCompletions, text: textCompletions } as const;
const KINDS = ['chat', 'text'] as const;
type Kind = (typeof KINDS)[number];

const HEAD = { id: 'x-1', created: 5, model: 'm', usage: null };

/** A choice that says "Hi", with these members besides. */
function sayHi(kind: Kind, isWhole: boolean, more: object): object {
  const said = { role: 'assistant', content: 'Hi' };
  return { index: 0, ...(kind === 'text' ? { text: 'Hi' } : isWhole ? { message: said } : { delta: said }), ...more };
}

function stream(kind: Kind, events: readonly (object | string)[]): PublishedStream {
  const translator = ENDPOINTS[kind].createTranslator(buildContext());
  let text = '';
  for (const event of events) {
    const data = typeof event === 'string' ? event : JSON.stringify({ ...HEAD, ...event });
    const translated = translator.push({ type: '', data });
    if (translated.type === 'fault') expect.fail(translated.detail);
    if (translated.type === 'output') text += translated.text;
  }
  return parsePublishedStream(text + translator.finish(), kind);
}

function answer(kind: Kind, value: object): { readonly choices: readonly object[] } {
  const body = ENDPOINTS[kind].toJsonAnswer(JSON.stringify({ ...HEAD, ...value }), buildContext());
  if (!body.ok) throw new Error(body.error.detail);
  return (kind === 'chat' ? chatAnswerSchema : textAnswerSchema).parse(JSON.parse(body.value.body));
}

/** The first choice of the same words, streamed and whole. */
function bothWays(kind: Kind, more: object): readonly unknown[] {
  const streamed = stream(kind, [{ choices: [sayHi(kind, false, { finish_reason: 'stop', ...more })] }]);
  const whole = answer(kind, { choices: [sayHi(kind, true, { finish_reason: 'stop', ...more })] });
  return [streamed.chunks[0]?.choices[0], whole.choices[0]];
}

describe('§4 log probabilities as published', () => {
  const token = { token: 'Hi', logprob: -1, bytes: [72, 105] };
  const full = { content: [{ ...token, top_logprobs: [token] }], refusal: null };
  test.each<[string, unknown, unknown]>([
    ['as they are', full, full],
    ['vLLM: no refusal', { content: full.content }, full],
    ['llama.cpp: token ids', { content: [{ id: 7, ...token, top_logprobs: [{ id: 7, ...token }] }] }, full],
    [
      'bytes and alternatives absent',
      { content: [{ token: 'Hi', logprob: -1 }] },
      { content: [{ token: 'Hi', logprob: -1, bytes: null, top_logprobs: [] }], refusal: null },
    ],
    [
      'minus infinity, which JSON spells null',
      { content: [{ ...token, logprob: null, top_logprobs: [{ ...token, logprob: null }] }] },
      { content: [{ ...token, logprob: -9999, top_logprobs: [{ ...token, logprob: -9999 }] }], refusal: null },
    ],
    ['of a refusal', { content: null, refusal: full.content }, { content: null, refusal: full.content }],
    ['a list with nothing in it', { content: [] }, { content: [], refusal: null }],
  ])('chat, %s', (_name, engine, expected) => {
    for (const choice of bothWays('chat', { logprobs: engine })) expect(choice).toHaveProperty('logprobs', expected);
  });

  test.each([[{}], [[]], ['x'], [{ content: null }], [{ content: 'x' }]])('chat, none at all: %j', (engine) => {
    const [streamed, whole] = bothWays('chat', { logprobs: engine });
    expect(streamed).not.toHaveProperty('logprobs');
    expect(whole).toHaveProperty('logprobs', null);
  });

  const legacy = {
    tokens: ['H', 'i'],
    token_logprobs: [null, -1],
    top_logprobs: [null, { i: -1 }],
    text_offset: [0, 1],
  };
  test.each<[string, unknown, unknown]>([
    ['as they are', legacy, legacy],
    ['members of the engine’s own', { ...legacy, token_ids: [1, 2] }, legacy],
    ['SGLang: offsets of -1', { ...legacy, text_offset: [-1, -1] }, legacy],
    [
      'alternatives and offsets null',
      { ...legacy, top_logprobs: null, text_offset: null },
      { tokens: legacy.tokens, token_logprobs: legacy.token_logprobs, text_offset: legacy.text_offset },
    ],
    [
      'llama.cpp: those of chat, one minus infinity',
      { content: [{ ...token, logprob: null, top_logprobs: [{ ...token, logprob: null }] }] },
      { tokens: ['Hi'], token_logprobs: [-9999], top_logprobs: [{ Hi: -9999 }], text_offset: [0] },
    ],
    ['an empty object', {}, null],
  ])('text, %s', (_name, engine, expected) => {
    for (const choice of bothWays('text', { logprobs: engine })) expect(choice).toHaveProperty('logprobs', expected);
  });
});

describe.each(KINDS)('§7 %s', (kind) => {
  const contents = ({ chunks }: PublishedStream): string =>
    chunks
      .flatMap(({ choices }: PublishedChunk): readonly object[] => choices)
      .map((choice) => JSON.stringify(choice).match(/"(?:content|text)":"([^"]*)"/)?.[1] ?? '')
      .join('');
  const end = { choices: [sayHi(kind, false, { finish_reason: 'stop' })] };

  test.each(['null', ''])(
    'an event that says nothing (llama-server begins several choices so) is none: "%s"',
    (data) => {
      expect(contents(stream(kind, [data, end]))).toBe('Hi');
      expect(contents(stream(kind, [end, data]))).toBe('Hi');
    },
  );

  test.each([-1, 0.5, '0', null])('an index that is none (%s) is the only choice’s', (index) => {
    for (const choice of bothWays(kind, { index })) expect(choice).toHaveProperty('index', 0);
  });

  test.each(['tool_calls', 'function_call', 'eos_token', 'banana'])(
    'finish reason %s: one that is published',
    (reason) => {
      const expected = kind === 'chat' && /_calls?$/.test(reason) ? 'tool_calls' : 'stop';
      for (const choice of bothWays(kind, { finish_reason: reason })) {
        expect(choice).toHaveProperty('finish_reason', expected);
      }
    },
  );

  test('usage of the engine’s own kind: only what is published, and it adds up', () => {
    const usage = {
      prompt_tokens: 3,
      completion_tokens: 2,
      total_tokens: 99,
      prompt_tokens_details: { cached_tokens: 7, audio_tokens: 0, x: 1 },
      completion_tokens_details: { reasoning_tokens: 5 },
      queue_time: 0.1,
    };
    const expected = {
      prompt_tokens: 3,
      completion_tokens: 2,
      total_tokens: 5,
      prompt_tokens_details: { cached_tokens: 3 },
      completion_tokens_details: { reasoning_tokens: 2 },
    };
    expect(stream(kind, [{ ...end, usage }]).usage).toEqual(expected);
    const whole = answer(kind, { choices: [sayHi(kind, true, { finish_reason: 'stop' })], usage });
    expect(whole).toHaveProperty('usage', expected);
  });
});

test('§7 a true llama-server’s prompt array: both choices, whole, in spite of the null it begins with', () => {
  const data = readCapture('completions-array-stream')
    .split('\n\n')
    .flatMap((event) => (event.startsWith('data: ') ? [event.slice('data: '.length)] : []))
    .filter((event) => event !== '[DONE]');
  const { chunks } = stream('text', data);
  const reasons = chunks.flatMap(({ choices }): readonly { index: number; finish_reason: string | null }[] => choices);
  const ended = reasons.filter((choice) => choice.finish_reason !== null).map(({ index }) => index);
  expect(new Set(ended)).toEqual(new Set([0, 1]));
});

test.each(['completions-stream-usage', 'completions-logprobs-stream', 'completions-array-stream'])(
  '§7 %s, any line lost or spoilt: never a throw, as published all the same, one terminal',
  (name) => {
    const lines = readCapture(name).split('\n');
    for (const [at, line] of lines.entries()) {
      for (const spoilt of ['', 'data: {}', 'data: {"choices":[null]}', line.slice(0, -9), line.replaceAll('"', "'")]) {
        const context = buildContext({ engine: 'llamacpp' });
        const relayed = relay(lines.with(at, spoilt).join('\n'), context, textCompletions);
        expect(relayed.errors.length).toBe(relayed.outcome === 'failed' ? 1 : 0);
      }
    }
  },
);

describe('the schema refuses what SPEC and OpenAI do', () => {
  const head = { id: 'x', object: 'chat.completion.chunk', created: 1, model: 'm' };
  const say = (delta: object, more: object = {}): object => ({
    ...head,
    choices: [{ index: 0, delta, finish_reason: null, ...more }],
  });
  const role = say({ role: 'assistant', content: '' });
  const usage = { prompt_tokens: 1, completion_tokens: 1, total_tokens: 2 };
  const counted = { ...head, choices: [], usage };
  const error = { error: { message: 'm', type: 'server_error', param: null, code: 'upstream_error' } };
  const write = (events: readonly object[]): string =>
    `${events.map((event) => `data: ${JSON.stringify(event)}\n\n`).join('')}data: [DONE]\n\n`;

  test('§7 a stream in order, comments in it: nothing to refuse', () => {
    const text = `: keep-alive\n\n${write([role, say({ content: 'a' }, { finish_reason: 'stop' }), counted])}`;
    expect(parsePublishedStream(text, 'chat')).toMatchObject({ usage, error: null });
    expect(parsePublishedStream(write([role, counted, error]), 'chat')).toMatchObject({ usage, error: error.error });
  });

  test.each<[string, string]>([
    ['no [DONE]', write([role]).replace('data: [DONE]\n\n', '')],
    ['something behind [DONE]', `${write([role])}: bye\n\n`],
    ['an event name', `event: x\n${write([role])}`],
    ['a member of the engine’s own', write([{ ...say({ role: 'assistant' }), timings: {} }])],
    ['one in a choice', write([say({ role: 'assistant' }, { stop_reason: null })])],
    ['one in a delta', write([say({ role: 'assistant', audio: null })])],
    ['usage null', write([{ ...say({ role: 'assistant' }), usage: null }])],
    ['usage that does not add up', write([role, { ...counted, usage: { ...usage, total_tokens: 3 } }])],
    ['usage beside choices', write([{ ...say({ role: 'assistant' }), usage }])],
    ['usage twice', write([role, counted, counted])],
    ['no choices and no usage', write([role, { ...head, choices: [] }])],
    ['another id', write([role, { ...say({ content: 'a' }), id: 'y' }])],
    ['no role', write([say({ content: 'a' })])],
    ['the role twice', write([role, role])],
    [
      'a choice that ends twice',
      write([say({ role: 'assistant' }, { finish_reason: 'stop' }), say({}, { finish_reason: 'stop' })]),
    ],
    ['a finish reason nobody published', write([say({ role: 'assistant' }, { finish_reason: 'eos_token' })])],
    ['two errors', write([role, error, error])],
    ['an error with a number for its code', write([{ error: { ...error.error, code: 500 } }])],
    ['an error that is not in the envelope', write([{ error: 'boom' }])],
  ])('§7 %s', (_name, text) => {
    expect(() => parsePublishedStream(text, 'chat')).toThrow();
  });
});
