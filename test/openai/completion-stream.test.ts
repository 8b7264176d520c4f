// Chat streams in the normal form of SPEC §7, whatever an engine sends; numbers are those of WIRE §7's wire tests.

import { describe, expect, test } from 'vitest';
import { chatCompletions } from '../../src/openai/chat-completions.ts';
import { type Engine } from '../../src/core/model-entry.ts';
import {
  buildContext,
  chunk,
  type ContextOptions,
  joinDeltas,
  NORMAL,
  readCapture,
  relay,
  toSse,
  USAGE,
} from './build-context.ts';
import { expectNormalForm } from './normal-form.ts';

const HI = chunk({ role: 'assistant', content: 'Hi' });
const STOP = chunk({}, { finish_reason: 'stop' });
const DISCONNECTED = {
  error: {
    message: 'The upstream inference endpoint broke off its answer.',
    type: 'server_error',
    param: null,
    code: 'upstream_disconnected',
  },
};

const of = (index: number, completion_tokens: number, finish_reason: string | null = null): object =>
  chunk(
    { content: 'x' },
    { index, finish_reason, usage: { prompt_tokens: 10, completion_tokens, total_tokens: 10 + completion_tokens } },
  );
const task = (completion_tokens: number): object =>
  chunk(null, { usage: { prompt_tokens: 10, completion_tokens, total_tokens: 10 + completion_tokens } });
const timed = (index: number, predicted_n: number, finish_reason: string | null): object =>
  chunk({ content: 'x' }, { index, finish_reason, timings: { cache_n: 9, prompt_n: 1, predicted_n } });
const at = (index: number, delta: object, finish_reason: string | null = null): object =>
  chunk(delta, { index, finish_reason });

