// Which requests and which beginnings of a stream may go the native lane, as tables: what differs from the one that may.

import { describe, expect, test } from 'vitest';
import { chatCompletions } from '../../src/openai/chat-completions.ts';
import { textCompletions } from '../../src/openai/text-completions.ts';
import { buildRequest, type ContextOptions, readCapture } from './build-context.ts';

const ENTRY = { lane: 'native', max_output_tokens: 1000, reasoning: { control: 'none' } };
const POLICY = { response_model: 'engine', reasoning_field: 'reasoning', max_n: 8 };
const TOOLS = [{ type: 'function', function: { name: 'f' } }];

function passes(body: Readonly<Record<string, unknown>> = {}, options: ContextOptions = {}): boolean | undefined {
  const { entry = {}, policy = {}, ...more } = options;
  const all = { ...more, entry: { ...ENTRY, ...entry }, policy: { ...POLICY, ...policy } };
  const request = buildRequest({ stream: true, ...body }, all);
  return chatCompletions.nativeForm?.passesUnchanged(request, request.resolved.backends[0]);
}

describe('requests', () => {
  test('§7 native: an engine in the normal form and a policy that changes no byte', () => {
    expect(passes()).toBe(true);
    expect(passes({ tools: [], logprobs: false, n: 1 })).toBe(true);
    expect(passes({ stream_options: { include_usage: true } }, { policy: { usage_in_stream: 'on_request' } })).toBe(
      true,
    );
    const named = { policy: { response_model: 'requested' }, entry: { aliases: ['org/Model-7B'] } };
    expect(passes({ model: 'org/Model-7B' }, { ...named, requestedModel: 'org/Model-7B' })).toBe(true);
    expect(passes({}, { policy: { reasoning_field: 'both' }, entry: { reasoning: undefined } })).toBe(true);
  });

  test.each<[string, Readonly<Record<string, unknown>>, ContextOptions]>([
    ['the lane is exact', {}, { entry: { lane: 'exact' } }],
    ['nothing is streamed', { stream: false }, {}],
    ['usage is to be stripped', {}, { policy: { usage_in_stream: 'on_request' } }],
    ['the model is to be renamed', {}, { policy: { response_model: 'requested' } }],
    ['reasoning is to have both names', {}, { policy: { reasoning_field: 'both' } }],
    ['effort none', { reasoning_effort: 'none' }, {}],
    ['several choices', { n: 2 }, {}],
    ['tools', { tools: TOOLS }, {}],
    ['log probabilities', { logprobs: true, top_logprobs: 1 }, {}],
  ])('§7 falls back to exact: %s', (_, body, options) => {
    expect(passes(body, options)).toBe(false);
  });
});

describe('beginnings', () => {
  const backend = buildRequest().resolved.backends[0];
  const head = { id: 'x', object: 'chat.completion.chunk', created: 1, model: backend.upstream_model };
  const choice = { index: 0, delta: { role: 'assistant', content: '' }, finish_reason: null };
  const write = (members: object): string => `data: ${JSON.stringify({ ...head, choices: [choice], ...members })}\n\n`;
  const second = write({ choices: [{ ...choice, delta: { content: 'a' } }] });
  const isNormal = (text: string): boolean | undefined => chatCompletions.nativeForm?.isNormal(text, backend);

  test('§7 the normal form: one event or several, the last cut off', () => {
    expect(isNormal(write({}))).toBe(true);
    expect(isNormal(write({}) + second + second.slice(0, 30))).toBe(true);
    const text = `data: ${JSON.stringify({ ...head, object: 'text_completion', choices: [{ index: 0, text: 'a', finish_reason: null }] })}\n\n`;
    expect(textCompletions.nativeForm?.isNormal(text, backend)).toBe(true);
    expect(isNormal(text)).toBe(false);
  });

  test.each([
    ['nothing whole', write({}).trimEnd()],
    ['a comment', `: hello\n\n${write({})}`],
    ['CRLF', write({}).replaceAll('\n', '\r\n')],
    ['no space after the colon', write({}).replace('data: ', 'data:')],
    ['several data lines', write({}).replace('{"id"', '{\ndata: "id"')],
    ['no JSON', 'data: hello\n\n'],
    ['no id', write({ id: '' })],
    ['no time', write({ created: 0 })],
    ['another model', write({ model: 'other' })],
    ['another object', write({ object: 'chat.completion' })],
    ['usage: null', write({ usage: null })],
    ['an error', write({ error: null })],
    ['no choices', write({ choices: [] })],
    ['two choices', write({ choices: [choice, { ...choice, index: 1 }] })],
    ['no finish_reason', write({ choices: [{ index: 0, delta: choice.delta }] })],
    ['the end at once', write({ choices: [{ ...choice, finish_reason: 'stop' }] })],
    ['no role', second],
    ['the role twice', write({}) + write({})],
    [
      'reasoning beside content',
      write({ choices: [{ ...choice, delta: { role: 'assistant', content: 'a', reasoning: 'b' } }] }),
    ],
  ])('§7 is no normal form: %s', (_, text) => {
    expect(isNormal(text)).toBe(false);
  });

  test('§7 a true llama-server begins in the normal form, but for the name of its model', () => {
    const text = readCapture('chat-stream-usage');
    const model = /"model":"([^"]+)"/.exec(text)?.[1] ?? '';
    const named = { ...backend, upstream_model: model };
    const events = text
      .split('\n\n')
      .slice(0, 2)
      .map((event) => `${event}\n\n`);
    expect(chatCompletions.nativeForm?.isNormal(events.join(''), named)).toBe(true);
  });
});
