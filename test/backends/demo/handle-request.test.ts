// The demo engine as a function of (request, config): vLLM's dialect of the wire, streamed and not.
// Streams are read with eventsource-parser, so that the framing has a judge from outside.

import { createParser } from 'eventsource-parser';
import { describe, expect, it } from 'vitest';
import { handleRequest, type DemoConfig } from '../../../src/backends/demo/handle-request.ts';
import { wait } from '../../../src/backends/demo/pacer.ts';
import { tokenize } from '../../../src/backends/demo/tokenize.ts';

interface Usage {
  readonly prompt_tokens: number;
  readonly completion_tokens: number;
  readonly total_tokens: number;
}
interface Chunk {
  readonly id: string;
  readonly object: string;
  readonly created: number;
  readonly model: string;
  readonly choices: readonly {
    readonly index: number;
    readonly delta: { readonly role?: string; readonly content: string };
    readonly finish_reason: string | null;
    readonly stop_reason?: string | null;
  }[];
  readonly usage?: Usage;
}
interface Answer {
  readonly id: string;
  readonly object: string;
  readonly created: number;
  readonly model: string;
  readonly choices: readonly {
    readonly index: number;
    readonly message: { readonly role: string; readonly content: string };
    readonly finish_reason: string;
    readonly stop_reason: string | null;
  }[];
  readonly usage: Usage;
}

const config: DemoConfig = { tokensPerSecond: 0, nowMs: () => 1_800_000_000_500, newId: () => 'rnd', wait };
const messages = [{ role: 'user', content: 'Where does the road go?' }];

function toRequest(body: unknown, init: RequestInit = {}): Request {
  const text = typeof body === 'string' ? body : JSON.stringify(body);
  return new Request('http://demo/v1/chat/completions', { method: 'POST', body: text, ...init });
}

async function complete(fields: object = {}): Promise<Answer> {
  const response = await handleRequest(toRequest({ model: 'm', messages, ...fields }), config);
  expect(response.status).toBe(200);
  const answer: Answer = await response.json();
  return answer;
}

async function completeText(fields: object): Promise<string | undefined> {
  return (await complete(fields)).choices[0]?.message.content;
}

async function stream(fields: object = {}): Promise<readonly Chunk[]> {
  const response = await handleRequest(toRequest({ model: 'm', messages, stream: true, ...fields }), config);
  expect(response.headers.get('content-type')).toBe('text/event-stream; charset=utf-8');
  const data: string[] = [];
  createParser({ onEvent: (event) => data.push(event.data) }).feed(await response.text());
  expect(data.pop()).toBe('[DONE]');
  return data.map((text) => {
    const chunk: Chunk = JSON.parse(text);
    return chunk;
  });
}

function joinText(chunks: readonly Chunk[], index = 0): string {
  const choices = chunks.flatMap((chunk) => chunk.choices).filter((choice) => choice.index === index);
  return choices.map((choice) => choice.delta.content).join('');
}

/** One token a minute, counting the waits begun and those still open. */
function createSlowConfig() {
  const open = new Set<number>();
  let turns = 0;
  const slow: DemoConfig = {
    ...config,
    tokensPerSecond: 1,
    async wait(_ms, signal) {
      const mine = (turns += 1);
      open.add(mine);
      await wait(60_000, signal);
      open.delete(mine);
    },
  };
  return { slow, open, turns: () => turns };
}

