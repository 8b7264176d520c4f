// The rows of the fault table about counts, and those of a client that does not stream: engines that count in the wrong
// place, twice, or not at all; JSON answers that are none. Data only.

import {
  answer,
  answered,
  begin,
  count,
  cut,
  cutCharacter,
  DEADLINES,
  errorEvent,
  hold,
  refused,
  type Row,
  send,
  type Source,
  type Tokens,
} from './fault-rows.ts';
import { DONE } from './scripted-upstream.ts';
import { type EventParts } from './endpoint-wire.ts';

const { HEADERS_DEADLINE_MS, FIRST_EVENT_DEADLINE_MS, SILENCE_DEADLINE_MS, TOTAL_DEADLINE_MS } = DEADLINES;
const A = { content: 'a' };
const B = { content: 'b' };
const END = { finish: 'stop' };
const ALL = count(3, 2);
const ZERO = count(0, 0);

/** The events of an engine that goes wrong nowhere but in its counts. */
const COUNTS: readonly [string, readonly EventParts[], Source, Tokens][] = [
  ['on a chunk of its own', [A, B, END, { usage: ALL }], 'engine', [3, 2]],
  ['on the finish', [A, B, { ...END, usage: ALL }], 'engine', [3, 2]],
  [
    'on every chunk',
    [
      { ...A, usage: count(3, 1) },
      { ...B, usage: ALL },
      { ...END, usage: ALL },
    ],
    'engine',
    [3, 2],
  ],
  ['on every chunk and alone', [{ ...A, usage: count(3, 1) }, B, END, { usage: ALL }], 'engine', [3, 2]],
  ['first, before any word', [{ usage: ALL }, A, B, END], 'engine_running', [3, 2]],
  ['on the first chunk only', [{ ...A, usage: count(3, 1) }, B, END], 'engine_running', [3, 1]],
  ['twice, the last one holds', [A, B, END, { usage: count(3, 1) }, { usage: ALL }], 'engine', [3, 2]],
  ['and then null', [A, B, END, { usage: ALL }, { usage: null }], 'engine', [3, 2]],
  [
    'null on every chunk',
    [
      { ...A, usage: null },
      { ...B, usage: null },
      { ...END, usage: null },
    ],
    'estimated',
    [null, 2],
  ],
  ['nowhere', [A, B, END], 'estimated', [null, 2]],
  [
    'zero on every chunk, then counted',
    [{ ...A, usage: ZERO }, { ...B, usage: ZERO }, END, { usage: ALL }],
    'engine',
    [3, 2],
  ],
  ['zero until the finish', [{ ...A, usage: ZERO }, { ...B, usage: ZERO }, END], 'estimated', [null, 2]],
  ['zero: zero is zero', [A, B, END, { usage: ZERO }], 'engine', [0, 0]],
  ['without a total', [A, B, END, { usage: { prompt_tokens: 3, completion_tokens: 2 } }], 'engine', [3, 2]],
  ['without a completion', [A, B, END, { usage: { prompt_tokens: 3, total_tokens: 5 } }], 'engine', [3, 2]],
  ['negative, or text', [A, B, END, { usage: { prompt_tokens: -3, completion_tokens: '2' } }], 'estimated', [null, 2]],
];

const streamed = COUNTS.map(([where, events, source, tokens]): Row => ({
  name: `usage ${where}`,
  ask: 'stream',
  play: send((wire) => events.map((event) => wire.event(event)).join('') + DONE),
  client: answered('ab'),
  source,
  tokens,
}));

/** The same, where the client gets it as JSON. */
const assembled = COUNTS.map(([where, events, source, tokens]): Row => ({
  name: `usage ${where}, put together`,
  ask: 'assembled',
  play: send((wire) => events.map((event) => wire.event(event)).join('') + DONE),
  client: answered('ab'),
  source,
  tokens,
}));

const WHOLE: readonly [string, unknown, Source, Tokens][] = [
  ['counted', ALL, 'engine', [3, 2]],
  ['null', null, 'estimated', [null, 1]],
  ['absent', undefined, 'estimated', [null, 1]],
  ['zero', ZERO, 'engine', [0, 0]],
  ['negative', { prompt_tokens: -3, completion_tokens: -2 }, 'estimated', [null, 1]],
];
const whole = WHOLE.map(([what, usage, source, tokens]): Row => ({
  name: `JSON, usage ${what}`,
  ask: 'json',
  play: answer(200, (wire) => wire.answer('ab', { usage })),
  client: answered('ab'),
  source,
  tokens,
}));