describe('usage', () => {
  test('WIRE 3, §7 always: one usage chunk, choices [], directly before [DONE]', () => {
    const relayed = relay(toSse(NORMAL));
    expectNormalForm(relayed);
    expect(relayed.usages).toEqual([USAGE]);
    expect(relayed.text.endsWith(`"choices":[],"usage":${JSON.stringify(USAGE)}}\n\ndata: [DONE]\n\n`)).toBe(true);
  });

  test.each<[string, ContextOptions, boolean]>([
    ['always, include_usage false', { body: { stream_options: { include_usage: false } } }, true],
    ['on_request, not asked', { preset: 'springboards' }, false],
    ['on_request, false', { preset: 'springboards', body: { stream_options: { include_usage: false } } }, false],
    ['on_request, {}', { preset: 'boole', body: { stream_options: {} } }, false],
    ['on_request, asked', { preset: 'springboards', body: { stream_options: { include_usage: true } } }, true],
  ])('WIRE 4, §4 usage_in_stream: %s', (_name, options, shown) => {
    const relayed = relay(toSse(NORMAL), buildContext(options));
    expectNormalForm(relayed);
    expect(relayed.usages).toEqual(shown ? [USAGE] : []);
    if (!shown) expect(relayed.text).not.toContain('usage');
    expect(relayed.progress).toMatchObject({ usageSource: 'engine', usage: { input_tokens: 3, output_tokens: 2 } });
  });

  test('WIRE 5, §7 an engine that reports none: the gateway’s own count, marked estimated', () => {
    const context = buildContext();
    const relayed = relay(toSse([HI, chunk({ content: ' you' }), STOP]), context);
    const { promptTokens } = context.request;
    const counts = { prompt_tokens: promptTokens, completion_tokens: 2, total_tokens: promptTokens + 2 };
    expect(relayed.usages).toEqual([{ ...counts, estimated: true }]);
    expect(relayed.progress).toMatchObject({ usageSource: 'estimated', usage: { output_tokens: 2 } });
  });

  test('§7 an engine that reports none and says nothing: still estimated, never a zero that looks counted', () => {
    const relayed = relay(toSse([STOP]));
    expectNormalForm(relayed);
    expect(relayed.usages).toMatchObject([{ estimated: true }]);
    expect(relayed.usages[0]?.['prompt_tokens']).toBeGreaterThan(0);
    expect(relayed.progress).toMatchObject({ usageSource: 'estimated', started: false });
  });

  const zero = { prompt_tokens: 0, completion_tokens: 0, total_tokens: 0 };
  const half = { prompt_tokens: 3, completion_tokens: 1, total_tokens: 4 };
  test.each<[string, readonly unknown[]]>([
    [
      'WIRE 17: null on every chunk, real last',
      [
        chunk({ content: 'Hi' }, { usage: null }),
        chunk({}, { finish_reason: 'stop', usage: null }),
        chunk(null, { usage: USAGE }),
      ],
    ],
    [
      'WIRE 18: on every chunk, cumulative',
      [
        chunk({ content: 'Hi' }, { usage: half }),
        chunk({}, { finish_reason: 'stop', usage: USAGE }),
        chunk(null, { usage: USAGE }),
      ],
    ],
    [
      'WIRE 18: on every chunk, none behind the finish',
      [chunk({ content: 'Hi' }, { usage: half }), chunk({}, { finish_reason: 'stop', usage: USAGE })],
    ],
    [
      'WIRE 18: zeros on every chunk, real last (Ollama)',
      [chunk({ content: 'Hi' }, { usage: zero }), chunk({}, { finish_reason: 'stop', usage: USAGE })],
    ],
    ['null after the real one', [HI, STOP, chunk(null, { usage: USAGE }), chunk(null, { usage: null })]],
    ['twice', [HI, STOP, chunk(null, { usage: half }), chunk(null, { usage: USAGE })]],
    ['on the finish chunk', [HI, chunk({}, { finish_reason: 'stop', usage: USAGE })]],
    [
      'WIRE 25: a chunk without choices or usage (sglext)',
      [HI, STOP, chunk(null, { usage: USAGE }), chunk(null, { sglext: { a: 1 } })],
    ],
    ['choices null', [HI, STOP, { ...chunk(null), choices: null, usage: USAGE }]],
  ])('§7 %s: once, the last real numbers', (_name, chunks) => {
    const relayed = relay(toSse(chunks));
    expectNormalForm(relayed);
    expect(relayed.usages).toEqual([USAGE]);
    expect(relayed.progress.usageSource).toBe('engine');
  });

  test('§7 zeros on every chunk of a cut stream (Ollama) are no count: the deltas are', () => {
    const relayed = relay(
      toSse([chunk({ content: 'a' }, { usage: zero }), chunk({ content: 'b' }, { usage: zero })], false),
    );
    expect(relayed.usages).toEqual([]);
    expect(relayed.progress).toMatchObject({ usageSource: 'estimated', usage: { output_tokens: 2 } });
  });

  test('§9 an engine that counts zero at the end is believed', () => {
    const relayed = relay(toSse([STOP, chunk(null, { usage: zero })]));
    expect(relayed.usages).toEqual([zero]);
    expect(relayed.progress.usageSource).toBe('engine');
  });

  const n2: ContextOptions = { policy: { max_n: 2 }, body: { n: 2 } };
  test('§7 running counts of a choice each (vLLM, n=2), cut: last of each, added up, the prompt once', () => {
    const relayed = relay(
      toSse([of(1, 1), of(0, 1), of(0, 2), of(1, 2), of(0, 3), of(1, 4, 'stop')], false),
      buildContext(n2),
    );
    expectNormalForm(relayed, 2);
    expect(relayed.outcome).toBe('failed');
    expect(relayed.progress).toMatchObject({
      usageSource: 'engine_running',
      usage: { input_tokens: 10, output_tokens: 7 },
    });
  });

  test('§7 running counts of a choice each, then the whole: the whole holds', () => {
    const whole = chunk(null, { usage: { prompt_tokens: 10, completion_tokens: 8, total_tokens: 18 } });
    const relayed = relay(toSse([of(0, 3, 'stop'), of(1, 4, 'stop'), whole]), buildContext(n2));
    expect(relayed.usages).toMatchObject([{ prompt_tokens: 10, completion_tokens: 8 }]);
  });

  test.each<[string, readonly unknown[], number]>([
    ['one closing usage per task', [timed(0, 3, 'stop'), timed(1, 4, 'stop'), task(3), task(4)], 7],
    ['one closing usage for both, of one task only', [timed(0, 3, 'stop'), timed(1, 4, 'stop'), task(4)], 7],
    ['running counts alone', [timed(0, 3, 'stop'), timed(1, 4, 'stop')], 7],
  ])('WIRE 18: llama.cpp with n=2, %s: summed', (_name, chunks, output) => {
    const relayed = relay(toSse(chunks), buildContext({ ...n2, engine: 'llamacpp' }));
    expectNormalForm(relayed, 2);
    expect(relayed.usages).toMatchObject([{ prompt_tokens: 10, completion_tokens: output }]);
  });

  test('§7 llama.cpp’s running timings bill a cut stream, cached tokens included', () => {
    const relayed = relay(toSse([timed(0, 3, null)], false), buildContext({ engine: 'llamacpp' }));
    expect(relayed.progress).toMatchObject({
      usageSource: 'engine_running',
      usage: { input_tokens: 10, cached_input_tokens: 9, output_tokens: 3 },
    });
    expect(relayed.text).not.toContain('timings');
  });
});

