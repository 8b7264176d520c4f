// Streams cut anywhere: whatever way an engine's bytes arrive, the client gets the same text (SPEC §7). Captures of a
// real server and streams shaped after what other engines do, cut at every byte where they are small; the rest byte by
// byte, around every event border and at seeded places (everywhere with TURNPIKE_DEEP).

import { readdirSync, readFileSync } from 'node:fs';

import { describe, expect, it } from 'vitest';

import { createByteBudget } from '../../src/gateway/byte-budget.ts';
import { buildLastText, createStreamTranslation, readTranslated } from '../../src/gateway/stream-translation.ts';
import { createTextReader } from '../../src/gateway/text-reader.ts';
import { chatCompletions } from '../../src/openai/chat-completions.ts';
import { type AnswerContext, type Endpoint } from '../../src/openai/endpoint.ts';
import { responses } from '../../src/openai/responses.ts';
import { textCompletions } from '../../src/openai/text-completions.ts';
import { createSeededRandom } from '../core/seeded-random.ts';
import { buildContext, buildResponsesContext } from '../openai/build-context.ts';
import { parsePublishedResponses } from '../openai/published-responses.ts';
import { parsePublishedStream } from '../openai/published-schema.ts';

const SMALL_BYTES = 4096;
const SEEDED_CUTS = 500;
const DEEP = process.env['TURNPIKE_DEEP'] !== undefined;
const FOLDER = new URL('../fixtures/llama-server/', import.meta.url);

/** Streams that cannot be captured here, shaped after WIRE's facts about the engines they are named for. */
const SHAPED: Readonly<Record<string, string>> = {
  'vLLM: continuous usage, emoji, [DONE]': [
    '{"id":"c","object":"chat.completion.chunk","created":5,"model":"m","choices":[{"index":0,"delta":{"role":"assistant","content":""},"finish_reason":null}],"usage":{"prompt_tokens":7,"total_tokens":7,"completion_tokens":0}}',
    '{"id":"c","object":"chat.completion.chunk","created":5,"model":"m","choices":[{"index":0,"delta":{"content":"é日本👩‍👩‍👧"},"finish_reason":null}],"usage":{"prompt_tokens":7,"total_tokens":8,"completion_tokens":1}}',
    '{"id":"c","object":"chat.completion.chunk","created":5,"model":"m","choices":[{"index":0,"delta":{"reasoning":"hm"},"finish_reason":"stop"}],"usage":{"prompt_tokens":7,"total_tokens":9,"completion_tokens":2}}',
    '{"id":"c","object":"chat.completion.chunk","created":5,"model":"m","choices":[],"usage":{"prompt_tokens":7,"total_tokens":9,"completion_tokens":2}}',
    '[DONE]',
  ]
    .map((data) => `data: ${data}\n\n`)
    .join(''),
  'TGI: empty id, comments, no last line breaks': [
    ': ping',
    '',
    'data:{"id":"","created":1,"model":"m","choices":[{"index":0,"delta":{"role":"assistant","content":"a"},"finish_reason":null}],"usage":null}',
    '',
    'event: message',
    'data: {"id":"","created":2,"model":"m",',
    'data: "choices":[{"index":0,"delta":{"role":"assistant","content":"b"},"finish_reason":"eos_token"}]}',
    '',
    'data: [DONE]',
  ].join('\n'),
  'SGLang: an error in mid-stream': [
    '{"id":"c","choices":[{"index":0,"delta":{"role":"assistant","content":""},"finish_reason":null}]}',
    '{"id":"c","choices":[{"index":0,"delta":{"content":"x"},"finish_reason":null}]}',
    '{"error":{"object":"error","message":"boom","type":"InternalServerError","param":null,"code":500}}',
    '[DONE]',
  ]
    .map((data) => `data: ${data}\n\n`)
    .join(''),
};

/** Who asked for a stream: responses have theirs from chat, or from an engine's own events. */
type Kind = 'chat' | 'text' | 'responses' | 'native';
type Fixture = { readonly name: string; readonly bytes: Uint8Array; readonly kind: Kind };

const ENDPOINTS: Readonly<Record<Kind, readonly [Endpoint, AnswerContext]>> = {
  chat: [chatCompletions, buildContext()],
  text: [textCompletions, buildContext()],
  responses: [responses, buildResponsesContext()],
  native: [responses, buildResponsesContext({ entry: { responses: 'native' } })],
};

function toKinds(name: string): readonly Kind[] {
  if (name.startsWith('responses')) return ['native'];
  return name.startsWith('completions') ? ['text'] : ['chat', 'responses'];
}

/** Whether a stream that held to the published schema ended well; throws at one that did not hold. */
function endedWell(text: string, kind: Kind): boolean {
  if (kind === 'chat' || kind === 'text') {
    const { chunks, error } = parsePublishedStream(text, kind);
    expect(chunks.length).toBeGreaterThan(0);
    return error === null;
  }
  return parsePublishedResponses(text).response.status !== 'failed';
}

