// Engines nobody has seen: chunks and answers of every member in every type, at random from a seed. Whatever comes, what
// leaves is as published, streamed, whole and put together. What it means is not looked at here.

import { describe, expect, test } from 'vitest';

import { chatCompletions } from '../../src/openai/chat-completions.ts';
import { textCompletions } from '../../src/openai/text-completions.ts';
import { createSeededRandom } from '../core/seeded-random.ts';
import { type GatewayError } from '../../src/core/errors.ts';
import { type AnswerContext } from '../../src/openai/endpoint.ts';
import { responses } from '../../src/openai/responses.ts';
import { buildContext, buildResponsesContext } from './build-context.ts';
import { responseSchema } from './published-response-schema.ts';
import { checkEnd, parsePublishedResponses } from './published-responses.ts';
import { chatAnswerSchema, parsePublishedStream, textAnswerSchema } from './published-schema.ts';

const ROUNDS = process.env['TURNPIKE_DEEP'] === undefined ? 2000 : 50_000;
const TIMEOUT_MS = 120_000;
const ODD: readonly unknown[] = [
  null,
  '',
  'x',
  0,
  1,
  -1,
  0.5,
  1e300,
  true,
  false,
  [],
  {},
  [null],
  ['a'],
  [{}],
  { a: 1 },
];

type Random = ReturnType<typeof createSeededRandom>;

/** One of these, or now and then anything at all; undefined leaves the member out. */
function pick(random: Random, values: readonly unknown[]): unknown {
  if (random.int(0, 9) === 0) return random.pick(ODD);
  return random.pick([...values, undefined]);
}

function inventLogprobs(random: Random): unknown {
  const token = (): object => ({
    id: 7,
    token: pick(random, ['a', 'é']),
    logprob: pick(random, [-1, null]),
    bytes: pick(random, [[97], null]),
    top_logprobs: pick(random, [[], [{ token: 'a', logprob: -1, bytes: [97] }]]),
  });
  const legacy = {
    tokens: pick(random, [['a', 'b']]),
    token_logprobs: pick(random, [[null, -1]]),
    top_logprobs: pick(random, [[null, { b: -1 }]]),
    text_offset: pick(random, [
      [0, 1],
      [-1, -1],
    ]),
  };
  return pick(random, [null, { content: [token(), token()] }, { content: null, refusal: [token()] }, legacy]);
}

function inventSaid(random: Random): object {
  const call = (): object => ({
    index: pick(random, [0, 1]),
    id: pick(random, ['c1', 'c2', '']),
    type: pick(random, ['function']),
    function: pick(random, [{ name: pick(random, ['f', '']), arguments: pick(random, ['{}', {}, null]) }]),
  });
  return {
    role: pick(random, ['assistant', 'user']),
    content: pick(random, ['a', '', null]),
    refusal: pick(random, ['no', null]),
    reasoning: pick(random, ['r', '']),
    reasoning_content: pick(random, ['r', '']),
    tool_calls: pick(random, [[call()], [call(), call()]]),
    audio: pick(random, [null]),
  };
}

function inventUsage(random: Random): unknown {
  return pick(random, [
    null,
    {
      prompt_tokens: pick(random, [3, 0]),
      completion_tokens: pick(random, [2, 0]),
      total_tokens: pick(random, [5]),
      prompt_tokens_details: pick(random, [
        null,
        { cached_tokens: pick(random, [1, 9]), created_cache_tokens: pick(random, [1, 9]) },
      ]),
      completion_tokens_details: pick(random, [null, { reasoning_tokens: pick(random, [1, 9]) }]),
    },
  ]);
}

function inventEvent(random: Random): object {
  const choice = (): object => ({
    index: pick(random, [0, 0, 1]),
    delta: pick(random, [inventSaid(random)]),
    message: pick(random, [inventSaid(random)]),
    text: pick(random, ['a', '']),
    logprobs: inventLogprobs(random),
    finish_reason: pick(random, [null, null, null, 'stop', 'length', 'tool_calls', 'eos_token', '']),
    stop_reason: pick(random, [5]),
  });
  return {
    id: pick(random, ['x', '']),
    object: pick(random, ['x']),
    created: pick(random, [5, 6]),
    model: pick(random, ['m', 'n']),
    system_fingerprint: pick(random, ['f', null]),
    choices: pick(random, [[choice()], [choice(), choice()], []]),
    usage: inventUsage(random),
    timings: pick(random, [{ prompt_n: 3, predicted_n: 2 }]),
  };
}