describe('§6 demo: the order of a stream', () => {
  it('role first, one delta per token, the finish, no usage unasked, then [DONE]', async () => {
    const chunks = await stream();
    const [first, ...rest] = chunks.map((chunk) => chunk.choices[0]);
    const last = rest.pop();
    expect(first).toEqual({
      index: 0,
      delta: { role: 'assistant', content: '' },
      logprobs: null,
      finish_reason: null,
    });
    expect(rest.map((choice) => choice?.delta.content)).toEqual(tokenize(joinText(chunks)));
    expect(rest.every((choice) => choice?.finish_reason === null && !('role' in choice.delta))).toBe(true);
    expect(last).toEqual({
      index: 0,
      delta: { content: '' },
      logprobs: null,
      finish_reason: 'stop',
      stop_reason: null,
    });
    expect(chunks.some((chunk) => 'usage' in chunk)).toBe(false);
  });

  it('id, object, created and model are the same on every chunk; the model echoes the request', async () => {
    const heads = (await stream({ stream_options: { include_usage: true } })).map(({ id, object, created, model }) =>
      JSON.stringify({ id, object, created, model }),
    );
    expect(new Set(heads)).toEqual(
      new Set(['{"id":"chatcmpl-rnd","object":"chat.completion.chunk","created":1800000000,"model":"m"}']),
    );
  });

  it('the id is the request’s when it has one', async () => {
    const request = toRequest({ messages }, { headers: { 'x-request-id': 'req_9' } });
    const answer: Answer = await (await handleRequest(request, config)).json();
    expect(answer).toMatchObject({ id: 'chatcmpl-req_9', object: 'chat.completion', model: 'turnpike-demo' });
  });

  it('a stream and a JSON answer say the same', async () => {
    const [chunks, answer] = [await stream({ seed: 3 }), await complete({ seed: 3 })];
    expect(answer.choices[0]?.message).toEqual({ role: 'assistant', content: joinText(chunks) });
  });

  it('n choices advance together, each with role, finish and text of its own', async () => {
    const chunks = await stream({ n: 3, max_tokens: 20, stream_options: { include_usage: true } });
    const indexes = chunks.map((chunk) => chunk.choices[0]?.index);
    expect(indexes.slice(0, 6)).toEqual([0, 1, 2, 0, 1, 2]);
    const finishes = chunks.flatMap((chunk) => chunk.choices).filter((choice) => choice.finish_reason !== null);
    expect(finishes.map((choice) => [choice.index, choice.finish_reason])).toEqual([
      [0, 'length'],
      [1, 'length'],
      [2, 'length'],
    ]);
    expect(chunks.at(-1)?.usage?.completion_tokens).toBe(60);
    const answer = await complete({ n: 3 });
    expect(new Set(answer.choices.map((choice) => choice.message.content)).size).toBe(3);
  });
});

describe('§6 demo: deterministic with a seed', () => {
  it('same messages and seed, same answer; seeds differ; the default comes from the prompt', async () => {
    expect(await completeText({ seed: 1 })).toBe(await completeText({ seed: 1 }));
    expect(await completeText({ seed: 1 })).not.toBe(await completeText({ seed: 2 }));
    expect(await completeText({})).toBe(await completeText({ seed: null }));
    expect(await completeText({ seed: 2 ** 63 })).not.toBe(await completeText({ seed: -(2 ** 63) }));
    const system = { role: 'system', content: 'Be brief.' };
    expect(await completeText({ messages: [system, ...messages] })).not.toBe(await completeText({}));
  });
});

