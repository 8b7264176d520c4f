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

  it.each([[{}], [{ type: 'string' }], [{ anyOf: [{ type: 'integer' }] }], [null], [undefined]])(
    'arguments are an object for the parameters %j',
    async (parameters) => {
      const { choices } = await chat({ tools: [{ type: 'function', function: { name: 'f', parameters } }] }, 'f');
      const made: unknown = JSON.parse(choices[0]?.message?.tool_calls?.[0]?.function.arguments ?? '');
      expect(z.record(z.string(), z.unknown()).safeParse(made).success).toBe(true);
    },
  );

  it('a limit may cut the arguments', async () => {
    const { choices, usage } = await chat({ tools: [weather], max_tokens: 3 }, 'get_weather');
    expect([choices[0]?.finish_reason, usage.completion_tokens]).toEqual(['length', 3]);
    expect(tokenize(choices[0]?.message?.tool_calls?.[0]?.function.arguments ?? '')).toHaveLength(3);
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

  it('streamed token by token: the same as not streamed', async () => {
    const fields = { messages: [{ role: 'user', content: 'Hi' }], response_format: { type: 'json_object' } };
    const chunks = await stream('/v1/chat/completions', fields);
    const pieces = chunks.flatMap(({ choices }) => choices.map(({ delta }) => delta?.['content'])).filter(Boolean);
    const content = (await chat(fields)).choices[0]?.message?.content ?? '';
    expect(pieces).toEqual(tokenize(content));
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

  type JudgedSchema = Parameters<typeof z.fromJSONSchema>[0];
  const node: JudgedSchema = {
    type: 'object',
    properties: { children: { type: 'array', items: { $ref: '#/$defs/node' } }, next: { $ref: '#/$defs/end' } },
    required: ['children', 'next'],
    additionalProperties: false,
  };
  const judged: readonly (readonly [string, JudgedSchema])[] = [
    [
      'a local reference',
      { type: 'object', properties: { a: { $ref: '#/$defs/a' } }, required: ['a'], $defs: { a: { type: 'integer' } } },
    ],
    [
      'a tree and a list of itself',
      { $ref: '#/$defs/node', $defs: { node, end: { anyOf: [{ $ref: '#/$defs/node' }, { type: 'null' }] } } },
    ],
    ['allOf', { allOf: [{ type: 'object', properties: { a: { type: 'null' } } }, { required: ['a'] }] }],
    ['oneOf', { oneOf: [{ type: 'integer' }, { type: 'boolean' }] }],
    ['several types', { type: ['string', 'null'] }],
    ['null alone', { type: ['null'] }],
    [
      'a name only required',
      { type: 'object', properties: {}, required: ['x'], additionalProperties: { type: 'boolean' } },
    ],
    ['an upper bound below zero', { type: 'integer', maximum: -5 }],
    ['exclusive bounds', { type: 'integer', exclusiveMinimum: 3, exclusiveMaximum: 5 }],
    ['bounds narrower than a step', { type: 'number', exclusiveMinimum: 0, exclusiveMaximum: 0.2 }],
    ['a step', { type: 'integer', multipleOf: 7, minimum: 1 }],
    ['a step of a tenth', { type: 'number', multipleOf: 0.1, minimum: 0.25, maximum: 0.55 }],
    ['a tuple', { type: 'array', prefixItems: [{ type: 'integer' }, { type: 'string' }], items: false, minItems: 2 }],
    ['an exact count', { type: 'array', items: { type: 'integer', minimum: 1, maximum: 4 }, minItems: 4, maxItems: 4 }],
    ...['date-time', 'date', 'email', 'ipv4', 'ipv6', 'uuid', 'uri'].map((format): [string, JudgedSchema] => [
      format,
      { type: 'string', format },
    ]),
  ];
  it.each(judged)('json_schema: valid for %s, with zod as the judge, for 100 seeds', (_name, schema) => {
    const judge = z.fromJSONSchema(schema);
    for (let seed = 0; seed < 100; seed += 1) judge.parse(inventJson(schema, createRandom(seed)));
  });

  it('uniqueItems: no value twice', () => {
    const items = { type: 'integer', minimum: 1, maximum: 4 };
    const schema = { type: 'array', items, minItems: 4, uniqueItems: true };
    const values = z
      .array(z.number())
      .length(4)
      .parse(inventJson(schema, createRandom(1)));
    expect(new Set(values)).toEqual(new Set([1, 2, 3, 4]));
  });

  const nested = (levels: number): object =>
    levels === 0 ? { type: 'string' } : { type: 'array', minItems: 1000, items: nested(levels - 1) };
  const itself: Record<string, unknown> = { type: 'object', required: ['next'] };
  itself['properties'] = { next: itself };
  it.each([
    ['itself', itself],
    ['a reference to itself', { $ref: '#' }],
    ['references that branch', { allOf: Array.from({ length: 9 }, () => ({ $ref: '#' })) }],
    ['options that branch', { anyOf: Array.from({ length: 9 }, () => ({ $ref: '#' })) }],
    ['lists of lists', nested(8)],
    ['a string without end', { type: 'string', minLength: 2 ** 40 }],
    ['a set larger than its values', { type: 'array', uniqueItems: true, minItems: 9, items: { type: 'boolean' } }],
    ['a reference to nowhere', { $ref: '#/nowhere/at~1all' }],
  ])('a schema of %s comes to an end', (_name, schema) => {
    expect(JSON.stringify(inventJson(schema, createRandom(1))).length).toBeLessThan(40_000);
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

  const legacySchema = z.object({
    tokens: z.array(z.string()),
    token_logprobs: z.array(z.number().max(0).nullable()),
    top_logprobs: z.array(z.record(z.string(), z.number()).nullable()),
    text_offset: z.array(z.number()),
  });

  it.each([
    ['the answer alone', { prompt: 'Once upon' }, ['This', ' is', " Turnpike's", ' demo'], [0, 4, 7, 18]],
    [
      'with the echoed prompt',
      { prompt: '👍 Go', echo: true, max_tokens: 2 },
      ['👍', ' Go', 'This', ' is'],
      [0, 1, 4, 8],
    ],
  ])('completions: the legacy shape of %s, offsets in code points', async (_name, fields, tokens, offsets) => {
    const { choices } = await text({ logprobs: 2, max_tokens: 4, ...fields });
    const logprobs = legacySchema.parse(choices[0]?.logprobs);
    expect([logprobs.tokens, logprobs.text_offset]).toEqual([tokens, offsets]);
    expect(choices[0]?.text).toBe(tokens.join(''));
    // As in vLLM: the first token of an echoed prompt follows nothing.
    const known = [logprobs.token_logprobs, logprobs.top_logprobs].map((list) => list.map((entry) => entry !== null));
    expect(known).toEqual(Array(2).fill(tokens.map((_, at) => at > 0 || !('echo' in fields))));
  });

  it('completions: a stream lists the same tokens as an answer, those a stop string held back too', async () => {
    const fields = { prompt: 'Once', echo: true, logprobs: 1, stop: ' is running', max_tokens: null };
    const whole = legacySchema.parse((await text(fields)).choices[0]?.logprobs);
    const parts = (await stream('/v1/completions', fields)).flatMap(({ choices }) =>
      choices.flatMap(({ logprobs }) => (logprobs === null ? [] : legacySchema.parse(logprobs))),
    );
    expect(parts.flatMap(({ tokens }) => tokens)).toEqual(whole.tokens);
    expect(parts.flatMap((part) => part.text_offset)).toEqual(whole.text_offset);
    expect(whole.tokens.slice(-2)).toEqual([' is', ' running']);
  });

  it('chat: a stream lists the same tokens as an answer, those a stop string held back too', async () => {
    const fields = { logprobs: true, top_logprobs: 1, stop: ' is running' };
    const whole = (await chat(fields)).choices[0]?.logprobs?.['content'];
    const chunks = await stream('/v1/chat/completions', { ...fields, messages: [{ role: 'user', content: 'Hello' }] });
    const listed = chunks.flatMap(({ choices }) => choices.flatMap(({ logprobs }) => logprobs ?? []));
    const content = z.array(z.object({ content: z.array(z.unknown()) })).parse(listed);
    expect(content.flatMap((part) => part.content)).toEqual(whole);
  });

  it('chat: as many alternatives as asked for, each once, falling', async () => {
    const { choices } = await chat({ logprobs: true, top_logprobs: 20, max_tokens: 40 });
    const entry = z.looseObject({ top_logprobs: z.array(z.looseObject({ token: z.string(), logprob: z.number() })) });
    for (const { top_logprobs: top } of z.array(entry).parse(choices[0]?.logprobs?.['content'])) {
      expect(new Set(top.map(({ token }) => token)).size).toBe(20);
      expect(top.map(({ logprob }) => logprob)).toEqual(top.map(({ logprob }) => logprob).toSorted((a, b) => b - a));
    }
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

  it('the stop string is named; ignore_eos goes on to the limit; suffix and the seed’s size do not matter', async () => {
    const stopped = await text({ stop: ' engine', max_tokens: null, suffix: ' end' });
    expect(stopped.choices[0]).toMatchObject({ finish_reason: 'stop', stop_reason: ' engine' });
    const long = await text({ ignore_eos: true, max_tokens: 500, seed: 2 ** 63 });
    expect([long.choices[0]?.finish_reason, long.usage.completion_tokens]).toEqual(['length', 500]);
  });

  it.each([
    ['{"prompt":', null],
    ['{"prompt":[1,2]}', 'prompt'],
    ['{"prompt":[]}', 'prompt'],
    ['{"prompt":"a","seed":0.5}', 'seed'],
    ['{"prompt":"a","max_tokens":0}', 'max_tokens'],
    ['{"prompt":"a","stream_options":{"include_usage":true}}', 'stream_options'],
  ])('%s is refused as vLLM does', async (body, param) => {
    const response = await handleRequest(new Request('http://demo/v1/completions', { method: 'POST', body }), config);
    expect(response.status).toBe(400);
    expect(await response.json()).toMatchObject({ error: { type: 'BadRequestError', param, code: 400 } });
  });
});
