// The clients that people use with /v1/responses, as black boxes against the served address: two majors of OpenAI's own, the
// AI SDK and the Agents SDK, each over two turns with tools. What they make of an answer is what counts.

import { createOpenAI } from '@ai-sdk/openai';
import { Agent, OpenAIResponsesModel, run, setTracingDisabled, tool as agentTool } from '@openai/agents';
import { generateText, isStepCount, streamText, tool as aiTool } from 'ai';
import OpenAI from 'openai';
import OpenAI6 from 'openai6';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import * as z from 'zod';

import { buildKey, MODELS, type ScriptedGateway, startScriptedGateway, toToken } from './scripted-gateway.ts';
import { answerJson, chunk, countUsage, DONE, type Exchange } from './scripted-upstream.ts';

const CITIES = ['Paris', 'Oslo'];
const ANSWER = 'Sunny in Paris and Oslo.';
const QUESTION = 'What is the weather in Paris and Oslo?';
const model = MODELS.able;

let scripted: ScriptedGateway;
beforeAll(async () => {
  setTracingDisabled(true);
  // It warns that it drops reasoning which is not encrypted: known, and its own affair.
  Reflect.set(globalThis, 'AI_SDK_LOG_WARNINGS', false);
  scripted = await startScriptedGateway({ keys: { 'key:clients': buildKey('clients') } });
});
afterAll(() => scripted.stop());

const head = { id: 'chatcmpl-scripted', object: 'chat.completion.chunk', created: 1_796_083_200, model: 'engine/m' };
const event = (delta: object, finish_reason: string | null = null): string =>
  `data: ${JSON.stringify({ ...head, choices: [{ index: 0, delta, finish_reason }] })}\n\n`;
const call = (index: number, id: string | undefined, name: string | undefined, args: string): object => ({
  tool_calls: [{ index, id, type: 'function', function: { name, arguments: args } }],
});

/** A model that asks for the weather of two cities at once, its arguments split, and answers when it has been told. */
function playWeather(): void {
  scripted.upstream.play((exchange) => {
    const { messages, stream }: { messages: { role: string }[]; stream?: boolean } = JSON.parse(exchange.body);
    const told = messages.filter(({ role }) => role === 'tool').length === CITIES.length;
    if (stream === true) return told ? streamAnswer(exchange) : streamCalls(exchange);
    const calls = CITIES.map((city, at) => ({
      id: `call_${at}`,
      type: 'function',
      function: { name: 'weather', arguments: JSON.stringify({ city }) },
    }));
    const message = told ? { content: ANSWER } : { content: null, reasoning: 'I must look.', tool_calls: calls };
    const choice = {
      index: 0,
      message: { role: 'assistant', ...message },
      finish_reason: told ? 'stop' : 'tool_calls',
    };
    answerJson(exchange, 200, { ...head, object: 'chat.completion', choices: [choice], usage: countUsage(7) });
  });
}

function streamCalls(exchange: Exchange): void {
  exchange.head(200);
  exchange.write(
    event({ role: 'assistant', content: '' }) + event({ reasoning: 'I must ' }) + event({ reasoning: 'look.' }),
  );
  for (const [at, city] of CITIES.entries()) {
    exchange.write(
      event(call(at, `call_${at}`, 'weather', '{"ci')) + event(call(at, undefined, undefined, `ty":"${city}"}`)),
    );
  }
  exchange.end(event({}, 'tool_calls') + chunk({ usage: countUsage(7) }) + DONE);
}

function streamAnswer(exchange: Exchange): void {
  exchange.head(200);
  for (const word of ANSWER.split(/(?= )/)) exchange.write(event({ content: word }));
  exchange.end(event({}, 'stop') + chunk({ usage: countUsage(7) }) + DONE);
}

/** The engine's second request: one turn with both calls, and what came of each. */
function expectSecondTurn(): void {
  const { messages }: { messages: Readonly<Record<string, unknown>>[] } = JSON.parse(
    scripted.upstream.exchanges.at(-1)?.body ?? '',
  );
  expect(messages.filter(({ role }) => role === 'assistant')).toMatchObject([
    { tool_calls: CITIES.map((city, at) => ({ id: `call_${at}`, function: { arguments: `{"city":"${city}"}` } })) },
  ]);
  expect(messages.filter(({ role }) => role === 'tool')).toMatchObject([
    { tool_call_id: 'call_0' },
    { tool_call_id: 'call_1' },
  ]);
}

// The two majors differ in types that these calls do not touch.
// oxlint-disable-next-line typescript/no-unsafe-type-assertion
const Client6 = OpenAI6 as unknown as typeof OpenAI;
const parameters = {
  type: 'object',
  properties: { city: { type: 'string' } },
  required: ['city'],
  additionalProperties: false,
};
const tools = [{ type: 'function' as const, name: 'weather', parameters, strict: true }];

