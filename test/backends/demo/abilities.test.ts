// What the demo engine can do beyond plain chat, so that every feature of the gateway can be tried without a GPU: tools,
// JSON mode, log probabilities, reasoning, text completions. Deterministic, and stream and answer say the same.

import { describe, expect, it } from 'vitest';
import * as z from 'zod';
import { handleRequest, type DemoConfig } from '../../../src/backends/demo/handle-request.ts';
import { inventJson } from '../../../src/backends/demo/invent-json.ts';
import { wait } from '../../../src/backends/demo/pacer.ts';
import { createRandom } from '../../../src/backends/demo/seeded-random.ts';
import { tokenize } from '../../../src/backends/demo/tokenize.ts';

const config: DemoConfig = { tokensPerSecond: 0, nowMs: () => 1_800_000_000_500, newId: () => 'rnd', wait };

const callSchema = z.object({
  id: z.string().min(1),
  type: z.literal('function'),
  function: z.object({ name: z.string(), arguments: z.string() }),
});
const answerSchema = z.looseObject({
  choices: z.array(
    z.looseObject({
      index: z.number(),
      text: z.string().optional(),
      message: z
        .looseObject({
          content: z.string().nullable(),
          reasoning: z.string().optional(),
          tool_calls: z.array(callSchema).optional(),
        })
        .optional(),
      logprobs: z.looseObject({}).nullable(),
      finish_reason: z.string(),
    }),
  ),
  usage: z.looseObject({ prompt_tokens: z.number(), completion_tokens: z.number(), total_tokens: z.number() }),
});

async function send(path: string, body: object): Promise<Response> {
  const init = { method: 'POST', body: JSON.stringify(body) };
  const response = await handleRequest(new Request(`http://demo${path}`, init), config);
  expect(response.status, await response.clone().text()).toBe(200);
  return response;
}

async function chat(fields: object, content = 'Hello'): Promise<z.infer<typeof answerSchema>> {
  const body = { model: 'm', messages: [{ role: 'user', content }], ...fields };
  return answerSchema.parse(await (await send('/v1/chat/completions', body)).json());
}

async function text(fields: object): Promise<z.infer<typeof answerSchema>> {
  return answerSchema.parse(await (await send('/v1/completions', { model: 'm', prompt: 'Once', ...fields })).json());
}

type Chunk = {
  readonly choices: readonly {
    readonly index: number;
    readonly text?: string;
    readonly delta?: Readonly<Record<string, unknown>>;
    readonly logprobs: unknown;
    readonly finish_reason: string | null;
  }[];
  readonly usage?: Readonly<Record<string, number>>;
};

async function stream(path: string, fields: object): Promise<readonly Chunk[]> {
  const body = { model: 'm', stream: true, stream_options: { include_usage: true }, ...fields };
  const lines = (await (await send(path, body)).text()).split('\n\n').filter((line) => line !== '');
  expect(lines.at(-1)).toBe('data: [DONE]');
  return lines.slice(0, -1).map((line): Chunk => JSON.parse(line.slice('data: '.length)));
}

const weather = {
  type: 'function',
  function: {
    name: 'get_weather',
    parameters: {
      type: 'object',
      properties: { city: { type: 'string' }, days: { type: 'integer', minimum: 1, maximum: 3 } },
      required: ['city'],
    },
  },
};
const time = { type: 'function', function: { name: 'get_time' } };

