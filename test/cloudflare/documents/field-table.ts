// Every request field of the reference documents for chat and text completions, and of SPEC §4: what passes and how it
// reaches the engine, and how the rest is refused; of a response's fields those it shares. Data only; fields.test.ts runs it.

import { type Endpoint, type Fields } from './call.ts';
import { ABSENT } from './field-path.ts';

/** A value that passes; the second is what the engine gets, where that is not the value itself. */
export type Good = readonly [value: unknown, sent?: unknown];
/** A value that is refused with a code; the param is the field's own path where it is not given. */
export type Bad = readonly [value: unknown, code: string, param?: string];
export type Preset = 'none' | 'boardwalk' | 'springboards' | 'boole';

export type Field = {
  readonly path: string;
  readonly on: readonly Endpoint[];
  /** Whose model is asked; `none` alone where presets make no difference. */
  readonly presets?: readonly Preset[];
  /** A model to ask instead of the preset's. */
  readonly model?: string;
  /** What the body needs beside the field. */
  readonly beside?: Fields;
  readonly good?: readonly Good[];
  readonly wrongType?: readonly Bad[];
  readonly below?: readonly Bad[];
  readonly above?: readonly Bad[];
  /** `absent`: not sent up; `required`: refused as missing; else what the engine gets. */
  readonly null?: 'absent' | 'required' | { readonly sent: unknown };
  /** Where the engine gets it, if not where it was. */
  readonly sentAt?: string;
  /** Refused by a model that can do nothing. */
  readonly gated?: readonly Bad[];
  /** Asks for nothing, so even a model that can do nothing takes it. */
  readonly ungated?: readonly Good[];
  /** Not read under `checked_fields: listed`: there even a wrong value goes up as it came, capable or not. */
  readonly unread?: true;
};

/** Stands for the field that a context overflow is blamed on. */
export const PROMPT = '(messages or prompt)';

const EVERY: readonly Endpoint[] = ['chat', 'text', 'responses'];
const BOTH: readonly Endpoint[] = ['chat', 'text'];
const CHAT: readonly Endpoint[] = ['chat'];
const TEXT: readonly Endpoint[] = ['text'];
const ALL: readonly Preset[] = ['none', 'boardwalk', 'springboards', 'boole'];
const SINGLE: readonly Preset[] = ['none', 'boardwalk'];
const SEVERAL: readonly Preset[] = ['springboards', 'boole'];

const TYPE = 'invalid_type';
const VALUE = 'invalid_value';
const MISSING = 'missing_required_parameter';
const REQUIRED = { null: 'required' } as const;
const OPTIONAL = { null: 'absent' } as const;
const SAME = (...values: readonly unknown[]): readonly Good[] => values.map((value): Good => [value]);
const WRONG = (...values: readonly unknown[]): readonly Bad[] => values.map((value): Bad => [value, TYPE]);

const CALL = { id: 'call_1', type: 'function', function: { name: 'look', arguments: '{"at":1}' } };
const TOOL = { type: 'function', function: { name: 'look', description: 'Looks.', parameters: { type: 'object' } } };
const USER = { role: 'user', content: 'Hi' };
const CALLED = { messages: [USER, { role: 'assistant', content: null, tool_calls: [CALL] }] };
const ANSWERED = { messages: [...CALLED.messages, { role: 'tool', content: '4', tool_call_id: 'call_1' }] };
const THOUGHT = { messages: [USER, { role: 'assistant', content: 'Hm.' }] };
const PARTS = { messages: [{ role: 'user', content: [{ type: 'text', text: 'Hi' }] }] };
const PICTURE = {
  messages: [{ role: 'user', content: [{ type: 'image_url', image_url: { url: 'data:image/png;base64,iVBORw==' } }] }],
};
const NAMED = { type: 'function', function: { name: 'look' } };
const SCHEMA = { type: 'json_schema', json_schema: { name: 'answer', schema: { type: 'object' }, strict: true } };

