// The text of the bench's engine: vLLM-shaped chat events of about 150 bytes, and the order for a stream. The order
// travels in the user's message, which no gateway changes; the load generator reads the same texts back.

/** How an engine counts: usage on every event as vLLM's continuous_usage_stats has it, or in one last chunk. */
export type UsageShape = 'each' | 'end';

/** What one stream shall be. `paceMs` 0 is as fast as the reader takes it. */
export type StreamOrder = { readonly events: number; readonly paceMs: number; readonly usage: UsageShape };

/** Stands once in each counted event, as the engine writes it and as the gateway does. */
export const EVENT_MARK = '"content":" word"';
/** Stands once in a whole stream. */
export const FINISH_MARK = '"finish_reason":"stop"';
/** The last bytes of a whole stream. */
export const DONE = 'data: [DONE]\n\n';

const PROMPT_TOKENS = 12;
const HEAD = '{"id":"chatcmpl-bench","object":"chat.completion.chunk","created":1796083200,"model":"engine/m"';
const ORDER = /events=(\d+) pace_ms=(\d+) usage=(each|end)/;

/** The message that carries an order. */
export function writeOrder({ events, paceMs, usage }: StreamOrder): string {
  return `Say the word: events=${events} pace_ms=${paceMs} usage=${usage}`;
}

/** Finds the order in a request body; null when there is none. */
export function readOrder(body: string): StreamOrder | null {
  const [, events, paceMs, usage] = ORDER.exec(body) ?? [];
  if (usage !== 'each' && usage !== 'end') return null;
  return { events: Number(events), paceMs: Number(paceMs), usage };
}

/** The chunk before the first word, which names the role. */
export function writeRole(usage: UsageShape): string {
  return writeChunk('{"role":"assistant","content":""}', 'null', usage, 0);
}

/** The `count`th word. */
export function writeWord(usage: UsageShape, count: number): string {
  return writeChunk('{"content":" word"}', 'null', usage, count);
}

/** What follows `count` words: the finish, the total and [DONE], each to be written by itself. */
export function writeEnd(usage: UsageShape, count: number): readonly string[] {
  const total = `data: ${HEAD},"choices":[],"usage":${countUsage(count)}}\n\n`;
  return [writeChunk('{"content":""}', '"stop"', usage, count), total, DONE];
}

function writeChunk(delta: string, finishReason: string, usage: UsageShape, count: number): string {
  const counted = usage === 'each' ? `,"usage":${countUsage(count)}` : '';
  return `data: ${HEAD},"choices":[{"index":0,"delta":${delta},"finish_reason":${finishReason}}]${counted}}\n\n`;
}

function countUsage(count: number): string {
  return `{"prompt_tokens":${PROMPT_TOKENS},"total_tokens":${PROMPT_TOKENS + count},"completion_tokens":${count}}`;
}