const encoder = new TextEncoder();
const captures = readdirSync(FOLDER)
  .filter((name) => name.includes('-stream'))
  .map((name) => ({ name, text: readFileSync(new URL(name, FOLDER), 'utf8') }));
const streams = [...captures, ...Object.entries(SHAPED).map(([name, text]) => ({ name, text }))];

/** The endings of SPEC §7's list; a capture as it came has LF. */
const ENDINGS = { LF: '\n', CRLF: '\r\n', CR: '\r' } as const;

const fixtures: readonly Fixture[] = streams.flatMap(({ name, text }) =>
  Object.entries(ENDINGS).flatMap(([ending, mark]) =>
    // How a stream is framed is the same for all that is told of it: once is enough for the second telling.
    toKinds(name)
      .slice(0, ending === 'LF' ? 2 : 1)
      .map((kind) => ({
        name: `${name}, ${ending}, ${kind}`,
        bytes: encoder.encode(text.replaceAll('\n', mark)),
        kind,
      })),
  ),
);

/** What the client gets when the bytes arrive in these pieces; `isParsed`: each event is parsed, none is copied. */
async function relay(pieces: readonly Uint8Array[], kind: Kind, isParsed = false): Promise<string> {
  const [endpoint, context] = ENDPOINTS[kind];
  const whole = endpoint.createTranslator(context);
  const translator = isParsed ? { ...whole, pushAlike: () => null } : whole;
  const rest = [...pieces].toReversed();
  const body = new ReadableStream<Uint8Array>({
    pull(controller) {
      const piece = rest.pop();
      if (piece === undefined) controller.close();
      else controller.enqueue(piece);
    },
  });
  const reader = createTextReader(body);
  const translation = createStreamTranslation(translator, 4 * 1024 * 1024, createByteBudget(Infinity).open());
  let text = '';
  for (;;) {
    const batch = await readTranslated(reader, translation);
    text += batch.text;
    if (batch.end === null) continue;
    return text + buildLastText(batch.end, translator);
  }
}

function cutAt(bytes: Uint8Array, at: number): readonly Uint8Array[] {
  return [bytes.subarray(0, at), bytes.subarray(at)].filter((piece) => piece.length > 0);
}

/** Where a fixture is cut in two. */
function chooseCuts({ name, bytes }: Fixture): readonly number[] {
  const everywhere = Array.from({ length: bytes.length }, (_, at) => at);
  if (DEEP || bytes.length <= SMALL_BYTES) return everywhere;
  const borders = everywhere.filter((at) => bytes[at - 1] === 0x0a || bytes[at - 1] === 0x0d);
  const random = createSeededRandom(name.length);
  const seeded = Array.from({ length: SEEDED_CUTS }, () => random.int(0, bytes.length - 1));
  return [...new Set([...borders.flatMap((at) => [at - 1, at, at + 1]), ...seeded])];
}

describe('§7 any framing in, the same text out', () => {
  it('there are captures of every endpoint, small and large', () => {
    expect(captures.length).toBeGreaterThan(8);
    expect(fixtures.some(({ bytes }) => bytes.length > SMALL_BYTES)).toBe(true);
    for (const kind of ['text', 'responses', 'native']) {
      expect(fixtures.filter((fixture) => fixture.kind === kind).length).toBeGreaterThanOrEqual(6);
    }
  });

  it.each(fixtures.map((fixture) => [fixture.name, fixture] as const))(
    '§7 %s: cut in two, and byte by byte',
    async (name, fixture) => {
      const { bytes, kind } = fixture;
      const whole = await relay([bytes], kind);
      expect(await relay([bytes], kind, true)).toBe(whole);
      expect(endedWell(whole, kind), 'an error where the engine erred or was left, and only there').toBe(
        !/SGLang|cancelled/.test(name),
      );
      expect(
        await relay(
          Array.from(bytes, (byte) => Uint8Array.of(byte)),
          kind,
        ),
      ).toBe(whole);
      for (const at of chooseCuts(fixture)) {
        const cut = await relay(cutAt(bytes, at), kind);
        if (cut !== whole) expect.fail(`cut at ${at}: ${cut}`);
      }
    },
    DEEP ? 600_000 : 60_000,
  );

  it.each(streams.map(({ name, text }) => [name, text] as const))(
    '§7 %s: the ending makes no difference',
    async (name, text) => {
      for (const kind of toKinds(name)) {
        const outputs = Object.values(ENDINGS).map((mark) =>
          relay([encoder.encode(text.replaceAll('\n', mark))], kind),
        );
        const [first, ...others] = await Promise.all(outputs);
        for (const other of others) expect(other).toBe(first);
        expect(await relay([encoder.encode(`\ufeff${text}`)], kind)).toBe(first);
      }
    },
  );

  it.each(streams.map(({ name, text }) => [name, text] as const))(
    '§7 %s: what left the gateway goes through it unchanged',
    async (name, text) => {
      const [kind = 'chat'] = toKinds(name);
      const once = await relay([encoder.encode(text)], kind);
      if (once.includes('"error":{')) return;
      expect(await relay([encoder.encode(once)], kind)).toBe(once);
    },
  );
});