const MODEL_AND_MESSAGES: readonly Field[] = [
  {
    path: 'model',
    on: EVERY,
    presets: ALL,
    wrongType: WRONG(5, ['a'], {}),
    good: [['no-preset', 'engine-model']],
    ...REQUIRED,
  },
  {
    path: 'messages',
    on: CHAT,
    presets: ALL,
    good: SAME([USER], [{ role: 'system', content: 'Be brief.' }, USER]),
    wrongType: WRONG('Hi', {}, 5),
    below: [[[], 'empty_array']],
    ...REQUIRED,
  },
  { path: 'messages[0]', on: CHAT, beside: CALLED, good: SAME(USER), wrongType: WRONG('Hi', 5, []), ...REQUIRED },
  {
    path: 'messages[0].role',
    on: CHAT,
    presets: ALL,
    beside: { messages: [USER] },
    good: [['system'], ['user'], ['assistant'], ['tool'], ['developer', 'system']],
    wrongType: [
      [5, TYPE],
      ['king', VALUE],
      ['User', VALUE],
      ['', VALUE],
    ],
    ...REQUIRED,
  },
  {
    path: 'messages[0].content',
    on: CHAT,
    presets: SINGLE,
    beside: { messages: [USER] },
    good: SAME(
      'Hi',
      '',
      [
        { type: 'text', text: 'a' },
        { type: 'text', text: 'b' },
      ],
      [],
    ),
    wrongType: WRONG(5, {}, true),
    null: { sent: null },
  },
  {
    path: 'messages[0].content',
    on: CHAT,
    presets: SEVERAL,
    beside: { messages: [USER] },
    good: SAME('Hi', '', [{ type: 'text', text: 'a' }]),
    wrongType: WRONG(5, {}, true),
    ...REQUIRED,
  },
  { path: 'messages[0].content', on: CHAT, presets: SINGLE, beside: { messages: [USER] }, good: [[ABSENT]] },
  {
    path: 'messages[0].content',
    on: CHAT,
    presets: SEVERAL,
    beside: { messages: [USER] },
    wrongType: [[ABSENT, MISSING]],
  },
  {
    path: 'messages[1].content',
    on: CHAT,
    presets: ALL,
    beside: CALLED,
    good: [[ABSENT], ['Looking.']],
    null: { sent: null },
  },
  {
    path: 'messages[0].content[0]',
    on: CHAT,
    beside: PARTS,
    good: SAME({ type: 'text', text: 'b' }),
    wrongType: WRONG('b', 5, []),
    ...REQUIRED,
  },
  {
    path: 'messages[0].content[0].type',
    on: CHAT,
    presets: ALL,
    beside: PARTS,
    good: SAME('text'),
    wrongType: [
      [5, TYPE],
      ['input_audio', 'unsupported_value'],
      ['video_url', 'unsupported_value'],
    ],
    ...REQUIRED,
  },
  {
    path: 'messages[0].content[0].text',
    on: CHAT,
    presets: ALL,
    beside: PARTS,
    good: SAME('', 'b'),
    wrongType: WRONG(5, {}, []),
    ...REQUIRED,
  },
  { path: 'messages[0].content[0].text', on: CHAT, beside: PARTS, wrongType: [[ABSENT, MISSING]] },
  {
    path: 'messages[0].content[0].type',
    on: CHAT,
    beside: PICTURE,
    good: SAME('image_url'),
    gated: [['image_url', 'unsupported_value']],
  },
  {
    path: 'messages[0].content[0].image_url',
    on: CHAT,
    beside: PICTURE,
    good: SAME({ url: 'data:image/png;base64,AA==', detail: 'low' }, 'data:image/png;base64,AA=='),
    wrongType: [
      [5, TYPE],
      [[], TYPE],
      [ABSENT, MISSING],
      [{}, MISSING, 'messages[0].content[0].image_url.url'],
    ],
    ...REQUIRED,
  },
  {
    path: 'messages[0].content[0].image_url.url',
    on: CHAT,
    beside: PICTURE,
    good: SAME('data:image/jpeg;base64,/9j/', 'DATA:image/png;base64,AA=='),
    wrongType: [
      [5, TYPE],
      ['http://example.com/a.png', 'unsupported_value'],
      ['https://example.com/a.png', 'unsupported_value'],
      ['file:///etc/passwd', 'unsupported_value'],
      [' data:image/png;base64,AA==', 'unsupported_value'],
      ['', 'unsupported_value'],
    ],
    ...REQUIRED,
  },
  {
    path: 'messages[0].name',
    on: CHAT,
    beside: { messages: [USER] },
    good: SAME('ada', ''),
    wrongType: WRONG(5, {}, []),
    ...OPTIONAL,
  },
  {
    path: 'messages[1].tool_calls',
    on: CHAT,
    presets: ALL,
    beside: { messages: [USER, { role: 'assistant', content: 'x' }] },
    good: SAME([], [CALL], [CALL, { ...CALL, id: 'call_2' }]),
    wrongType: WRONG('x', {}, 5),
    ...OPTIONAL,
  },
  { path: 'messages[1].tool_calls[0]', on: CHAT, beside: CALLED, wrongType: WRONG('x', 5, []), ...REQUIRED },
  {
    path: 'messages[1].tool_calls[0].id',
    on: CHAT,
    presets: ALL,
    beside: CALLED,
    good: SAME('call_9'),
    wrongType: [
      [5, TYPE],
      [ABSENT, MISSING],
    ],
    ...REQUIRED,
  },
  {
    path: 'messages[1].tool_calls[0].type',
    on: CHAT,
    beside: CALLED,
    good: SAME('function'),
    wrongType: [
      [5, TYPE],
      ['custom', VALUE],
      [ABSENT, MISSING],
    ],
    ...REQUIRED,
  },
  {
    path: 'messages[1].tool_calls[0].function',
    on: CHAT,
    beside: CALLED,
    good: SAME({ name: 'f', arguments: '' }),
    wrongType: [
      ['f', TYPE],
      [[], TYPE],
      [ABSENT, MISSING],
    ],
    ...REQUIRED,
  },
  {
    path: 'messages[1].tool_calls[0].function.name',
    on: CHAT,
    presets: ALL,
    beside: CALLED,
    good: SAME('f'),
    wrongType: [
      [5, TYPE],
      [ABSENT, MISSING],
    ],
    ...REQUIRED,
  },
  {
    path: 'messages[1].tool_calls[0].function.arguments',
    on: CHAT,
    presets: ALL,
    beside: CALLED,
    good: SAME('{"a":1}', '', 'not json'),
    wrongType: [
      [{ a: 1 }, TYPE],
      [5, TYPE],
      [ABSENT, MISSING],
    ],
    ...REQUIRED,
  },
  {
    path: 'messages[2].tool_call_id',
    on: CHAT,
    beside: ANSWERED,
    good: [['call_1'], [ABSENT]],
    wrongType: WRONG(5, {}),
    ...OPTIONAL,
  },
  {
    path: 'messages[1].reasoning',
    on: CHAT,
    beside: THOUGHT,
    good: SAME('Let me see.', ''),
    wrongType: WRONG(5, {}, []),
    ...OPTIONAL,
  },
  {
    path: 'messages[1].reasoning_content',
    on: CHAT,
    presets: ALL,
    beside: THOUGHT,
    good: SAME('Let me see.'),
    sentAt: 'messages[1].reasoning',
    wrongType: WRONG(5, {}, []),
    ...OPTIONAL,
  },
  {
    path: 'messages[0].reasoning_content',
    on: CHAT,
    presets: ['none', 'springboards', 'boole'],
    beside: { messages: [USER] },
    good: SAME('x'),
    ...OPTIONAL,
  },
  {
    path: 'messages[0].reasoning_content',
    on: CHAT,
    presets: ['boardwalk'],
    beside: { messages: [USER] },
    wrongType: [
      ['x', 'unsupported_parameter'],
      ['', 'unsupported_parameter'],
    ],
    ...OPTIONAL,
  },
];