describe.each([
  ['chat', chatCompletions, chatAnswerSchema],
  ['text', textCompletions, textAnswerSchema],
] as const)('§4 §7 %s, whatever an engine sends', (kind, endpoint, answerSchema) => {
  test('a stream, and the answer it is put together to', { timeout: TIMEOUT_MS }, () => {
    for (let seed = 0; seed < ROUNDS; seed += 1) {
      const random = createSeededRandom(seed);
      const context = buildContext({ policy: { max_n: 2 }, body: { n: random.int(1, 2) } });
      const translator = endpoint.createTranslator(context);
      const events = Array.from({ length: random.int(1, 6) }, () => inventEvent(random));
      let text = '';
      for (const event of events) {
        const translated = translator.push({ type: '', data: JSON.stringify(event) });
        if (translated.type === 'output') text += translated.text;
      }
      const whole = text + translator.finish();
      try {
        parsePublishedStream(whole, kind);
        const assembled: unknown = JSON.parse(endpoint.assembleAnswer(whole, context));
        // Without a choice there is no answer: the request has failed before.
        if (whole.includes('"finish_reason"')) answerSchema.parse(assembled);
      } catch (error) {
        expect.fail(
          `seed ${seed}: ${String(error)}\n${events.map((event) => JSON.stringify(event)).join('\n')}\n${whole}`,
        );
      }
    }
  });

  test('a whole answer', { timeout: TIMEOUT_MS }, () => {
    let answered = 0;
    for (let seed = 0; seed < ROUNDS; seed += 1) {
      const random = createSeededRandom(seed);
      const engine = JSON.stringify(inventEvent(random));
      const answer = endpoint.toJsonAnswer(engine, buildContext({ body: { stream: false } }));
      if (!answer.ok) continue;
      answered += 1;
      try {
        answerSchema.parse(JSON.parse(answer.value.body));
      } catch (error) {
        expect.fail(`seed ${seed}: ${String(error)}\n${engine}\n${answer.value.body}`);
      }
    }
    expect(answered).toBeGreaterThan(ROUNDS / 3);
  });
});

function inventItem(random: Random): unknown {
  return {
    type: pick(random, ['message', 'reasoning', 'function_call', 'web_search_call']),
    id: pick(random, ['a', 'b', '']),
    call_id: pick(random, ['c1', 'c2', '']),
    name: pick(random, ['f', '']),
    arguments: pick(random, ['{}', '{"a":1}', '{"a', '']),
    role: 'assistant',
    status: pick(random, ['completed', 'in_progress']),
    content: pick(random, [[{ type: 'output_text', text: 'ab' }], [{ type: 'refusal', refusal: 'no' }], [], null]),
    summary: pick(random, [[], [{ type: 'summary_text', text: 'r' }]]),
  };
}

/** An event of an engine's own /v1/responses. */
function inventNative(random: Random): object {
  const usage = { input_tokens: pick(random, [3]), output_tokens: pick(random, [2]), total_tokens: pick(random, [5]) };
  const kinds = [
    'created',
    'in_progress',
    'output_item.added',
    'output_item.done',
    'output_text.delta',
    'refusal.delta',
  ];
  const others = ['reasoning_text.delta', 'function_call_arguments.delta', 'content_part.done', 'reasoning_part.added'];
  return {
    type: pick(
      random,
      [...kinds, ...others, 'output_text.delta'].map((kind) => `response.${kind}`),
    ),
    item_id: pick(random, ['a', 'b', '']),
    output_index: pick(random, [0, 1]),
    item: pick(random, [inventItem(random)]),
    delta: pick(random, ['a', '{', '}', '']),
    response: pick(random, [{ model: pick(random, ['m']), output: [], usage: pick(random, [usage]) }]),
  };
}

/** How an engine's own response ends; null when it just stops. */
function inventTerminal(random: Random): object | null {
  const output = pick(random, [[inventItem(random)], [inventItem(random), inventItem(random)], []]);
  const status = random.pick(['completed', 'completed', 'incomplete', 'failed']);
  const details = pick(random, [{ reason: pick(random, ['max_output_tokens', 'content_filter']) }]);
  const response = { status, output, incomplete_details: details, usage: { input_tokens: 3, output_tokens: 2 } };
  return random.int(0, 4) === 0 ? null : { type: 'response.completed', response };
}