describe('a stream that breaks', () => {
  const continuous = chunk({ content: 'Hi' }, { usage: { prompt_tokens: 3, completion_tokens: 1, total_tokens: 4 } });
  test('§7 cut after text, usage unknown: what came, one error, [DONE]', () => {
    const relayed = relay(toSse([HI], false));
    expectNormalForm(relayed);
    expect(joinDeltas(relayed.chunks, 'content')).toBe('Hi');
    expect(relayed.text.endsWith(`data: ${JSON.stringify(DISCONNECTED)}\n\ndata: [DONE]\n\n`)).toBe(true);
    expect(relayed.usages).toEqual([]);
    expect(relayed.progress).toMatchObject({ usageSource: 'estimated', started: true, finishReason: null });
  });

  test('§7 cut, usage known: usage → error → [DONE]', () => {
    const relayed = relay(toSse([continuous], false));
    expectNormalForm(relayed);
    expect(relayed.text).toMatch(
      /"completion_tokens":1,"total_tokens":4\}\}\n\ndata: \{"error":\{.*\n\ndata: \[DONE\]\n\n$/,
    );
    expect(relayed.text).not.toContain('estimated');
    expect(relayed.progress.usageSource).toBe('engine_running');
  });

  test('§7 cut, usage known, policy on_request and not asked for: no usage', () => {
    const relayed = relay(toSse([continuous], false), buildContext({ preset: 'springboards' }));
    expect(relayed.usages).toEqual([]);
    expect(relayed.errors).toEqual([DISCONNECTED]);
  });

  test('WIRE 7: a half event is dropped', () => {
    const relayed = relay(`${toSse([HI], false)}data: {"id":"c1","obj`);
    expect(relayed.text).not.toContain('c1');
    expect(relayed.errors).toEqual([DISCONNECTED]);
  });

  const silent = toSse([chunk({ role: 'assistant', content: 'Hi' }), chunk({ content: '' })], false);
  test('WIRE 14: Ollama’s silent error, an empty delta and the end, is no success', () => {
    expect(relay(silent, buildContext({ engine: 'ollama' })).errors).toEqual([DISCONNECTED]);
  });

  test.each<[string, string, object, string, string]>([
    [
      'WIRE 9: vLLM, code int, [DONE]',
      'data: [DONE]\n\n',
      { error: { message: 'boom', type: 'InternalServerError', param: null, code: 500 } },
      'server_error',
      'upstream_error',
    ],
    [
      'WIRE 15: llama.cpp, no [DONE]',
      '',
      { error: { code: 500, message: 'boom', type: 'server_error' } },
      'server_error',
      'upstream_error',
    ],
    [
      'SGLang, object error',
      '',
      { error: { object: 'error', message: 'boom', code: 500 } },
      'server_error',
      'upstream_error',
    ],
    [
      'TGI, http_status_code',
      '',
      { error: { message: 'boom', http_status_code: 424 } },
      'server_error',
      'upstream_error',
    ],
    ['a string', '', { error: 'boom' }, 'server_error', 'upstream_error'],
    [
      'in a chunk with choices',
      '',
      { ...chunk({ content: 'x' }), error: { message: 'boom' } },
      'server_error',
      'upstream_error',
    ],
    [
      'overload',
      '',
      { error: { message: 'queue full', code: 503 } },
      'service_unavailable_error',
      'server_is_overloaded',
    ],
    ['SGLang’s finish abort', '', chunk({}, { finish_reason: 'abort' }), 'server_error', 'upstream_error'],
  ])('§7 an error of the engine: %s: one error chunk, [DONE], no second error', (_name, rest, error, type, code) => {
    const relayed = relay(`${toSse([HI], false)}data: ${JSON.stringify(error)}\n\n${rest}`);
    expectNormalForm(relayed);
    expect(relayed.errors).toEqual([{ error: { message: expect.any(String), type, param: null, code } }]);
    expect(relayed.text).not.toContain('boom');
  });

  test.each(['not json', '[1]', '"x"', '{"a":'])('§7 garbage in an event is an engine error: %s', (data) => {
    const relayed = relay(`${toSse([HI], false)}data: ${data}\n\n`);
    expect(relayed.errors).toMatchObject([{ error: { code: 'upstream_error' } }]);
  });

  test('§7 error before any chunk: error and [DONE], nothing else', () => {
    const text = chatCompletions
      .createTranslator(buildContext())
      .fail({ kind: 'upstream', failure: 'upstream_timeout' });
    expect(text).toMatch(/^data: \{"error":\{[^\n]*"code":"upstream_timeout"\}\}\n\ndata: \[DONE\]\n\n$/);
  });
});