describe('§6 demo: exact usage', () => {
  it('counts prompt and completion with its own tokenizer', async () => {
    const { choices, usage } = await complete({
      messages: [
        { role: 'system', content: 'Be brief.' },
        { role: 'user', content: [{ type: 'text', text: 'Look' }, { type: 'image_url' }] },
        { role: 'assistant', content: null, tool_calls: [] },
      ],
    });
    const prompt = 'system: Be brief.\nuser: Look[image_url]\nassistant: \nassistant:';
    const completion = tokenize(choices[0]?.message.content ?? '').length;
    expect(usage).toEqual({
      prompt_tokens: tokenize(prompt).length,
      completion_tokens: completion,
      total_tokens: tokenize(prompt).length + completion,
    });
  });

  it.each([
    [{ include_usage: true }, true],
    [{}, true],
    [{ include_usage: false }, false],
    [{ include_usage: null }, false],
    [{ include_usage: false, continuous_usage_stats: true }, false],
    [null, false],
  ])('stream_options %j: usage chunk with empty choices: %j', async (options, expected) => {
    const chunks = await stream({ stream_options: options });
    const withUsage = chunks.filter((chunk) => 'usage' in chunk);
    expect(withUsage).toHaveLength(expected ? 1 : 0);
    if (!expected) return;
    expect(withUsage[0]).toBe(chunks.at(-1));
    expect(withUsage[0]?.choices).toEqual([]);
    expect(withUsage[0]?.usage?.completion_tokens).toBe(tokenize(joinText(chunks)).length);
  });

  it('continuous_usage_stats: running counts on each chunk, of the chunk’s own choice as in vLLM', async () => {
    const options = { include_usage: true, continuous_usage_stats: true };
    const chunks = await stream({ n: 2, max_tokens: 4, stream_options: options });
    expect(chunks.map((chunk) => [chunk.choices[0]?.index, chunk.usage?.completion_tokens])).toEqual([
      [0, 0],
      [1, 0],
      [0, 1],
      [1, 1],
      [0, 2],
      [1, 2],
      [0, 3],
      [1, 3],
      // The last token's text, then the finish with the same count, choice by choice.
      [0, 4],
      [0, 4],
      [1, 4],
      [1, 4],
      [undefined, 8],
    ]);
    const totals = chunks.map(({ usage }) => (usage?.total_tokens ?? 0) - (usage?.completion_tokens ?? 0));
    expect(new Set(totals)).toEqual(new Set([chunks[0]?.usage?.prompt_tokens]));
  });
});

describe('§6 demo: limits and stops', () => {
  it.each([
    [{ max_tokens: 5 }, 5],
    [{ max_completion_tokens: 6 }, 6],
    [{ max_completion_tokens: 6, max_tokens: 5 }, 6],
    [{ max_tokens: 1 }, 1],
    [{ max_tokens: 700, ignore_eos: true }, 700],
  ])('%j ends with length after exactly %j tokens', async (fields, expected) => {
    const answer = await complete(fields);
    expect(answer.choices[0]?.finish_reason).toBe('length');
    expect(answer.usage.completion_tokens).toBe(expected);
    expect(tokenize(answer.choices[0]?.message.content ?? '')).toHaveLength(expected);
  });

  it('without a limit it comes to a natural end', async () => {
    const answer = await complete({ max_tokens: null });
    expect(answer.choices[0]).toMatchObject({ finish_reason: 'stop', stop_reason: null });
  });

  it.each([
    ['demo engine', "This is Turnpike's ", 5],
    [['zzz', "nPike's", "npike's demo"], 'This is Tur', 4],
    ['This', '', 1],
  ])('stop %j is matched across token borders and never comes out', async (stop, text, tokens) => {
    const answer = await complete({ stop });
    expect(answer.choices[0]?.message.content).toBe(text);
    expect(answer.choices[0]?.finish_reason).toBe('stop');
    expect([stop].flat()).toContain(answer.choices[0]?.stop_reason);
    expect(answer.usage.completion_tokens).toBe(tokens);
    expect(joinText(await stream({ stop }))).toBe(text);
  });
});

