// Deltas of one choice: reasoning by policy, tool calls of any parser, finish reasons of any engine (SPEC §7, §4).

import { describe, expect, test } from 'vitest';
import { toFinishReason } from '../../src/openai/finish-reason.ts';
import { buildContext, chunk, type ContextOptions, joinDeltas, type Relayed, relay, toSse } from './build-context.ts';
import { expectNormalForm } from './normal-form.ts';

type Call = {
  readonly index: number;
  readonly id?: string;
  readonly type?: string;
  readonly function: { readonly name?: string; readonly arguments: string };
};
type Delta = { readonly tool_calls?: readonly Call[] } & Readonly<Record<string, unknown>>;

/** The deltas that these deltas of an engine become, without roles and empty ones; ended by a finish. */
function translate(deltas: readonly object[], options: ContextOptions = {}): readonly Delta[] {
  const relayed = run(deltas, options);
  return relayed.chunks
    .flatMap(({ choices }) => choices)
    .map(({ delta: { role: _role, ...delta } }) => delta)
    .filter((delta) => Object.keys(delta).length > 0 && JSON.stringify(delta) !== '{"content":""}');
}

function run(deltas: readonly object[], options: ContextOptions = {}): Relayed {
  const relayed = relay(
    toSse([...deltas.map((delta) => chunk(delta)), chunk({}, { finish_reason: 'stop' })]),
    buildContext(options),
  );
  expectNormalForm(relayed);
  return relayed;
}

describe('role', () => {
  test.each<[string, readonly object[]]>([
    ['null content first (llama.cpp)', [{ role: 'assistant', content: null }, { content: 'x' }]],
    [
      'on every delta (TGI)',
      [
        { role: 'assistant', content: 'x' },
        { role: 'assistant', content: 'y' },
      ],
    ],
    ['never', [{ content: 'x' }]],
    ['another one', [{ role: 'bot', content: 'x' }]],
    ['late', [{ content: 'x' }, { role: 'assistant' }]],
    ['a delta of null', [{}, { content: 'x' }]],
  ])('§7 role once and first: %s', (_name, deltas) => {
    expect(run(deltas).chunks[0]?.choices[0]?.delta['role']).toBe('assistant');
  });
});

describe('reasoning', () => {
  const r = 'think';
  test.each<[string, ContextOptions, object | null]>([
    ['both', {}, { reasoning: r, reasoning_content: r }],
    ['both, Boole', { preset: 'boole' }, { reasoning: r, reasoning_content: r }],
    ['reasoning', { policy: { reasoning_field: 'reasoning' } }, { reasoning: r }],
    ['reasoning_content', { policy: { reasoning_field: 'reasoning_content' } }, { reasoning_content: r }],
    ['Springboards, asked', { preset: 'springboards', body: { reasoning_effort: 'low' } }, { reasoning_content: r }],
    ['Springboards, not asked', { preset: 'springboards' }, null],
    ['effort none', { body: { reasoning_effort: 'none' } }, null],
    ['effort unknown', { body: { reasoning: { effort: 'banana' } } }, null],
  ])('WIRE 29, §4 by policy, whatever the engine calls it: %s', (_name, options, expected) => {
    for (const thought of [
      { reasoning: r },
      { reasoning_content: r },
      { reasoning: r, reasoning_content: r },
      { reasoning: r, reasoning_content: '' },
      { reasoning: null, reasoning_content: r },
    ]) {
      expect(translate([thought, { content: 'a' }], options)).toEqual(
        expected === null ? [{ content: 'a' }] : [expected, { content: 'a' }],
      );
    }
  });

  test('§7 a delta with both is split, reasoning before content, the finish on the last', () => {
    const both = chunk({ content: 'a', reasoning: r }, { finish_reason: 'length', logprobs: { content: [] } });
    const relayed = relay(toSse([both]));
    expectNormalForm(relayed);
    expect(relayed.chunks.slice(0, 2).map(({ choices: [choice] }) => choice)).toEqual([
      { index: 0, delta: { role: 'assistant', reasoning: r, reasoning_content: r }, finish_reason: null },
      { index: 0, delta: { content: 'a' }, logprobs: { content: [], refusal: null }, finish_reason: 'length' },
    ]);
  });

  test('§4 with effort none nothing of it leaves: not in log probabilities either, but it is counted', () => {
    const logprobs = { content: [{ token: r, logprob: -1 }] };
    const upstream = [
      chunk({ reasoning: r }, { logprobs }),
      chunk({ reasoning: r }, { logprobs, finish_reason: 'stop' }),
    ];
    const relayed = relay(toSse(upstream), buildContext({ body: { reasoning_effort: 'none', logprobs: true } }));
    expectNormalForm(relayed);
    expect(relayed.text).not.toContain(r);
    expect(relayed.progress.usage.output_tokens).toBe(2);
  });
});

describe('content', () => {
  test('§7 empty deltas vanish; refusals and log probabilities pass', () => {
    expect(translate([{ content: '' }, {}, { content: null }, { refusal: 'no' }, { content: 'x' }])).toEqual([
      { refusal: 'no' },
      { content: 'x' },
    ]);
  });

  test('§7 text of any script arrives whole', () => {
    const texts = ['é', '日本', '👩‍👩‍👧', '\u2028', '"\\', '\n'];
    expect(joinDeltas(run(texts.map((content) => ({ content }))).chunks, 'content')).toBe(texts.join(''));
  });
});

const f = (name: string | null | undefined, args?: unknown): object => ({
  function: { ...(name === undefined ? {} : { name }), ...(args === undefined ? {} : { arguments: args }) },
});