describe('identity', () => {
  const changing = [
    { ...HI, id: 'a', created: 5, model: 'org/Model-7B' },
    { ...STOP, id: 'b', created: 6, model: 'other' },
  ];
  test.each<[string, readonly Record<string, unknown>[], ContextOptions, object]>([
    ['the first chunk’s id and created hold', changing, {}, { id: 'a', created: 5, model: 'support' }],
    ['no id (TGI): minted', [{ ...HI, id: '' }, STOP], {}, { id: 'chatcmpl-0123456789' }],
    ['no created: the gateway’s time', [{ ...HI, created: 0 }, STOP], {}, { created: 1_796_000_000 }],
    [
      'ids that repeat (Ollama): minted',
      [{ ...HI, id: 'chatcmpl-123' }, STOP],
      { engine: 'ollama' },
      { id: 'chatcmpl-0123456789' },
    ],
    [
      'WIRE 28: requested, as the client sent it',
      [HI, STOP],
      {
        requestedModel: 'Support-Agent@Rev1',
        entry: { revisions: { Rev1: { backends: [{ binding: 'UPSTREAM_1', upstream_model: 'x', engine: 'vllm' }] } } },
      },
      { model: 'Support-Agent@Rev1' },
    ],
    ['WIRE 28: engine', [HI, STOP], { preset: 'boardwalk' }, { model: 'org/Model-7B' }],
    ['engine, which names none', [{ ...HI, model: undefined }, STOP], { preset: 'boardwalk' }, { model: 'support' }],
    [
      'an odd first chunk without anything',
      [{ object: 'x', choices: [] }, HI, STOP],
      {},
      { id: 'chatcmpl-0123456789', created: 1_796_000_000 },
    ],
  ])('§7 constant id, created, model: %s', (_name, chunks, options, head) => {
    const relayed = relay(toSse(chunks), buildContext(options));
    expectNormalForm(relayed);
    for (const out of relayed.chunks) expect(out).toMatchObject(head);
  });

  test('§9 the receipt learns the completion id the client saw and the engine’s model', () => {
    const { progress } = relay(toSse(NORMAL));
    expect(progress).toMatchObject({ completionId: 'chatcmpl-1', servedModel: 'org/Model-7B', finishReason: 'stop' });
  });

  test('§4 engine internals do not pass', () => {
    const inner = { prompt_token_ids: [1], kv_transfer_params: {}, prompt_logprobs: null, timings: {}, error: null };
    const relayed = relay(
      toSse([
        { ...HI, ...inner },
        { ...STOP, ...inner },
      ]),
    );
    expectNormalForm(relayed);
    expect(relayed.text).not.toMatch(/token_ids|kv_transfer|timings|prompt_logprobs/);
  });
});