describe.each([
  ['7', OpenAI],
  ['6', Client6],
] as const)('official client openai %s', (_major, Client) => {
  const open = (): OpenAI =>
    new Client({ apiKey: toToken('main'), baseURL: `${scripted.gateway.url}/v1`, maxRetries: 0 });
  type Input = OpenAI.Responses.ResponseInput;

  /** Two turns: the calls are answered, everything goes back as it came. */
  async function converse(ask: (input: Input) => Promise<OpenAI.Responses.Response>): Promise<void> {
    playWeather();
    const question = { role: 'user' as const, content: QUESTION };
    const first = await ask([question]);
    expect(first).toMatchObject({ status: 'completed', usage: { input_tokens: 3, output_tokens: 7 } });
    expect(first.output.map(({ type }) => type)).toEqual(['reasoning', 'function_call', 'function_call']);
    const calls = first.output.filter((item) => item.type === 'function_call');
    expect(calls.map((item): unknown => JSON.parse(item.arguments))).toEqual(CITIES.map((city) => ({ city })));
    const outputs = calls.map(({ call_id }) => ({ type: 'function_call_output' as const, call_id, output: 'sunny' }));
    const said = first.output.filter((item) => item.type === 'reasoning' || item.type === 'function_call');
    const second = await ask([question, ...said, ...outputs]);
    expect(second.output_text).toBe(ANSWER);
    expectSecondTurn();
  }

  test('§8 .create() with tools over two turns', async () => {
    await converse((input) => open().responses.create({ model, input, tools, store: false }));
  });

  test('§8 .stream().finalResponse() with tools over two turns', async () => {
    await converse((input) => open().responses.stream({ model, input, tools, store: false }).finalResponse());
  });

  test('§8 a raw stream: every event has its number, the last one is terminal', async () => {
    playWeather();
    const stream = await open().responses.create({ model, input: QUESTION, tools, stream: true });
    const events = [];
    for await (const part of stream) events.push(part);
    expect(events.map(({ sequence_number }) => sequence_number)).toEqual(events.map((_, at) => at));
    expect(events.at(-1)?.type).toBe('response.completed');
  });

  test('§8 .parse(): structured output', async () => {
    scripted.upstream.play((exchange) => {
      const choice = { index: 0, message: { role: 'assistant', content: '{"city":"Oslo"}' }, finish_reason: 'stop' };
      answerJson(exchange, 200, { ...head, choices: [choice], usage: countUsage(7) });
    });
    const format = { type: 'json_schema' as const, name: 'place', schema: parameters, strict: true };
    const response = await open().responses.parse({ model, input: QUESTION, text: { format } });
    expect(response.output_parsed).toEqual({ city: 'Oslo' });
  });

  test('§8 an engine that is cut: a response that failed, with its partial output', async () => {
    scripted.upstream.play((exchange) => {
      exchange.head(200);
      exchange.write(event({ content: 'Sun' }));
      setTimeout(exchange.reset, 50);
    });
    const response = await open().responses.stream({ model, input: QUESTION }).finalResponse();
    expect(response).toMatchObject({ status: 'failed', error: { code: 'server_error' }, output_text: 'Sun' });
  });

  test('§3 an error before the stream is an APIError with status, code and requestID', async () => {
    for (const stream of [false, true]) {
      const error: unknown = await open()
        .responses.create({ model: MODELS.down, input: QUESTION, stream })
        .then(
          () => null,
          (reason: unknown) => reason,
        );
      expect(error).toBeInstanceOf(Client.InternalServerError);
      expect(error).toMatchObject({
        status: 502,
        code: 'upstream_unreachable',
        requestID: expect.stringMatching(/^req_/),
      });
    }
  });
});

describe('AI SDK', () => {
  // Without `store: false` it refers to items by their ids instead of sending them.
  const options = {
    prompt: QUESTION,
    stopWhen: isStepCount(2),
    maxRetries: 0,
    providerOptions: { openai: { store: false } },
    tools: {
      weather: aiTool({ inputSchema: z.object({ city: z.string() }), execute: ({ city }) => `sunny in ${city}` }),
    },
  };
  const open = () =>
    createOpenAI({ apiKey: toToken('clients'), baseURL: `${scripted.gateway.url}/v1` }).responses(model);

  test('§8 generateText with tools over two steps', async () => {
    playWeather();
    const { text, steps } = await generateText({ model: open(), ...options });
    expect(text).toBe(ANSWER);
    expect(steps[0]?.toolCalls.map(({ input }) => input)).toEqual(CITIES.map((city) => ({ city })));
    expect(steps[0]?.usage).toMatchObject({ inputTokens: 3, outputTokens: 7 });
    expectSecondTurn();
  });

  test('§8 streamText with tools over two steps', async () => {
    playWeather();
    const result = streamText({ model: open(), ...options });
    const parts = [];
    for await (const part of result.fullStream) parts.push(part);
    expect(parts.filter(({ type }) => type === 'error')).toEqual([]);
    expect(await result.text).toBe(ANSWER);
    expect(await result.finishReason).toBe('stop');
    expectSecondTurn();
  });

  test('§8 an engine that is cut is an error, not an answer', async () => {
    scripted.upstream.play((exchange) => {
      exchange.head(200);
      exchange.write(event({ content: 'Sun' }));
      setTimeout(exchange.reset, 50);
    });
    const result = streamText({ model: open(), ...options, onError: () => undefined });
    const types: string[] = [];
    for await (const part of result.fullStream) types.push(part.type);
    expect(types).toContain('error');
  });
});

describe('Agents SDK', () => {
  const build = () => {
    const client = new OpenAI({ apiKey: toToken('clients'), baseURL: `${scripted.gateway.url}/v1`, maxRetries: 0 });
    return new Agent({
      name: 'Weather',
      instructions: 'You tell the weather.',
      model: new OpenAIResponsesModel(client, model),
      modelSettings: { store: false },
      tools: [
        agentTool({
          name: 'weather',
          description: 'The weather of a city.',
          parameters: z.object({ city: z.string() }),
          execute: ({ city }) => `sunny in ${city}`,
        }),
      ],
    });
  };

  test('§8 a run with tools over two turns', async () => {
    playWeather();
    const result = await run(build(), QUESTION);
    expect(result.finalOutput).toBe(ANSWER);
    expectSecondTurn();
  });

  test('§8 a streamed run with tools over two turns', async () => {
    playWeather();
    const result = await run(build(), QUESTION, { stream: true });
    let text = '';
    for await (const part of result.toTextStream()) text += part;
    await result.completed;
    expect([text, result.finalOutput]).toEqual([ANSWER, ANSWER]);
    expectSecondTurn();
  });
});