const PROMPTS: readonly Field[] = [
  {
    path: 'prompt',
    on: TEXT,
    presets: ALL,
    good: SAME(
      'Once',
      '',
      ['Once'],
      ['a', 'b', 'c'],
      Array.from({ length: 128 }, () => 'a'),
    ),
    wrongType: [
      [5, TYPE],
      [{}, TYPE],
      [[1, 2], TYPE, 'prompt[0]'],
      [[[1, 2]], TYPE, 'prompt[0]'],
      [['a', 5], TYPE, 'prompt[1]'],
    ],
    below: [[[], 'empty_array']],
    above: [[Array.from({ length: 129 }, () => 'a'), 'array_above_max_length']],
    ...REQUIRED,
  },
  {
    path: 'echo',
    on: TEXT,
    good: SAME(true, false),
    wrongType: WRONG('yes', 1, {}),
    gated: [[true, 'unsupported_parameter']],
    ungated: SAME(false),
    ...OPTIONAL,
  },
  {
    path: 'suffix',
    on: TEXT,
    good: [['The end.'], ['', ABSENT]],
    wrongType: WRONG(5, [], {}),
    gated: [['The end.', 'unsupported_parameter']],
    ungated: [['', ABSENT]],
    ...OPTIONAL,
  },
  {
    path: 'logprobs',
    on: TEXT,
    good: [[true, 0], [false, ABSENT], [0], [5], [20]],
    wrongType: WRONG('5', 1.5, {}),
    below: [[-1, 'integer_below_min_value']],
    above: [[21, 'integer_above_max_value']],
    gated: [
      [true, 'unsupported_parameter'],
      [0, 'unsupported_parameter'],
      [5, 'unsupported_parameter'],
    ],
    ungated: [[false, ABSENT]],
    ...OPTIONAL,
  },
  {
    path: 'top_logprobs',
    on: TEXT,
    beside: { logprobs: true },
    sentAt: 'logprobs',
    good: SAME(0, 1, 20),
    wrongType: WRONG('1', 1.5, true),
    below: [[-1, 'integer_below_min_value']],
    above: [[21, 'integer_above_max_value']],
    null: { sent: 0 },
  },
];