describe('choices', () => {
  const n2: ContextOptions = { policy: { max_n: 2 }, body: { n: 2 } };
  test('WIRE 26: n=2 interleaved: each its own role first and one finish, usage once', () => {
    const upstream = [
      at(1, { role: 'assistant' }),
      at(1, { content: 'B' }),
      at(0, { content: 'A' }),
      at(1, {}, 'length'),
      at(0, { content: 'a' }),
      at(0, {}, 'stop'),
      chunk(null, { usage: USAGE }),
    ];
    const relayed = relay(toSse(upstream), buildContext(n2));
    expectNormalForm(relayed, 2);
    expect([joinDeltas(relayed.chunks, 'content', 0), joinDeltas(relayed.chunks, 'content', 1)]).toEqual(['Aa', 'B']);
    expect(relayed.progress.finishReason).toBe('length');
    expect(relayed.usages).toHaveLength(1);
  });

  test('§7 n=2, the end after one choice: the other never came, so it is a cut', () => {
    const relayed = relay(toSse([at(0, { content: 'A' }), at(0, {}, 'stop')], false), buildContext(n2));
    expect(relayed.errors).toEqual([DISCONNECTED]);
  });

  test('§7 two choices in one chunk become two chunks', () => {
    const both = {
      ...chunk(null),
      choices: [0, 1].map((index) => ({ index, delta: { content: 'x' }, finish_reason: 'stop' })),
    };
    expectNormalForm(relay(toSse([both]), buildContext(n2)), 2);
  });

  test('WIRE 13: no [DONE], but finished and a clean end: success', () => {
    const relayed = relay(toSse(NORMAL, false));
    expect(relayed).toMatchObject({ outcome: 'finished', usages: [USAGE] });
  });

  test.each<[string, object, string]>([
    ['stop', { content: 'x' }, 'stop'],
    ['tool_calls', { tool_calls: [{ index: 0, id: 'a', function: { name: 'f', arguments: '{}' } }] }, 'tool_calls'],
  ])('§7 [DONE] without a finish: one is given, %s', (_name, delta, reason) => {
    const relayed = relay(toSse([chunk(delta)]));
    expectNormalForm(relayed);
    expect(relayed.chunks.flatMap(({ choices }) => choices).at(-1)?.finish_reason).toBe(reason);
  });

  test('§7 what comes after a choice’s finish is not delivered', () => {
    const relayed = relay(toSse([HI, STOP, chunk({ content: 'late' }), STOP]));
    expectNormalForm(relayed);
    expect(relayed.text).not.toContain('late');
  });
});

