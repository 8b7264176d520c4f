// The rows of the fault table for a client that streams: errors, cuts, ends, answers of the wrong kind, silence. Data only.

import {
  answer,
  answered,
  begin,
  broken,
  count,
  cut,
  cutCharacter,
  DEADLINES,
  errorEvent,
  flow,
  hold,
  late,
  ping,
  refused,
  type Row,
  send,
} from './fault-rows.ts';
import { DONE } from './scripted-upstream.ts';

const running = { source: 'engine_running', tokens: [3, 2] } as const;
const estimated = (output: number) => ({ source: 'estimated', tokens: [null, output] }) as const;
const stop = { finish: 'stop' };
const { HEADERS_DEADLINE_MS, FIRST_EVENT_DEADLINE_MS, SILENCE_DEADLINE_MS, TOTAL_DEADLINE_MS } = DEADLINES;

const errors: readonly Omit<Row, 'ask'>[] = [
  { name: 'error first', play: hold(() => errorEvent(500)), client: refused(502, 'upstream_error') },
  { name: 'error first, a 400', play: hold(() => errorEvent(400, 'bad regex')), client: refused(400, null) },
  { name: 'error first, a 503', play: hold(() => errorEvent(503)), client: refused(503, 'server_is_overloaded') },
  {
    name: 'error first, [DONE] behind it',
    play: send(() => errorEvent(500) + DONE),
    client: refused(502, 'upstream_error'),
  },
  {
    name: 'error first, after the hold',
    play: late(hold(() => errorEvent(500))),
    client: broken('upstream_error', ''),
  },
  {
    // A 200 is out, but nothing has been said: what the engine refuses is told as such.
    name: 'error first, a 400, after the hold',
    play: late(hold(() => errorEvent(400, 'bad regex'))),
    client: broken(null, ''),
  },
  {
    name: 'error in the middle',
    play: hold((wire) => begin(wire) + errorEvent(500)),
    client: broken('upstream_error', 'ab', [3, 2]),
    ...running,
  },
  {
    name: 'error in the middle, a 400, [DONE] behind it',
    play: send((wire) => begin(wire) + errorEvent(400, 'bad regex') + DONE),
    client: broken('upstream_error', 'ab', [3, 2]),
    ...running,
  },
  {
    name: 'error in the middle, beside choices',
    play: hold((wire) => begin(wire) + wire.event({ content: 'c', more: { error: { message: 'boom' } } })),
    client: broken('upstream_error', 'ab', [3, 2]),
    ...running,
  },
  {
    name: 'error behind the finish reason',
    play: hold((wire) => begin(wire) + wire.event({ ...stop, usage: count(3, 2) }) + errorEvent(500)),
    client: broken('upstream_error', 'ab', [3, 2]),
    source: 'engine',
    tokens: [3, 2],
  },
  { name: 'garbage first', play: hold(() => 'data: <html>\n\n'), client: refused(502, 'upstream_error') },
  {
    name: 'garbage in the middle',
    play: hold((wire) => `${begin(wire)}data: <html>\n\n`),
    client: broken('upstream_error', 'ab', [3, 2]),
    ...running,
  },
  {
    name: 'finish_reason abort',
    play: hold((wire) => begin(wire) + wire.event({ finish: 'abort' })),
    client: broken('upstream_error', 'ab', [3, 2]),
    ...running,
  },
];

const lost = (write: string): string => write.slice(0, -9);
const cuts: readonly Omit<Row, 'ask'>[] = (['end', 'reset'] as const).flatMap((how) => [
  {
    name: `${how} in the middle of an event`,
    play: cut(how, (wire) => begin(wire) + lost(wire.event({ content: 'lost', usage: count(3, 3) }))),
    client: broken('upstream_disconnected', 'ab', [3, 2]),
    ...running,
  },
  {
    name: `${how} in the middle of a character`,
    play: cut(how, (wire) => cutCharacter(begin(wire) + wire.event({ content: 'lost 日本', usage: count(3, 3) }))),
    client: broken('upstream_disconnected', 'ab', [3, 2]),
    ...running,
  },
  {
    name: `${how} between events, nothing counted`,
    model: 'uncounted',
    play: cut(how, (wire) => wire.event({ content: 'a' }) + wire.event({ content: 'b' })),
    client: broken('upstream_disconnected', 'ab'),
    ...estimated(2),
  },
  {
    name: `${how} behind a comment, before any event`,
    play: cut(how, () => ': ping\n\n'),
    client: refused(502, 'upstream_error'),
  },
  {
    name: `${how} after the hold, before any event`,
    play: late(cut(how, () => ': ping\n\n')),
    client: broken('upstream_disconnected', ''),
  },
  {
    name: `${how} behind an empty delta (Ollama’s silent error)`,
    play: cut(how, (wire) => wire.event({ content: '' })),
    client: broken('upstream_disconnected', ''),
  },
]);