const STREAM: readonly Field[] = [
  { path: 'stream', on: EVERY, presets: ALL, good: SAME(true, false), wrongType: WRONG('true', 1, {}), ...OPTIONAL },
  {
    path: 'stream_options',
    on: BOTH,
    presets: ALL,
    beside: { stream: true },
    good: [[{}, { include_usage: true, continuous_usage_stats: true }]],
    wrongType: WRONG('x', true, []),
    null: { sent: { include_usage: true, continuous_usage_stats: true } },
  },
  {
    path: 'stream_options',
    on: BOTH,
    good: [
      [{}, ABSENT],
      [{ include_usage: true }, ABSENT],
    ],
    wrongType: [
      ['x', TYPE],
      [{ include_usage: 'x' }, TYPE, 'stream_options.include_usage'],
    ],
    ...OPTIONAL,
  },
  {
    path: 'stream_options.include_usage',
    on: BOTH,
    presets: ALL,
    beside: { stream: true, stream_options: {} },
    good: [[true], [false, true]],
    wrongType: WRONG('true', 1, {}),
    null: { sent: true },
  },
];

const LIMIT = {
  presets: ALL,
  wrongType: WRONG('1', 1.5, true, [], {}),
  below: [
    [0, 'integer_below_min_value'],
    [-5, 'integer_below_min_value'],
  ],
  above: [[32769, 'context_length_exceeded', PROMPT]],
} satisfies Partial<Field>;
const LIMITS: readonly Field[] = [
  { ...LIMIT, path: 'max_tokens', on: CHAT, good: SAME(1, 256, 32768), ...OPTIONAL },
  { ...LIMIT, path: 'max_tokens', on: TEXT, good: SAME(1, 256, 32768), null: { sent: null } },
  { ...LIMIT, path: 'max_completion_tokens', on: BOTH, good: SAME(1, 256, 32768), sentAt: 'max_tokens' },
  {
    path: 'max_completion_tokens',
    on: BOTH,
    beside: { max_tokens: 7 },
    good: SAME(9),
    sentAt: 'max_tokens',
    null: { sent: 7 },
  },
  {
    path: 'max_tokens',
    on: BOTH,
    model: 'test-model',
    good: SAME(1024),
    above: [
      [1025, 'integer_above_max_value'],
      [1e300, 'integer_above_max_value'],
    ],
    null: { sent: 1024 },
  },
  {
    path: 'max_completion_tokens',
    on: BOTH,
    model: 'test-model',
    sentAt: 'max_tokens',
    good: SAME(1024),
    above: [[1025, 'integer_above_max_value']],
    null: { sent: 1024 },
  },
];