describe('tools', () => {
  it.each([
    ['auto, none mentioned', 'auto', 'Hello', []],
    ['auto, one mentioned', 'auto', 'Please use get_weather', ['get_weather']],
    ['auto, both mentioned', 'auto', 'get_weather and get_time', ['get_weather', 'get_time']],
    ['none', 'none', 'get_weather', []],
    ['required', 'required', 'Hello', ['get_weather']],
    ['named', { type: 'function', function: { name: 'get_time' } }, 'Hello', ['get_time']],
  ])('%s', async (_name, tool_choice, content, names) => {
    const { choices, usage } = await chat({ tools: [weather, time], tool_choice }, content);
    const [choice] = choices;
    const calls = choice?.message?.tool_calls ?? [];
    expect(calls.map((call) => call.function.name)).toEqual(names);
    expect(choice?.finish_reason).toBe(names.length > 0 ? 'tool_calls' : 'stop');
    expect(choice?.message?.content === null).toBe(names.length > 0);
    for (const call of calls) expect(JSON.parse(call.function.arguments)).toBeTypeOf('object');
    const made = calls.reduce((sum, call) => sum + tokenize(call.function.arguments).length, 0);
    if (names.length > 0) expect(usage.completion_tokens).toBe(made);
  });

  it('one call only without parallel calls; a tool’s answer is told, not called again', async () => {
    const both = await chat({ tools: [weather, time], parallel_tool_calls: false }, 'get_weather and get_time');
    expect(both.choices[0]?.message?.tool_calls).toHaveLength(1);
    const messages = [
      { role: 'user', content: 'get_weather' },
      { role: 'tool', tool_call_id: 'x', content: 'It rains.' },
    ];
    const told = await chat({ tools: [weather], messages });
    expect(told.choices[0]?.message?.content).toContain('It rains.');
  });

  it('streamed: index, id and name first, arguments in pieces; the same as not streamed', async () => {
    const fields = { messages: [{ role: 'user', content: 'get_weather' }], tools: [weather] };
    const chunks = await stream('/v1/chat/completions', fields);
    const calls = chunks.flatMap(({ choices }) => choices.flatMap(({ delta }) => delta?.['tool_calls'] ?? []));
    const parsed = z
      .array(
        z.object({
          index: z.literal(0),
          id: z.string().optional(),
          function: z.looseObject({ arguments: z.string() }),
        }),
      )
      .parse(calls);
    expect(parsed[0]?.id).toMatch(/^call_/);
    expect(parsed.filter(({ id }) => id !== undefined)).toHaveLength(1);
    expect(parsed.length).toBeGreaterThan(3);
    const whole = await chat(fields);
    expect(parsed.map((call) => call.function.arguments).join('')).toBe(
      whole.choices[0]?.message?.tool_calls?.[0]?.function.arguments,
    );
    expect(chunks.at(-2)?.choices[0]?.finish_reason).toBe('tool_calls');
  });
});

describe('JSON mode', () => {
  it('json_object: one JSON object; a limit may cut it', async () => {
    const whole = await chat({ response_format: { type: 'json_object' } });
    expect(JSON.parse(whole.choices[0]?.message?.content ?? '')).toBeTypeOf('object');
    const cut = await chat({ response_format: { type: 'json_object' }, max_tokens: 2 });
    expect(cut.choices[0]?.finish_reason).toBe('length');
  });

  it('json_schema: a document that is valid for the schema, for 200 seeds', () => {
    const schema = {
      type: 'object',
      properties: {
        name: { type: 'string', minLength: 3, maxLength: 5 },
        kind: { enum: ['a', 'b'] },
        count: { type: 'integer', minimum: 2, maximum: 4 },
        ratio: { type: 'number', minimum: 1 },
        tags: { type: 'array', items: { type: 'string' }, minItems: 2, maxItems: 2 },
        inner: { type: 'object', properties: { ok: { type: 'boolean' }, fixed: { const: 7 } }, required: ['ok'] },
      },
      required: ['name', 'kind', 'count', 'ratio', 'tags', 'inner'],
    };
    const wanted = z.strictObject({
      name: z.string().min(3).max(5),
      kind: z.enum(['a', 'b']),
      count: z.int().min(2).max(4),
      ratio: z.number().min(1),
      tags: z.array(z.string()).length(2),
      inner: z.strictObject({ ok: z.boolean(), fixed: z.literal(7) }),
    });
    for (let seed = 0; seed < 200; seed += 1) wanted.parse(inventJson(schema, createRandom(seed)));
  });

  it('a schema that holds itself comes to an end', () => {
    const node: Record<string, unknown> = { type: 'object', required: ['next'] };
    node['properties'] = { next: node };
    expect(JSON.stringify(inventJson(node, createRandom(1))).length).toBeLessThan(500);
  });
});

describe('log probabilities', () => {
  it('chat: one for each token of the text, the token itself first, none above zero', async () => {
    const { choices } = await chat({ logprobs: true, top_logprobs: 3, max_tokens: 12 });
    const entry = z.object({
      token: z.string(),
      logprob: z.number().max(0),
      bytes: z.array(z.number()),
      top_logprobs: z.array(z.looseObject({ token: z.string() })).length(3),
    });
    const content = z.array(entry).parse(choices[0]?.logprobs?.['content']);
    expect(content.map(({ token }) => token).join('')).toBe(choices[0]?.message?.content);
    for (const { token, top_logprobs: top } of content) expect(top[0]?.token).toBe(token);
  });

  it('completions: the legacy shape, offsets counted over the echoed prompt', async () => {
    const { choices } = await text({ logprobs: 2, echo: true, max_tokens: 4 });
    const logprobs = z
      .object({
        tokens: z.array(z.string()).length(4),
        token_logprobs: z.array(z.number()).length(4),
        top_logprobs: z.array(z.record(z.string(), z.number())).length(4),
        text_offset: z.array(z.number()).length(4),
      })
      .parse(choices[0]?.logprobs);
    expect(logprobs.text_offset[0]).toBe('Once'.length);
    expect(choices[0]?.text).toBe(`Once${logprobs.tokens.join('')}`);
  });
});

