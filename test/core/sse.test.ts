// The event parser against `eventsource-parser`, on true captures and on every odd framing, at every split.

import { readFileSync } from 'node:fs';
import { createParser } from 'eventsource-parser';
import { describe, expect, test } from 'vitest';
import { createSseParser, type SseEvent } from '../../src/core/sse.ts';
import { createSeededRandom } from './seeded-random.ts';
import { countStringWork } from './string-work.ts';

const EVENT_BYTES_MAX = 4 * 1024 * 1024;

function readCapture(name: string): Buffer {
  return readFileSync(new URL(`../fixtures/llama-server/${name}.txt`, import.meta.url));
}

/** The events of a stream that arrives in these reads, the last one without a blank line included. */
function parse(reads: readonly Uint8Array[]): readonly SseEvent[] {
  const parser = createSseParser(EVENT_BYTES_MAX);
  const decoder = new TextDecoder();
  const texts = [...reads.map((read) => decoder.decode(read, { stream: true })), decoder.decode()];
  const events = texts.flatMap((text) => parser.push(text).events);
  const last = parser.end();
  return last === null ? events : [...events, last];
}

function oracle(text: string): readonly SseEvent[] {
  const events: SseEvent[] = [];
  const parser = createParser({ onEvent: ({ event, data }) => events.push({ type: event ?? '', data }) });
  parser.feed(text.replace(/^\uFEFF/, ''));
  return events;
}

function split(bytes: Uint8Array, ...cuts: readonly number[]): readonly Uint8Array[] {
  return [0, ...cuts].map((from, at) => bytes.subarray(from, cuts[at] ?? bytes.length));
}

const CAPTURES = [
  'chat-stream-stop',
  'chat-stream-cancelled',
  'chat-stream-n2',
  'chat-stream-usage',
  'chat-stream-logprobs',
  'chat-tools-parallel-stream',
  'responses-stream',
  'completions-logprobs-stream',
];
const LINE_ENDS = [
  ['LF', '\n'],
  ['CRLF', '\r\n'],
  ['CR', '\r'],
] as const;

describe.each(CAPTURES)('capture %s', (name) => {
  test.each(LINE_ENDS)('§7 %s: whole, byte by byte, at random splits: what the oracle sees', (_name, lineEnd) => {
    const text = readCapture(name).toString('utf8').replaceAll('\n', lineEnd);
    const bytes = Buffer.from(text);
    const expected = oracle(text);
    expect(expected.length).toBeGreaterThan(3);
    expect(parse([bytes])).toEqual(expected);
    expect(parse([...bytes].map((byte) => Uint8Array.of(byte)))).toEqual(expected);
    const random = createSeededRandom(bytes.length);
    for (let round = 0; round < 20; round += 1) {
      const cuts = Array.from({ length: 5 }, () => random.int(0, bytes.length)).toSorted((a, b) => a - b);
      expect(parse(split(bytes, ...cuts)), `cut at ${cuts.join(', ')}`).toEqual(expected);
    }
  });
});

/** Every oddity of framing and of UTF-8 in under 1 KiB. */
const ODD_STREAM =
  '\uFEFF: hello\n:\n\ndata: {"a":"é日本👩‍👩‍👧🙂"}\n\nevent: named\ndata:{"no":"space"}\n\ndata: {"two":\ndata:  "lines"}\n\n' +
  'id: 7\nretry: 10\n\nevent: ping\n\ndata\n\ndata:\n\nunknown: x\ndata: \uFEFFkept\n: between\ndata: [DONE] \n\n';

describe.each(LINE_ENDS)('odd framing with %s', (name, lineEnd) => {
  const text = ODD_STREAM.replaceAll('\n', lineEnd);
  const bytes = Buffer.from(text);

  test('§7 BOM, comments, no space, multi-line data, id, retry, empty data: what the oracle sees', () => {
    expect(parse([bytes])).toEqual(oracle(text));
    expect(parse([bytes])).toEqual([
      { type: '', data: '{"a":"é日本👩‍👩‍👧🙂"}' },
      { type: 'named', data: '{"no":"space"}' },
      { type: '', data: '{"two":\n "lines"}' },
      { type: '', data: '' },
      { type: '', data: '' },
      { type: '', data: '\uFEFFkept\n[DONE] ' },
    ]);
  });

  test(`§7 ${name} cut at every byte, and at every two: the same events, no U+FFFD, no phantom event`, () => {
    const expected = JSON.stringify(oracle(text));
    for (let first = 0; first <= bytes.length; first += 1) {
      if (JSON.stringify(parse(split(bytes, first))) !== expected) expect.fail(`cut at ${first}`);
      const second = Math.min(bytes.length, first + 1);
      if (JSON.stringify(parse(split(bytes, first, second))) !== expected) expect.fail(`cut at ${first}, ${second}`);
    }
  });
});

test('§7 every capture up to 4 KiB, cut at every byte: the same events', () => {
  const small = CAPTURES.map(readCapture).filter((bytes) => bytes.length <= 4096);
  expect(small.length).toBeGreaterThanOrEqual(3);
  for (const bytes of small) {
    const expected = JSON.stringify(oracle(bytes.toString('utf8')));
    for (let at = 1; at < bytes.length; at += 1) {
      if (JSON.stringify(parse(split(bytes, at))) !== expected) expect.fail(`cut at ${at}`);
    }
  }
});