describe('§8 native responses, whatever an engine sends', () => {
  test('a stream, and the answer it is put together to', { timeout: TIMEOUT_MS }, () => {
    let completed = 0;
    for (let seed = 0; seed < ROUNDS; seed += 1) {
      const random = createSeededRandom(seed);
      const engine = random.pick(['vllm', 'llamacpp', 'openai'] as const);
      const body = { max_output_tokens: random.int(1, 4) };
      const context = buildResponsesContext({ engine, entry: { responses: 'native' }, body });
      const translator = responses.createTranslator(context);
      const events = [...Array.from({ length: random.int(0, 8) }, () => inventNative(random)), inventTerminal(random)];
      let text = '';
      let end: GatewayError | 'done' = { kind: 'upstream', failure: 'upstream_disconnected' };
      for (const event of events.filter((one) => one !== null)) {
        const translated = translator.push({ type: '', data: JSON.stringify(event) });
        if (translated.type === 'fault') end = translated.error;
        else text += translated.text;
        if (translated.type === 'done') end = 'done';
        if (translated.type !== 'output') break;
      }
      const whole = text + (end === 'done' ? translator.finish() : translator.fail(end));
      try {
        const { response } = parsePublishedResponses(whole);
        expect(response.status === 'failed').toBe(end !== 'done');
        expect(JSON.parse(responses.assembleAnswer(whole, context))).toEqual(response);
        if (response.status === 'completed') completed += 1;
      } catch (error) {
        expect.fail(
          `seed ${seed}: ${String(error)}\n${events.map((event) => JSON.stringify(event)).join('\n')}\n${whole}`,
        );
      }
    }
    expect(completed).toBeGreaterThan(ROUNDS / 10);
  });
});

describe('§8 responses, whatever an engine sends', () => {
  const build = (random: Random, stream: boolean): AnswerContext => {
    const effort = random.int(0, 3) === 0 ? { reasoning: { effort: 'none' } } : {};
    const entry = { reasoning: { control: 'chat_template_kwargs' }, responses_done: random.int(0, 1) === 0 };
    return buildResponsesContext({ entry, body: { stream, ...effort } });
  };

  test('a stream, well or ill ended, and the answer it is put together to', { timeout: TIMEOUT_MS }, () => {
    for (let seed = 0; seed < ROUNDS; seed += 1) {
      const random = createSeededRandom(seed);
      const context = build(random, true);
      const translator = responses.createTranslator(context);
      const events = Array.from({ length: random.int(1, 6) }, () => inventEvent(random));
      let text = '';
      for (const event of events) {
        const translated = translator.push({ type: '', data: JSON.stringify(event) });
        if (translated.type === 'output') text += translated.text;
      }
      const failed = random.int(0, 3) === 0;
      const cut = { kind: 'upstream', failure: 'upstream_disconnected' } as const;
      const whole = text + (failed ? translator.fail(cut) : translator.finish());
      try {
        const { response } = parsePublishedResponses(whole, context.request.resolved.model.responses.done);
        expect(response.status === 'failed').toBe(failed);
        expect(JSON.parse(responses.assembleAnswer(whole, context))).toEqual(response);
      } catch (error) {
        expect.fail(
          `seed ${seed}: ${String(error)}\n${events.map((event) => JSON.stringify(event)).join('\n')}\n${whole}`,
        );
      }
    }
  });

  test('a whole answer', { timeout: TIMEOUT_MS }, () => {
    let answered = 0;
    for (let seed = 0; seed < ROUNDS; seed += 1) {
      const random = createSeededRandom(seed);
      const engine = JSON.stringify(inventEvent(random));
      const answer = responses.toJsonAnswer(engine, build(random, false));
      if (!answer.ok) continue;
      answered += 1;
      try {
        checkEnd(responseSchema.parse(JSON.parse(answer.value.body)));
      } catch (error) {
        expect.fail(`seed ${seed}: ${String(error)}\n${engine}\n${answer.value.body}`);
      }
    }
    expect(answered).toBeGreaterThan(ROUNDS / 3);
  });
});