describe('reasoning', () => {
  it('only where the template is asked for it, counted as completion tokens', async () => {
    const plain = await chat({});
    const thinking = await chat({ chat_template_kwargs: { enable_thinking: true } });
    expect(plain.choices[0]?.message?.reasoning).toBeUndefined();
    const reasoning = thinking.choices[0]?.message?.reasoning ?? '';
    expect(reasoning).toContain('No model is running');
    expect(thinking.choices[0]?.message?.content).toBe(plain.choices[0]?.message?.content);
    const tokens = tokenize(reasoning).length;
    expect(thinking.usage.completion_tokens).toBe(plain.usage.completion_tokens + tokens);
    expect(thinking.usage).toMatchObject({ completion_tokens_details: { reasoning_tokens: tokens } });
  });

  it('streamed before the content', async () => {
    const fields = { messages: [{ role: 'user', content: 'Hi' }], chat_template_kwargs: { enable_thinking: true } };
    const kinds = (await stream('/v1/chat/completions', fields)).flatMap(({ choices }) =>
      choices.map(({ delta }) => (delta?.['reasoning'] === undefined ? 'content' : 'reasoning')),
    );
    expect(kinds.indexOf('reasoning')).toBe(1);
    expect(kinds.lastIndexOf('reasoning')).toBeLessThan(kinds.indexOf('content', 1));
  });
});

describe('text completions', () => {
  it('vLLM’s default of 16 tokens; an explicit null lifts it', async () => {
    const short = await text({});
    expect([short.choices[0]?.finish_reason, short.usage.completion_tokens]).toEqual(['length', 16]);
    const whole = await text({ max_tokens: null });
    expect(whole.choices[0]?.finish_reason).toBe('stop');
    expect(whole.choices[0]?.text?.startsWith(short.choices[0]?.text ?? '?')).toBe(true);
  });

  it('prompts and choices: index = prompt · n + choice, prompts counted once', async () => {
    const fields = { prompt: ['One two', 'Three'], n: 2, max_tokens: 5, logprobs: null };
    const { choices, usage } = await text(fields);
    expect(choices.map(({ index }) => index)).toEqual([0, 1, 2, 3]);
    expect(usage).toMatchObject({ prompt_tokens: 3, completion_tokens: 20, total_tokens: 23 });
    const chunks = await stream('/v1/completions', { ...fields, stream_options: { continuous_usage_stats: true } });
    for (const { index, text: said } of choices) {
      const pieces = chunks.flatMap((chunk) => chunk.choices.filter((choice) => choice.index === index));
      expect(pieces.map((piece) => piece.text).join('')).toBe(said);
      expect(pieces.at(-1)?.finish_reason).toBe('length');
    }
    expect(chunks.at(-1)).toMatchObject({ choices: [], usage });
    const last = chunks.findLast((chunk) => chunk.choices[0]?.index === 2);
    expect(last?.usage).toEqual({ prompt_tokens: 1, completion_tokens: 5, total_tokens: 6 });
  });

  it('echo puts the prompt first, stop ends the text before it', async () => {
    const { choices } = await text({ echo: true, stop: ' engine', max_tokens: null });
    expect(choices[0]).toMatchObject({ text: "OnceThis is Turnpike's demo", finish_reason: 'stop' });
    const [first] = await stream('/v1/completions', { prompt: 'Once', echo: true });
    expect(first?.choices[0]?.text).toBe('Once');
  });

  it('a prompt that is none is refused as vLLM does', async () => {
    const init = { method: 'POST', body: '{"prompt":[1,2]}' };
    const response = await handleRequest(new Request('http://demo/v1/completions', init), config);
    expect(response.status).toBe(400);
    expect(await response.json()).toMatchObject({ error: { type: 'BadRequestError', code: 400 } });
  });
});