const ends: readonly Omit<Row, 'ask'>[] = [
  {
    name: 'a clean end without [DONE], finished',
    play: send((wire) => begin(wire) + wire.event({ ...stop, usage: count(3, 2) })),
    client: answered('ab'),
    source: 'engine',
    tokens: [3, 2],
  },
  {
    name: 'a clean end without [DONE] or the last line breaks, finished',
    play: send((wire) => (begin(wire) + wire.event({ finish: 'length', usage: count(3, 2) })).trimEnd()),
    client: answered('ab', 'length'),
    source: 'engine',
    tokens: [3, 2],
  },
  {
    name: '[DONE] without a finish reason',
    play: send((wire) => begin(wire) + DONE),
    client: answered('ab'),
    ...running,
  },
  { name: '[DONE] alone', play: hold(() => DONE), client: refused(502, 'upstream_error') },
  { name: '[DONE] alone, after the hold', play: late(hold(() => DONE)), client: broken('upstream_error', '') },
  {
    name: 'an empty delta, the finish, [DONE]',
    play: send((wire) => wire.event({ content: '' }) + wire.event(stop) + DONE),
    client: answered(''),
    ...estimated(1),
  },
];

const kinds: readonly Omit<Row, 'ask'>[] = [
  {
    name: '200 with an error in JSON',
    play: answer(200, () => ({ error: { message: 'x' } })),
    client: refused(502, 'upstream_error'),
  },
  {
    name: '200 with a 400 in JSON',
    play: answer(200, () => ({ error: { message: 'bad regex', code: 400 } })),
    client: refused(400, null),
  },
  { name: '200 with {}', play: answer(200, () => ({})), client: refused(502, 'upstream_error') },
  {
    name: 'a whole JSON answer',
    play: answer(200, (wire) => wire.answer('ab', { usage: count(3, 2) })),
    client: answered('ab'),
    source: 'engine',
    tokens: [3, 2],
  },
  {
    name: 'a whole JSON answer, nothing counted',
    play: answer(200, (wire) => wire.answer('ab')),
    client: answered('ab'),
    ...estimated(1),
  },
  {
    name: 'half a JSON answer',
    play: cut('end', () => '{"id":"x","choices":[{"index":0,', 'application/json'),
    client: refused(502, 'upstream_error'),
  },
];

const silences: readonly Omit<Row, 'ask'>[] = [
  {
    name: 'no headers',
    play: () => undefined,
    client: refused(502, 'upstream_timeout'),
    overMs: [HEADERS_DEADLINE_MS, FIRST_EVENT_DEADLINE_MS],
  },
  {
    name: 'headers and no event',
    play: hold(() => ''),
    client: broken('upstream_timeout', ''),
    overMs: [FIRST_EVENT_DEADLINE_MS, TOTAL_DEADLINE_MS],
  },
  {
    name: 'headers and comments, no event',
    play: ping(() => ''),
    client: broken('upstream_timeout', ''),
    overMs: [FIRST_EVENT_DEADLINE_MS, TOTAL_DEADLINE_MS],
  },
  {
    name: 'silence behind events',
    play: hold(begin),
    client: broken('upstream_timeout', 'ab', [3, 2]),
    ...running,
    overMs: [SILENCE_DEADLINE_MS, TOTAL_DEADLINE_MS],
  },
  {
    name: 'nothing but comments behind events',
    play: ping(begin),
    client: broken('upstream_timeout', 'ab', [3, 2]),
    ...running,
    overMs: [SILENCE_DEADLINE_MS, TOTAL_DEADLINE_MS],
  },
  {
    name: 'silence in the middle of an event',
    play: hold((wire) => begin(wire) + lost(wire.event({ content: 'lost' }))),
    client: broken('upstream_timeout', 'ab', [3, 2]),
    ...running,
    overMs: [SILENCE_DEADLINE_MS, TOTAL_DEADLINE_MS],
  },
];

/** Every row whose text is known to the letter. */
export const STREAM_FAULTS: readonly Row[] = [...errors, ...cuts, ...ends, ...kinds, ...silences].map((row): Row => ({
  ...row,
  ask: 'stream',
}));

/** A stream that flows until its total deadline: how much it says depends on the machine. */
export const ENDLESS: Row = {
  name: 'events without an end',
  ask: 'stream',
  play: flow,
  client: broken('upstream_timeout', ''),
  overMs: [TOTAL_DEADLINE_MS, TOTAL_DEADLINE_MS + 1500],
};