const PENALTY = {
  on: BOTH,
  presets: ALL,
  good: SAME(-2, -0.5, 0, 2),
  wrongType: WRONG('0', true, []),
  below: [[-2.01, 'decimal_below_min_value']],
  above: [[2.01, 'decimal_above_max_value']],
  ...OPTIONAL,
} satisfies Partial<Field>;
const SAMPLING: readonly Field[] = [
  {
    path: 'temperature',
    on: EVERY,
    presets: ['none', 'boardwalk', 'springboards'],
    good: SAME(0, 0.7, 2),
    wrongType: WRONG('1', true, [], {}),
    below: [[-0.01, 'decimal_below_min_value']],
    above: [[2.01, 'decimal_above_max_value']],
    ...OPTIONAL,
  },
  {
    path: 'top_p',
    on: EVERY,
    presets: ['none', 'boardwalk', 'springboards'],
    good: SAME(0.001, 0.5, 1),
    wrongType: WRONG('1', true, []),
    below: [
      [0, 'decimal_below_min_value'],
      [-1, 'decimal_below_min_value'],
    ],
    above: [[1.01, 'decimal_above_max_value']],
    ...OPTIONAL,
  },
  {
    path: 'temperature',
    on: EVERY,
    presets: ['boole'],
    good: [[0], [2], [ABSENT, 1]],
    wrongType: WRONG('1'),
    below: [[-0.01, 'decimal_below_min_value']],
    above: [[2.01, 'decimal_above_max_value']],
    null: { sent: 1 },
  },
  {
    path: 'top_p',
    on: EVERY,
    presets: ['boole'],
    good: [[0.5], [1], [ABSENT, 1]],
    wrongType: WRONG('1'),
    below: [[0, 'decimal_below_min_value']],
    above: [[1.01, 'decimal_above_max_value']],
    null: { sent: 1 },
  },
  { ...PENALTY, path: 'presence_penalty' },
  { ...PENALTY, path: 'frequency_penalty' },
  {
    path: 'n',
    on: BOTH,
    presets: SINGLE,
    good: SAME(1),
    wrongType: WRONG('1', 1.5, true, []),
    below: [
      [0, 'integer_below_min_value'],
      [-1, 'integer_below_min_value'],
    ],
    above: [[2, 'unsupported_value']],
    ...OPTIONAL,
  },
  {
    path: 'n',
    on: BOTH,
    presets: SEVERAL,
    good: SAME(1, 8),
    wrongType: WRONG('1', 1.5, true),
    below: [[0, 'integer_below_min_value']],
    above: [[9, 'unsupported_value']],
    ...OPTIONAL,
  },
  {
    path: 'stop',
    on: BOTH,
    presets: ['none', 'boardwalk', 'springboards'],
    good: SAME('END', '', ['a'], ['a', 'b', 'c', 'd'], []),
    wrongType: [
      [5, TYPE],
      [{}, TYPE],
      [true, TYPE],
      [[5], TYPE, 'stop[0]'],
      [['a', null], MISSING, 'stop[1]'],
    ],
    above: [[['a', 'b', 'c', 'd', 'e'], 'array_above_max_length']],
    ...OPTIONAL,
  },
  {
    path: 'stop',
    on: BOTH,
    presets: ['boole'],
    good: SAME('END', ['a', 'b', 'c', 'd', 'e', 'f', 'g', 'h', 'i', 'j']),
    wrongType: [
      [5, TYPE],
      [[5], TYPE, 'stop[0]'],
    ],
    ...OPTIONAL,
  },
  {
    path: 'seed',
    on: BOTH,
    presets: ALL,
    good: SAME(0, -1, 42, 2 ** 60),
    wrongType: WRONG('1', 1.5, true, {}),
    ...OPTIONAL,
  },
  { path: 'user', on: BOTH, presets: ALL, good: SAME('u-1', ''), wrongType: WRONG(5, {}, []), ...OPTIONAL },
  {
    path: 'logit_bias',
    on: CHAT,
    presets: ALL,
    unread: true,
    good: SAME({}, { 50256: -100, 7: 0.5 }),
    wrongType: [
      ['x', TYPE],
      [[], TYPE],
      [{ 5: 'x' }, TYPE, 'logit_bias.5'],
      [{ 5: null }, MISSING, 'logit_bias.5'],
    ],
    ...OPTIONAL,
  },
  {
    path: 'logit_bias',
    on: TEXT,
    good: SAME({}, { 50256: -100, 7: 0.5 }),
    wrongType: [
      ['x', TYPE],
      [[], TYPE],
      [{ 5: 'x' }, TYPE, 'logit_bias.5'],
    ],
    ...OPTIONAL,
  },
  {
    path: 'logprobs',
    on: CHAT,
    presets: ALL,
    unread: true,
    good: SAME(true, false),
    wrongType: WRONG('yes', 1, {}),
    gated: [[true, 'unsupported_parameter']],
    ungated: SAME(false),
    ...OPTIONAL,
  },
  {
    path: 'top_logprobs',
    on: CHAT,
    presets: ALL,
    unread: true,
    beside: { logprobs: true },
    good: SAME(0, 1, 20),
    wrongType: WRONG('1', 1.5, true),
    below: [[-1, 'integer_below_min_value']],
    above: [[21, 'integer_above_max_value']],
    ...OPTIONAL,
  },
  { path: 'top_logprobs', on: CHAT, good: SAME(0), above: [[5, VALUE]] },
  { path: 'top_logprobs', on: TEXT, good: [[0, ABSENT]], above: [[5, VALUE]] },
];