describe('llama-server captures', () => {
  const n2: ContextOptions = { policy: { max_n: 2 }, body: { n: 2 } };
  test.each<[string, ContextOptions, number, string | RegExp, object]>([
    [
      'chat-stream-stop',
      {},
      1,
      'In',
      { prompt_tokens: 24, completion_tokens: 2, prompt_tokens_details: { cached_tokens: 23 } },
    ],
    [
      'chat-stream-usage',
      {},
      1,
      /^In the network breaks .* café crème .*road\.$/,
      { prompt_tokens: 24, completion_tokens: 38 },
    ],
    [
      'chat-stream-nousage',
      {},
      1,
      /^In the network breaks .*road\.$/,
      { prompt_tokens: 24, completion_tokens: 38, prompt_tokens_details: { cached_tokens: 23 } },
    ],
    ['chat-stream-n2', n2, 2, /^In the network .*road\.$/, { prompt_tokens: 24 }],
    ['chat-stream-logprobs', {}, 1, /^In the network/, {}],
    ['chat-tools-required-stream', {}, 1, '', { completion_tokens: 54 }],
    ['chat-tools-parallel-stream', {}, 1, '', {}],
  ])('§7 %s: normal form, text and usage', (name, options, choiceCount, content, usage) => {
    const relayed = relay(readCapture(name), buildContext({ engine: 'llamacpp', ...options }));
    expectNormalForm(relayed, choiceCount);
    expect(relayed.outcome).toBe('finished');
    expect(joinDeltas(relayed.chunks, 'content')).toMatch(
      typeof content === 'string' ? new RegExp(`^${content}$`) : content,
    );
    expect(relayed.usages).toMatchObject([usage]);
  });

  test('§7 chat-stream-cancelled: all that came, then the error', () => {
    const relayed = relay(readCapture('chat-stream-cancelled'), buildContext({ engine: 'llamacpp' }));
    expectNormalForm(relayed);
    expect(joinDeltas(relayed.chunks, 'content')).toBe('In the network breaks');
    expect(relayed.errors).toEqual([DISCONNECTED]);
  });

  test('§7 logprobs of the engine reach the client, one to each token', () => {
    const relayed = relay(readCapture('chat-stream-logprobs'), buildContext({ engine: 'llamacpp' }));
    const engine = readCapture('chat-stream-logprobs').match(/"logprobs":\{/g);
    expect(relayed.text.match(/"logprobs":\{/g)).toEqual(engine);
  });

  test.each(['vllm', 'sglang', 'llamacpp', 'ollama', 'tgi', 'openai'] as const)(
    '§7 idempotence: what leaves, fed in again as if from %s, leaves unchanged',
    (engine: Engine) => {
      for (const name of ['chat-stream-usage', 'chat-tools-parallel-stream']) {
        const once = relay(readCapture(name), buildContext({ engine: 'llamacpp' }));
        const again = relay(once.text, buildContext({ engine }));
        const keepsIds = engine !== 'ollama' && engine !== 'tgi';
        const unify = (text: string): string => (keepsIds ? text : text.replace(/"id":"chatcmpl-\w+"/g, ''));
        expect(unify(again.text)).toBe(unify(once.text));
      }
    },
  );

  test('§7 any line of a capture lost or spoilt: never a throw, always the frame and one terminal', () => {
    for (const name of ['chat-stream-stop', 'chat-tools-required-stream', 'chat-stream-logprobs']) {
      const lines = readCapture(name).split('\n');
      for (let line = 0; line < lines.length; line += 1) {
        for (const spoilt of [
          '',
          'data: {}',
          'data: null',
          'data: {"choices":[null]}',
          lines[line]!.slice(0, -9),
          lines[line]!.replaceAll('"', "'"),
        ]) {
          const relayed = relay(lines.with(line, spoilt).join('\n'), buildContext({ engine: 'llamacpp' }));
          expect(relayed.errors.length).toBe(relayed.outcome === 'failed' ? 1 : 0);
        }
      }
    }
  });
});