describe('tool calls', () => {
  test('§7 calls whose indexes come in any order each have their id, type and name once', () => {
    const call = (index: number, id: string | null, args: string): object => ({
      index,
      ...(id === null ? {} : { id, type: 'function' }),
      function: { ...(id === null ? {} : { name: `f${index}` }), arguments: args },
    });
    const deltas = [[call(1, 'b', '{')], [call(0, 'a', '{}')], [call(1, null, '}')]];
    const parts = translate(deltas.map((tool_calls) => ({ tool_calls }))).flatMap((delta) => delta.tool_calls ?? []);
    expect(parts).toEqual([
      { index: 1, id: 'b', type: 'function', function: { name: 'f1', arguments: '{' } },
      { index: 0, id: 'a', type: 'function', function: { name: 'f0', arguments: '{}' } },
      { index: 1, function: { arguments: '}' } },
    ]);
  });

  /** Calls as a client puts them together: by index, id and name from the first delta of each. */
  function assemble(deltas: readonly (readonly object[])[]): readonly string[] {
    const parts = translate(deltas.map((tool_calls) => ({ tool_calls }))).flatMap((delta) => delta.tool_calls ?? []);
    const calls: { id: string; name: string; args: string }[] = [];
    for (const part of parts) {
      const known = calls[part.index];
      if (known === undefined) {
        expect(part.index, 'indexes count up').toBe(calls.length);
        expect(part.type).toBe('function');
        calls.push({ id: part.id ?? '?', name: part.function.name ?? '?', args: part.function.arguments });
      } else {
        expect([part.id, part.type, part.function.name], 'only the first delta names').toEqual([
          undefined,
          undefined,
          undefined,
        ]);
        known.args += part.function.arguments;
      }
    }
    expect(new Set(calls.map(({ id }) => id)).size, 'ids differ').toBe(calls.length);
    return calls.map(({ id, name, args }) => `${id.startsWith('call_0123456789_') ? 'minted' : id} ${name}(${args})`);
  }

  test.each<[string, readonly (readonly object[])[], readonly string[]]>([
    [
      'index, id and name first, then arguments',
      [
        [{ index: 0, id: 'a', ...f('f', '') }],
        [{ index: 0, ...f(undefined, '{') }],
        [{ index: 0, ...f(undefined, '}') }],
      ],
      ['a f({})'],
    ],
    [
      'two in turn',
      [
        [{ index: 0, id: 'a', ...f('f', '1') }],
        [{ index: 1, id: 'b', ...f('g', '2') }],
        [{ index: 1, ...f(undefined, '3') }],
      ],
      ['a f(1)', 'b g(23)'],
    ],
    [
      'two interleaved',
      [
        [
          { index: 0, id: 'a', ...f('f', '1') },
          { index: 1, id: 'b', ...f('g', '2') },
        ],
        [{ index: 0, ...f(undefined, '3') }],
      ],
      ['a f(13)', 'b g(2)'],
    ],
    ['whole call in one delta (Ollama)', [[{ index: 0, id: 'a', ...f('f', '{}') }]], ['a f({})']],
    [
      'id and type repeated, name null (TGI)',
      [
        [{ index: 0, id: 'a', type: 'function', ...f('f', '1') }],
        [{ index: 0, id: 'a', type: 'function', ...f(null, '2') }],
      ],
      ['a f(12)'],
    ],
    ['no index', [[{ id: 'a', ...f('f', '1') }], [f(undefined, '2')]], ['a f(12)']],
    ['no index, the id repeated', [[{ id: 'a', ...f('f', '1') }], [{ id: 'a', ...f(null, '2') }]], ['a f(12)']],
    [
      'no index, two calls',
      [[{ id: 'a', ...f('f', '1') }], [{ id: 'b', ...f('g', '2') }], [f(undefined, '3')]],
      ['a f(1)', 'b g(23)'],
    ],
    ['no index and no id, two calls in one delta', [[f('f', '1'), f('g', '2')]], ['minted f(1)', 'minted g(2)']],
    [
      'no index and no id, two calls in turn',
      [[f('f', '1')], [f(undefined, '2')], [f('g', '3')]],
      ['minted f(12)', 'minted g(3)'],
    ],
    ['id ""', [[{ index: 0, id: '', ...f('f', '1') }], [{ index: 0, id: '', ...f('', '2') }]], ['minted f(12)']],
    ['arguments as an object', [[{ index: 0, id: 'a', ...f('f', { x: 1 }) }]], ['a f({"x":1})']],
    ['arguments null', [[{ index: 0, id: 'a', ...f('f', null) }], [{ index: 0, ...f(undefined, '1') }]], ['a f(1)']],
  ])('§7 index and id always, arguments a string: %s', (_name, deltas, expected) => {
    expect(assemble(deltas)).toEqual(expected);
  });

  test('§7 ids minted for two choices differ', () => {
    const both = [0, 1].map((index) => chunk({ tool_calls: [f('f', '')] }, { index, finish_reason: 'tool_calls' }));
    const { text } = relay(toSse(both), buildContext({ policy: { max_n: 2 }, body: { n: 2 } }));
    expect(new Set(text.match(/"id":"call_[^"]+"/g)).size).toBe(2);
  });
});

test.each<[unknown, string | null]>([
  ['stop', 'stop'],
  ['length', 'length'],
  ['tool_calls', 'tool_calls'],
  ['content_filter', 'content_filter'],
  ['eos_token', 'stop'],
  ['stop_sequence', 'stop'],
  ['max_tokens', 'length'],
  ['function_call', 'tool_calls'],
  ['load', 'stop'],
  ['constructor', 'stop'],
  ['__proto__', 'stop'],
  ['', null],
  [null, null],
  [undefined, null],
  [5, null],
])('§7 the finish reason %j is %s', (reason, expected) => {
  expect(toFinishReason(reason)).toBe(expected);
});