const json: readonly Omit<Row, 'ask'>[] = [
  {
    name: 'JSON, 200 with an error',
    play: answer(200, () => ({ error: { message: 'x' } })),
    client: refused(502, 'upstream_error'),
  },
  {
    name: 'JSON, 200 with a 400',
    play: answer(200, () => ({ error: { message: 'bad', code: 400 } })),
    client: refused(400, null),
  },
  { name: 'JSON, 200 with {}', play: answer(200, () => ({})), client: refused(502, 'upstream_error') },
  {
    name: 'JSON, no choices',
    play: answer(200, () => ({ choices: [], usage: ALL })),
    client: refused(502, 'upstream_error'),
  },
  { name: 'JSON, an event stream', play: send((wire) => begin(wire) + DONE), client: refused(502, 'upstream_error') },
  {
    name: 'JSON, cut',
    play: cut('reset', (wire) => JSON.stringify(wire.answer('ab')).slice(0, -9), 'application/json'),
    client: refused(502, 'upstream_error'),
  },
  {
    name: 'JSON, cut in the middle of a character',
    play: cut('end', (wire) => cutCharacter(JSON.stringify(wire.answer('日本'))), 'application/json'),
    client: refused(502, 'upstream_error'),
  },
  {
    name: 'JSON, no headers',
    play: () => undefined,
    client: refused(502, 'upstream_timeout'),
    overMs: [TOTAL_DEADLINE_MS, TOTAL_DEADLINE_MS + 1500],
  },
  {
    name: 'JSON, half an answer and silence',
    play: (exchange) => {
      exchange.head(200, 'application/json');
      exchange.write('{"id":"x",');
    },
    client: refused(502, 'upstream_timeout'),
    overMs: [TOTAL_DEADLINE_MS, TOTAL_DEADLINE_MS + 1500],
  },
];

const running = { source: 'engine_running', tokens: [3, 2] } as const;
const together: readonly Omit<Row, 'ask'>[] = [
  { name: 'put together, error first', play: hold(() => errorEvent(500)), client: refused(502, 'upstream_error') },
  { name: 'put together, a 400 first', play: hold(() => errorEvent(400, 'bad')), client: refused(400, null) },
  {
    name: 'put together, error in the middle',
    play: hold((wire) => begin(wire) + errorEvent(500)),
    client: refused(502, 'upstream_error'),
    ...running,
  },
  {
    name: 'put together, cut in the middle of a character',
    play: cut('reset', (wire) => cutCharacter(begin(wire) + wire.event({ content: '日' }))),
    client: refused(502, 'upstream_error'),
    ...running,
  },
  {
    name: 'put together, a clean end and no finish',
    play: send(begin),
    client: refused(502, 'upstream_error'),
    ...running,
  },
  {
    name: 'put together, a clean end without [DONE], finished',
    play: send((wire) => begin(wire) + wire.event({ ...END, usage: ALL })),
    client: answered('ab'),
    source: 'engine',
    tokens: [3, 2],
  },
  {
    name: 'put together, a whole JSON answer',
    play: answer(200, (wire) => wire.answer('ab', { usage: ALL })),
    client: answered('ab'),
    source: 'engine',
    tokens: [3, 2],
  },
  {
    name: 'put together, no headers',
    play: () => undefined,
    client: refused(502, 'upstream_timeout'),
    overMs: [HEADERS_DEADLINE_MS, FIRST_EVENT_DEADLINE_MS],
  },
  {
    name: 'put together, no event',
    play: hold(() => ''),
    client: refused(502, 'upstream_timeout'),
    overMs: [FIRST_EVENT_DEADLINE_MS, TOTAL_DEADLINE_MS],
  },
  {
    name: 'put together, silence',
    play: hold(begin),
    client: refused(502, 'upstream_timeout'),
    ...running,
    overMs: [SILENCE_DEADLINE_MS, TOTAL_DEADLINE_MS],
  },
];

/** Counts, streamed and put together; JSON answers; JSON answers of engines that were asked to stream. */
export const COUNT_FAULTS: readonly Row[] = [
  ...streamed,
  ...assembled,
  ...whole,
  ...json.map((row): Row => ({ ...row, ask: 'json' })),
  ...together.map((row): Row => ({ ...row, ask: 'assembled' })),
];