const FUNCTION = { beside: { tools: [TOOL] }, on: CHAT, presets: ALL, unread: true } satisfies Partial<Field>;
const TOOLS: readonly Field[] = [
  {
    path: 'tools',
    on: CHAT,
    presets: ALL,
    unread: true,
    good: [[[TOOL]], [[{ type: 'function', function: { name: 'other' } }, TOOL]]],
    wrongType: WRONG('x', {}, 5),
    gated: [[[TOOL], 'unsupported_parameter']],
    ungated: [[[], ABSENT]],
    ...OPTIONAL,
  },
  { path: 'tools', on: CHAT, presets: SINGLE, good: [[[], ABSENT]] },
  { ...FUNCTION, path: 'tools[0]', good: SAME(TOOL), wrongType: WRONG('x', 5, []) },
  {
    ...FUNCTION,
    path: 'tools[0].type',
    good: SAME('function'),
    wrongType: [
      [5, TYPE],
      ['web_search', VALUE],
      [ABSENT, MISSING],
    ],
  },
  {
    ...FUNCTION,
    path: 'tools[0].function',
    good: SAME({ name: 'f' }),
    wrongType: [
      ['f', TYPE],
      [[], TYPE],
      [ABSENT, MISSING],
    ],
  },
  {
    ...FUNCTION,
    path: 'tools[0].function.name',
    good: SAME('f'),
    wrongType: [
      [5, TYPE],
      [{}, TYPE],
      [ABSENT, MISSING],
    ],
  },
  { ...FUNCTION, path: 'tools[0].function.description', good: SAME('Looks.', ''), wrongType: WRONG(5, {}) },
  {
    ...FUNCTION,
    path: 'tools[0].function.parameters',
    good: SAME({}, { type: 'object', properties: { at: { type: 'integer' } } }),
    wrongType: WRONG('x', 5, []),
  },
  { ...FUNCTION, path: 'tools[0].function.strict', good: SAME(true, false), wrongType: WRONG('true', 1) },
  { path: 'tools[0].function.name', on: CHAT, beside: { tools: [TOOL] }, ...REQUIRED },
  { path: 'tools[0].function.description', on: CHAT, beside: { tools: [TOOL] }, ...OPTIONAL },
  { path: 'tools[0].function.parameters', on: CHAT, beside: { tools: [TOOL] }, ...OPTIONAL },
  { path: 'tools[0].function.strict', on: CHAT, beside: { tools: [TOOL] }, ...OPTIONAL },
  {
    path: 'tools[0].function.strict',
    on: CHAT,
    model: 'no-strict-tools',
    beside: { tools: [TOOL] },
    good: [
      [true, ABSENT],
      [false, ABSENT],
    ],
    ...OPTIONAL,
  },
  {
    ...FUNCTION,
    path: 'tool_choice',
    good: SAME('none', 'auto', 'required', NAMED),
    wrongType: [
      [5, TYPE],
      [[], TYPE],
      ['always', VALUE],
      [{}, MISSING, 'tool_choice.type'],
      [{ type: 'tool', function: { name: 'look' } }, VALUE, 'tool_choice.type'],
      [{ type: 'function' }, MISSING, 'tool_choice.function'],
      [{ type: 'function', function: {} }, MISSING, 'tool_choice.function.name'],
      [{ type: 'function', function: { name: 5 } }, TYPE, 'tool_choice.function.name'],
      [{ type: 'function', function: { name: 'unknown' } }, VALUE, 'tool_choice.function.name'],
    ],
    ...OPTIONAL,
  },
  {
    path: 'tool_choice',
    on: CHAT,
    good: [
      ['none', ABSENT],
      ['auto', ABSENT],
    ],
    wrongType: [
      ['required', VALUE],
      [NAMED, VALUE],
    ],
    ungated: [
      ['none', ABSENT],
      ['auto', ABSENT],
    ],
  },
  { ...FUNCTION, path: 'parallel_tool_calls', good: SAME(true, false), wrongType: WRONG('true', 1, {}), ...OPTIONAL },
];

