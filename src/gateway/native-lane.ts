// The native lane: an engine's stream that needs no change is piped to the client by the runtime alone, and read once after
// its end, from a copy, for the receipt (SPEC §7). In return nothing is repaired, silence is not noticed and a client that
// leaves is, with the next byte.

import { type HeldBytes } from './byte-budget.ts';
import { type ClientWriter } from './client-writer.ts';
import { sleep } from './deadline.ts';
import { type Halt } from './halt.ts';
import { type RunEnd } from './run.ts';
import { type StreamTranslation, toMidstreamEnd } from './stream-translation.ts';
import { createTextReader } from './text-reader.ts';

/** What the lane carries and where to. */
export type NativeLaneInput = {
  /** What has not been read of the engine's body: one to be piped, one to be read after the end. */
  readonly branches: readonly [ReadableStream<Uint8Array>, ReadableStream<Uint8Array>];
  readonly client: ClientWriter;
  /** It has seen the text that came before. */
  readonly translation: StreamTranslation;
  readonly halt: Halt;
  readonly held: HeldBytes;
  /** Output tokens that the stream can have. */
  readonly outputTokensMax: number;
  /** The last bytes of a stream that an engine did not end: the terminal marker, or an error before it. */
  readonly done: string;
  readonly fail: (end: RunEnd) => string;
};

/** What an event of one token takes in the copy, about. */
const BYTES_PER_TOKEN = 200;
/** What has arrived is handed over at once: a read that takes longer waits for the engine. */
const ARRIVED_MS = 20;

/** Carries a stream to its end, and tells the end with the last text that is to be written. */
export async function runNativeLane(input: NativeLaneInput): Promise<{ readonly end: RunEnd; readonly text: string }> {
  const { client, halt, held } = input;
  const [main, branch] = input.branches;
  const bytes = input.outputTokensMax * BYTES_PER_TOKEN;
  held.add(bytes);
  const halted = Promise.withResolvers<'halted'>();
  const stop = new AbortController();
  halt.signal.addEventListener('abort', () => halted.resolve('halted'), { once: true });
  if (halt.signal.aborted) halted.resolve('halted');
  const piped = client.pipe(main, stop.signal);
  const how = await Promise.race([piped, halted.promise]);
  stop.abort();
  await piped;
  const told = await readEnd(input, await readCopy(branch, how === 'closed'), how);
  held.drop(bytes);
  return told;
}

/** Blank lines end a half event; between events they are nothing. */
const BLANK = '\n\n';

async function readEnd(
  { translation, halt, client, done, fail }: NativeLaneInput,
  rest: string,
  how: 'closed' | 'broken' | 'halted',
): Promise<{ readonly end: RunEnd; readonly text: string }> {
  const pushed = translation.push(how === 'closed' ? skipMiddle(rest, done) : rest);
  const left = pushed.end === null ? translation.close('', how !== 'closed').end : pushed.end;
  const engineEnd = toMidstreamEnd(left);
  if (engineEnd.type === 'finished') {
    // For the receipt alone: what an engine left unsaid at its end.
    translation.translator.finish();
    return { end: engineEnd, text: pushed.end === null ? BLANK + done : '' };
  }
  // The engine has told its own failure, and that it is over.
  if (pushed.end !== null && rest.endsWith(done)) return { end: engineEnd, text: '' };
  // Only a write shows whether a pipe broke at its end or at its beginning.
  const isThere = halt.reason()?.type !== 'client_gone' && (await client.write(BLANK));
  if (!isThere) return { end: { type: 'client_gone' }, text: '' };
  const end = pushed.end === null ? (halt.reason() ?? engineEnd) : engineEnd;
  return { end, text: fail(end) };
}

/** Characters in which the last words of a stream are found: finish reason, usage, terminal marker. */
const TAIL = 4096;

/**
 * What of a stream its receipt needs: its beginning up to the first border between events, since an event may have begun
 * before, and its last events if they say how it ended and what it used. Else all of it, to be counted.
 */
function skipMiddle(text: string, done: string): string {
  const head = text.indexOf(BLANK) + BLANK.length;
  const tail = text.lastIndexOf(BLANK, text.length - TAIL) + BLANK.length;
  if (tail <= head || !text.endsWith(done)) return text;
  const last = text.slice(tail);
  const isTold = last.includes('"finish_reason":"') && last.includes('"usage":{');
  return isTold ? text.slice(0, head) + last : text;
}

/** All that has arrived of the copy: in one native read where the body is at its end, else what there is without waiting. */
async function readCopy(branch: ReadableStream<Uint8Array>, isEnded: boolean): Promise<string> {
  if (isEnded) return new Response(branch).text();
  const copy = createTextReader(branch);
  let text = '';
  for (;;) {
    const piece = await Promise.race([copy.read(), sleep(ARRIVED_MS).then(() => null)]);
    text += piece?.text ?? '';
    if (piece?.type === 'text') continue;
    await copy.cancel();
    return text;
  }
}
