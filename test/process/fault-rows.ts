// What engines do wrong, as a table: what the engine sends, what the client gets and what the receipt says of it. Each row
// holds for every endpoint; nothing in it is asserted here.

import { type Exchange } from './scripted-upstream.ts';
import { pause } from './scripted-gateway.ts';
import { type Wire, type WireScript } from './endpoint-wire.ts';

/** The deadlines under which the rows are played: no headers ends before the hold, no event after it. */
export const DEADLINES = {
  HEADERS_DEADLINE_MS: 500,
  FIRST_EVENT_HOLD_MS: 800,
  FIRST_EVENT_DEADLINE_MS: 1700,
  SILENCE_DEADLINE_MS: 700,
  TOTAL_DEADLINE_MS: 3000,
  KEEPALIVE_MS: 150,
} as const;

/** Input and output tokens; null where the gateway estimates and only the sign is known. */
export type Tokens = readonly [input: number | null, output: number];
export type Source = 'engine' | 'engine_running' | 'estimated' | 'none';

/** What the client gets: an HTTP error, a stream that says so, or an answer. `usage` is what it is shown. */
export type Client =
  | { readonly type: 'refused'; readonly http: number; readonly code: string | null }
  | { readonly type: 'broken'; readonly code: string | null; readonly said: string; readonly usage: Tokens | null }
  | { readonly type: 'answered'; readonly said: string; readonly finish?: string };

/** One fault. */
export type Row = {
  readonly name: string;
  /** What the client asks for, and of which model: `assembled` is streamed by the engine and not to the client. */
  readonly ask: 'stream' | 'json' | 'assembled';
  readonly model?: 'counted' | 'uncounted';
  readonly play: WireScript;
  readonly client: Client;
  readonly source?: Source;
  readonly tokens?: Tokens;
  /** When it must be over, where a deadline is what ends it. */
  readonly overMs?: readonly [min: number, max: number];
};

export const refused = (http: number, code: string | null): Client => ({ type: 'refused', http, code });
export const broken = (code: string | null, said: string, usage: Tokens | null = null): Client => ({
  type: 'broken',
  code,
  said,
  usage,
});
export const answered = (said: string, finish = 'stop'): Client => ({ type: 'answered', said, finish });

export const count = (input: number, output: number): object => ({
  prompt_tokens: input,
  completion_tokens: output,
  total_tokens: input + output,
});

/** "a" and "b", each with the counts so far. */
export const begin = (wire: Wire): string =>
  wire.event({ content: 'a', usage: count(3, 1) }) + wire.event({ content: 'b', usage: count(3, 2) });

/** A stream of these events and the engine's own end. */
export const send =
  (write: (wire: Wire) => string): WireScript =>
  (exchange, wire) => {
    exchange.head(200);
    exchange.end(write(wire));
  };

/** A stream that stays open behind these events. */
export const hold =
  (write: (wire: Wire) => string): WireScript =>
  (exchange, wire) => {
    exchange.head(200);
    exchange.write(write(wire));
  };

/** A body that ends where it is cut: `how` is what becomes of the connection. */
export const cut =
  (how: 'end' | 'reset', write: (wire: Wire) => string | Uint8Array, contentType?: string): WireScript =>
  (exchange, wire) => {
    exchange.head(200, contentType);
    exchange.write(write(wire));
    setTimeout(exchange[how], 50);
  };

export const answer =
  (status: number, body: (wire: Wire) => object): WireScript =>
  (exchange, wire) => {
    exchange.head(status, 'application/json');
    exchange.end(JSON.stringify(body(wire)));
  };

/** The same, when the hold is over and the stream is committed. */
export const late =
  (script: WireScript): WireScript =>
  async (exchange, wire) => {
    exchange.head(200);
    await pause(DEADLINES.FIRST_EVENT_HOLD_MS + 150);
    await script(Object.assign(exchange, { head: () => undefined }), wire);
  };

/** Events without an end, each 50 ms. */
export const flow: WireScript = async (exchange: Exchange, wire) => {
  exchange.head(200);
  for (let sent = 1; exchange.write(wire.event({ content: 'a', usage: count(3, sent) })); sent += 1) await pause(50);
};

/** Comments without an event, each 50 ms. */
export const ping =
  (write: (wire: Wire) => string): WireScript =>
  async (exchange, wire) => {
    exchange.head(200);
    for (exchange.write(write(wire)); exchange.write(': ping\n\n');) await pause(50);
  };

/** The bytes of a text up to the middle of its last character that is not ASCII. */
export function cutCharacter(text: string): Uint8Array {
  const bytes = new TextEncoder().encode(text);
  const last = bytes.findLastIndex((byte) => byte >= 0xc0);
  if (last < 0) throw new Error(`only ASCII: ${text}`);
  return bytes.subarray(0, last + 1);
}

/** An engine's error as an event; what it says is its own affair. */
export const errorEvent = (code: number, message = 'GPU 3 at http://10.0.0.7:8000 fell over'): string =>
  `data: ${JSON.stringify({ error: { message, type: 'X', code } })}\n\n`;