/** What a model with some capabilities lacks, what its engine does its own way, and what it is not there for. */
const PARTLY_ABLE: readonly Field[] = [
  { path: 'model', on: CHAT, wrongType: [['completions-only', 'unsupported_value']] },
  { path: 'tools', on: CHAT, model: 'tools-alone', good: SAME([TOOL]) },
  {
    path: 'tool_choice',
    on: CHAT,
    model: 'tools-alone',
    beside: { tools: [TOOL] },
    good: SAME('none', 'auto', NAMED),
    wrongType: [['required', 'unsupported_value']],
    ...OPTIONAL,
  },
  {
    path: 'parallel_tool_calls',
    on: CHAT,
    model: 'tools-alone',
    beside: { tools: [TOOL] },
    good: SAME(true),
    wrongType: [[false, 'unsupported_parameter']],
    ...OPTIONAL,
  },
  { path: 'parallel_tool_calls', on: CHAT, model: 'tools-alone', good: [[false, ABSENT]], ...OPTIONAL },
  {
    path: 'response_format.type',
    on: CHAT,
    model: 'tools-alone',
    beside: { response_format: SCHEMA },
    good: SAME('text', 'json_object'),
    wrongType: [['json_schema', 'unsupported_value']],
  },
  {
    path: 'messages[0].content[0].type',
    on: CHAT,
    model: 'tools-alone',
    beside: PICTURE,
    wrongType: [['image_url', 'unsupported_value']],
  },
  { path: 'n', on: BOTH, model: 'ollama-served', good: SAME(1), above: [[2, 'unsupported_value']], ...OPTIONAL },
  {
    path: 'max_tokens',
    on: BOTH,
    model: 'ollama-served',
    beside: { messages: [{ role: 'user', content: 'x'.repeat(8000) }], prompt: 'x'.repeat(8000) },
    good: SAME(1000),
    above: [[32000, 'context_length_exceeded', PROMPT]],
  },
  {
    path: 'messages[0].role',
    on: CHAT,
    model: 'developer-passes',
    beside: { messages: [USER] },
    good: SAME('developer', 'system'),
  },
];