describe('§6 demo: cancellation and back-pressure', () => {
  it('the reader’s cancel stops the generation at once and leaves no timer', async () => {
    const { slow, open, turns } = createSlowConfig();
    const response = await handleRequest(toRequest({ messages, stream: true }), slow);
    const reader = response.body!.getReader();
    await reader.read();
    const pending = reader.read();
    await new Promise((resolve) => setTimeout(resolve, 5));
    expect(open.size).toBe(1);
    await reader.cancel('gone');
    expect((await pending).done).toBe(true);
    await new Promise((resolve) => setTimeout(resolve, 5));
    expect([open.size, turns()]).toEqual([0, 1]);
  });

  it.each([true, false])('request.signal stops it too (stream: %j), and not as a success', async (streamed) => {
    const { slow, open, turns } = createSlowConfig();
    const leaving = new AbortController();
    const request = toRequest({ messages, stream: streamed }, { signal: leaving.signal });
    setTimeout(() => leaving.abort(new Error('left')), 5);
    const reading = handleRequest(request, slow).then((response) => response.text());
    await expect(reading).rejects.toThrow('left');
    expect([open.size, turns()]).toEqual([0, 1]);
  });

  it('makes one event per pull and does not run ahead', async () => {
    let turns = 0;
    const counted: DemoConfig = {
      ...config,
      tokensPerSecond: 1000,
      wait: () => {
        turns += 1;
        return Promise.resolve();
      },
    };
    const response = await handleRequest(toRequest({ messages, stream: true, ignore_eos: true }), counted);
    await new Promise((resolve) => setTimeout(resolve, 5));
    expect(turns).toBe(0);
    const reader = response.body!.getReader();
    for (let events = 0; events < 11; events += 1) await reader.read();
    await new Promise((resolve) => setTimeout(resolve, 5));
    expect(turns).toBe(10);
    await reader.cancel();
  });
});

describe('§6 demo: models, other paths, bad requests', () => {
  it('lists its one model', async () => {
    const response = await handleRequest(new Request('http://demo/v1/models'), config);
    expect(await response.json()).toEqual({
      object: 'list',
      data: [{ id: 'turnpike-demo', object: 'model', created: 1796083200, owned_by: 'turnpike-demo' }],
    });
  });

  it.each([
    ['GET', '/'],
    ['GET', '/v1/chat/completions'],
    ['POST', '/v1/responses'],
    ['POST', '/v1/models'],
    ['POST', '/v1/chat/completions/'],
    ['GET', '/v1/models/turnpike-demo'],
  ])('%s %s is 404 in the nested form', async (method, path) => {
    const response = await handleRequest(new Request(`http://demo${path}`, { method }), config);
    expect(response.status).toBe(404);
    expect(await response.json()).toEqual({
      error: { message: 'Not Found', type: 'NotFoundError', param: null, code: 404 },
    });
  });

  it.each([
    ['{"messages":', null],
    ['[]', null],
    ['null', null],
    [{}, 'messages'],
    [{ messages: [] }, 'messages'],
    [{ messages: [{ content: 'x' }] }, 'messages.0.role'],
    [{ messages: [{ role: 'user', content: 7 }] }, 'messages.0.content'],
    [{ messages, max_tokens: 0 }, 'max_tokens'],
    [{ messages, n: 0 }, 'n'],
    [{ messages, n: 129 }, 'n'],
    [{ messages, seed: 1.5 }, 'seed'],
    [{ messages, stop: '' }, 'stop'],
    [{ messages, stop: ['a', ''] }, 'stop'],
    [{ messages, stream: 'yes' }, 'stream'],
    [{ messages, stream_options: { include_usage: true } }, 'stream_options'],
  ])('%j is 400 in the nested form', async (body, param) => {
    const response = await handleRequest(toRequest(body), config);
    expect(response.status).toBe(400);
    const { error }: { error: { param: string | null } } = await response.json();
    expect(error).toEqual({ message: expect.any(String), type: 'BadRequestError', param: error.param, code: 400 });
    expect(error.param?.startsWith(param ?? '') ?? null).toBe(param === null ? null : true);
  });

  it('a speed that is none is the operator’s mistake: 500', async () => {
    const response = await handleRequest(toRequest({ messages }), { ...config, tokensPerSecond: null });
    expect(response.status).toBe(500);
  });

  it('fields it does not know are let pass', async () => {
    expect((await complete({ temperature: 0.2, tools: [], made_up: { a: 1 } })).choices).toHaveLength(1);
  });

  it('lone surrogates in the question come back whole', async () => {
    const answer = await complete({ messages: [{ role: 'user', content: 'a\ud800b' }] });
    expect(answer.choices[0]?.message.content).toContain('“a\ud800b”');
  });
});