describe('line ends', () => {
  const whole = [{ type: '', data: 'a' }];
  test.each<[string, readonly string[], readonly SseEvent[]]>([
    ['CRLF split between reads: no phantom event', ['data: a\r', '\n\r', '\n'], whole],
    ['CR as a line end at the end of a read', ['data: a\r', '\r', 'data: b\r\r'], [...whole, { type: '', data: 'b' }]],
    ['CRLF split, then an empty read', ['data: a\r', '', '\ndata: b\n\n'], [{ type: '', data: 'a\nb' }]],
    ['mixed line ends', ['data: a\r\ndata: b\rdata: c\n\r\n'], [{ type: '', data: 'a\nb\nc' }]],
    ['a CR, then LF LF', ['data: a\r\n\n'], whole],
    ['the last event lacks its blank line', ['data: a\n'], whole],
    ['the last event lacks both line ends', ['data: a'], whole],
    ['the last event ends in CR', ['data: a\r'], whole],
    ['nothing at all', [], []],
    ['only blank lines', ['\n\n\r\n\r'], []],
    ['an event type without data', ['event: ping\n\n'], []],
    ['a type belongs to its own event only', ['event: x\n\ndata: a\n\n'], whole],
    ['an unfinished comment', [': keep'], []],
  ])('§7 %s', (_name, reads, events) => {
    expect(parse(reads.map((read) => Buffer.from(read)))).toEqual(events);
  });

  test('§7 a sequence of UTF-8 cut off by the end becomes one U+FFFD, never a throw', () => {
    expect(parse([Buffer.from('data: a'), Uint8Array.of(0xf0, 0x9f)])).toEqual([{ type: '', data: 'a\uFFFD' }]);
  });
});

describe('bounds', () => {
  test.each<[string, readonly string[], boolean]>([
    ['a line at the bound', ['data: 78901234'], false],
    ['a line over the bound', ['data: 789012345'], true],
    ['a line that grows over it', ['data: 7', '8901', '2345'], true],
    ['lines that add up', ['data: 7\n', 'data: 89\n'], true],
    ['lines up to it', ['data: 7\n', 'data: 8\n'], false],
    ['fields that nobody reads', ['id: 123456789\n', 'ab'], true],
    ['bytes at the bound', ['data: €€12'], false],
    ['bytes over the bound', ['data: €€123'], true],
    ['bytes that grow over it', ['data: €', '€', '12', '3'], true],
    ['a pair of surrogates is four', ['data: 😀😀'], false],
    ['and over it', ['data: 😀😀1'], true],
    ['a whole event over it', ['data: 789012345\n\n'], true],
    ['many events, none too large', ['data: 12345678\n\n'.repeat(100)], false],
    ['a comment without end', [`:${'x'.repeat(20)}`], true],
  ])('§7 memory is bounded: %s', (_name, reads, overflow) => {
    const parser = createSseParser(14);
    const batches = reads.map((read) => parser.push(read));
    expect(batches.some((batch) => batch.overflow)).toBe(overflow);
    expect(batches.at(-1)?.overflow).toBe(overflow);
  });

  test.each([1, 100])('§7 what came before an event too large is delivered, nothing behind it, reads of %i', (size) => {
    const parser = createSseParser(14);
    const text = 'data: a\n\ndata: b\n\ndata: 789012345\n\ndata: c\n\n';
    const batches = (text.match(new RegExp(`[^]{1,${size}}`, 'g')) ?? []).map((read) => parser.push(read));
    expect(batches.flatMap(({ events }) => events).map(({ data }) => data)).toEqual(['a', 'b']);
    expect(batches.at(-1)?.overflow).toBe(true);
  });

  const kib = 'x'.repeat(1024);
  test.each<[string, (kibs: number) => readonly string[]]>([
    ['one event in one read', (kibs) => [`data: ${kib.repeat(kibs)}\n\n`]],
    [
      'one event in many reads',
      (kibs) => ['data: ', ...Array.from({ length: kibs * 16 }, () => 'x'.repeat(64)), '\n\n'],
    ],
    ['CR-only line ends in one read', (kibs) => ['data: x\r\r'.repeat(kibs * 128)]],
    ['LF-only line ends in one read', (kibs) => ['data: x\n\n'.repeat(kibs * 128)]],
    ['a CR far behind many LF', (kibs) => [`${'data: x\n\n'.repeat(kibs * 128)}\r`]],
    ['bare CRs', (kibs) => ['\r'.repeat(kibs * 1024)]],
  ])('§7 linear time, %s: four times the bytes, at most about four times the work', (_name, build) => {
    const [small, large] = [64, 256].map((kibs) => {
      const reads = build(kibs).map((read) => Buffer.from(read));
      return countStringWork(() => parse(reads));
    });
    expect(large! / small!).toBeLessThan(4.4);
    expect(large!).toBeLessThan(8 * 256 * 1024);
  });
});