const FORMAT = { on: CHAT, presets: ALL, unread: true } satisfies Partial<Field>;
const FORMATS: readonly Field[] = [
  {
    ...FORMAT,
    path: 'response_format',
    good: SAME({ type: 'text' }, { type: 'json_object' }, SCHEMA),
    wrongType: [
      ['json', TYPE],
      [[], TYPE],
      [{}, MISSING, 'response_format.type'],
      [{ type: 'json_schema' }, MISSING, 'response_format.json_schema'],
      [{ type: 'json_schema', json_schema: null }, MISSING, 'response_format.json_schema'],
    ],
    gated: [
      [{ type: 'json_object' }, 'unsupported_value', 'response_format.type'],
      [SCHEMA, 'unsupported_value', 'response_format.type'],
    ],
    ungated: SAME({ type: 'text' }),
    ...OPTIONAL,
  },
  {
    ...FORMAT,
    path: 'response_format.type',
    beside: { response_format: SCHEMA },
    good: SAME('json_schema', 'json_object', 'text'),
    wrongType: [
      [5, TYPE],
      ['xml', VALUE],
      ['grammar', VALUE],
    ],
  },
  {
    ...FORMAT,
    path: 'response_format.json_schema',
    beside: { response_format: SCHEMA },
    good: SAME({ name: 'answer' }, SCHEMA.json_schema),
    wrongType: WRONG('x', 5, []),
  },
  {
    ...FORMAT,
    path: 'response_format.json_schema.name',
    beside: { response_format: SCHEMA },
    good: SAME('answer'),
    wrongType: [
      [5, TYPE],
      [ABSENT, MISSING],
    ],
  },
  {
    ...FORMAT,
    path: 'response_format.json_schema.schema',
    beside: { response_format: SCHEMA },
    good: SAME({}, { type: 'object' }),
    wrongType: WRONG('x', 5, []),
  },
  {
    ...FORMAT,
    path: 'response_format.json_schema.strict',
    beside: { response_format: SCHEMA },
    good: SAME(true, false),
    wrongType: WRONG('true', 1),
  },
  { path: 'response_format.type', on: CHAT, beside: { response_format: SCHEMA }, ...REQUIRED },
  { path: 'response_format.json_schema.name', on: CHAT, beside: { response_format: SCHEMA }, ...REQUIRED },
  { path: 'response_format.json_schema.schema', on: CHAT, beside: { response_format: SCHEMA }, ...OPTIONAL },
  { path: 'response_format.json_schema.strict', on: CHAT, beside: { response_format: SCHEMA }, ...OPTIONAL },
];

const SWITCH = 'chat_template_kwargs.enable_thinking';
const SWITCHED: readonly Good[] = [
  ['none', false],
  ['low', true],
  ['medium', true],
  ['high', true],
  ['minimal', false],
  ['HIGH', false],
  ['', false],
  [5, false],
  [{}, false],
];
const REASONING: readonly Field[] = [
  {
    path: 'reasoning_effort',
    on: CHAT,
    good: [['none'], ['low'], ['medium'], ['high'], ['minimal', 'none'], ['', 'none'], [5, 'none'], [true, 'none']],
    ...OPTIONAL,
  },
  { path: 'reasoning_effort', on: CHAT, presets: ['boardwalk'], sentAt: SWITCH, good: SWITCHED, ...OPTIONAL },
  {
    path: 'reasoning_effort',
    on: CHAT,
    presets: ['springboards'],
    sentAt: SWITCH,
    good: SWITCHED,
    null: { sent: false },
  },
  {
    path: 'reasoning_effort',
    on: CHAT,
    presets: ['boole'],
    good: [
      ['low', ABSENT],
      [5, ABSENT],
    ],
    ...OPTIONAL,
  },
  {
    path: 'reasoning.effort',
    on: CHAT,
    beside: { reasoning: {} },
    sentAt: 'reasoning_effort',
    good: [['none'], ['low'], ['medium'], ['high'], ['minimal', 'none'], [5, 'none']],
    ...OPTIONAL,
  },
  {
    path: 'reasoning.effort',
    on: CHAT,
    presets: ['springboards'],
    beside: { reasoning: {} },
    sentAt: SWITCH,
    good: SWITCHED,
    null: { sent: false },
  },
  {
    path: 'reasoning',
    on: CHAT,
    presets: ALL,
    good: [
      [{}, ABSENT],
      [{ effort: 'low' }, ABSENT],
      [{ summary: 'auto' }, ABSENT],
    ],
    ...OPTIONAL,
  },
  {
    path: 'chat_template_kwargs',
    on: CHAT,
    presets: ['none', 'boardwalk', 'boole'],
    good: SAME({}, { enable_thinking: false, any: { thing: [1, null] } }),
    wrongType: WRONG('x', 5, []),
    ...OPTIONAL,
  },
  {
    path: 'chat_template_kwargs',
    on: CHAT,
    presets: ['springboards'],
    good: [[{ enable_thinking: true }], [{ a: null }, { a: null, enable_thinking: false }]],
    wrongType: WRONG('x', 5, []),
    null: { sent: { enable_thinking: false } },
  },
];

/** The whole table. */
export const FIELD_TABLE: readonly Field[] = [
  ...MODEL_AND_MESSAGES,
  ...PROMPTS,
  ...STREAM,
  ...LIMITS,
  ...SAMPLING,
  ...TOOLS,
  ...PARTLY_ABLE,
  ...FORMATS,
  ...REASONING,
];
