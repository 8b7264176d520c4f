// The exact lane while the engine speaks: its body is piped natively to the client, and each piece of text is translated
// in one synchronous call on the way, without a promise (SPEC §7). In silence the pump takes over, from a copy of the
// body. Measured against the plain pump in the README; what the client gets is the same.

import { type HeldBytes } from './byte-budget.ts';
import { type ClientWriter } from './client-writer.ts';
import { withDeadline } from './deadline.ts';
import { type Halt } from './halt.ts';
import { type LaneRewriter } from './lane-rewriter.ts';
import { type RunEnd } from './run.ts';
import { createStreamCopy } from './stream-copy.ts';
import { buildLastText, type StreamTranslation, toMidstreamEnd, type Translation } from './stream-translation.ts';
import { type TextReader } from './text-reader.ts';
import { type Rule } from './watch.ts';

/** What the lane carries and where to. */
export type LaneInput = {
  /** What has not been read of the engine's body: one to be piped, one to be read in silence. */
  readonly branches: readonly [ReadableStream<Uint8Array>, ReadableStream<Uint8Array>];
  readonly client: ClientWriter;
  readonly rewriter: LaneRewriter;
  readonly translation: StreamTranslation;
  readonly halt: Halt;
  readonly held: HeldBytes;
  readonly now: () => number;
  readonly keepAliveMs: number;
  readonly silenceDeadlineMs: number;
  /** Text that no stream has in it. */
  readonly mark: string;
};

/** How the lane ended: with its last text written, before it, or in silence with what is to be pumped from there. */
export type LaneEnd =
  | { readonly type: 'written'; readonly end: RunEnd }
  | { readonly type: 'ended'; readonly end: RunEnd; readonly text: string }
  | { readonly type: 'silent'; readonly reader: TextReader; readonly sinceMs: number };

/** A lane at work. `silence` is to be watched until it has ended. */
export type Lane = { readonly silence: Rule; readonly ended: Promise<LaneEnd> };

/** How long an engine may take to close after its [DONE]. */
export const DRAIN_MS = 1000;

/** Opens the lane. The client must have taken all that was written to it. */
export function openExactLane(input: LaneInput): Lane {
  const { client, halt, now } = input;
  const [main, branch] = input.branches;
  const copy = createStreamCopy(branch, input.held);
  const stop = new AbortController();
  const decided = Promise.withResolvers<'written' | 'silent' | 'halted'>();
  let end: RunEnd | null = null;
  const readEnd = (): RunEnd | null => end;
  let heardAtMs = now();
  let wroteAtMs = heardAtMs;
  let isProbing = false;

  function translate(text: string): string {
    if (end !== null) return '';
    copy.note(text.length);
    const translated = translateSafely(input.translation, text);
    if (translated.heard) heardAtMs = now();
    if (translated.text !== '') wroteAtMs = heardAtMs;
    if (translated.end === null) return translated.text;
    end = toMidstreamEnd(translated.end);
    decided.resolve('written');
    return translated.text + buildLastText(end, input.translation.translator);
  }

  async function probe(): Promise<void> {
    isProbing = true;
    const heardBeforeMs = heardAtMs;
    if ((await copy.isSilent()) && heardAtMs === heardBeforeMs) return decided.resolve('silent');
    // The client is slow, or the engine has just spoken: neither is silence.
    heardAtMs = now();
    wroteAtMs = heardAtMs;
    isProbing = false;
  }

  async function run(): Promise<LaneEnd> {
    input.rewriter.translate(translate);
    const piped = client.pipe(main, stop.signal);
    halt.signal.addEventListener('abort', () => decided.resolve('halted'), { once: true });
    if (halt.signal.aborted) decided.resolve('halted');
    const how = await Promise.race([piped, decided.promise]);
    if (readEnd()?.type === 'finished') await withDeadline(piped, DRAIN_MS, () => undefined);
    stop.abort();
    await piped;
    const ended = await settle(how);
    if (ended.type !== 'silent') await copy.cancel();
    return ended;
  }

  async function settle(how: 'closed' | 'broken' | 'written' | 'silent' | 'halted'): Promise<LaneEnd> {
    const written = readEnd();
    if (written !== null) return { type: 'written', end: written };
    if (halt.reason()?.type === 'client_gone') return { type: 'written', end: { type: 'client_gone' } };
    // Behind the mark the position is known, and all that the engine said has been translated.
    const stopped = input.rewriter.stopAt(input.mark);
    if (!(await client.write(input.mark))) return { type: 'written', end: { type: 'client_gone' } };
    await Promise.race([stopped, client.closed()]);
    const endedMeanwhile = readEnd();
    if (endedMeanwhile !== null) return { type: 'written', end: endedMeanwhile };
    const reason = halt.reason();
    if (reason !== null) return { type: 'ended', end: reason, text: '' };
    if (how === 'silent') return { type: 'silent', reader: copy.readOn(), sinceMs: heardAtMs };
    const rest = input.translation.close('', how === 'broken');
    return { type: 'ended', end: toMidstreamEnd(rest.end), text: rest.text };
  }

  return {
    silence: {
      dueAtMs: () => {
        // While it is being found out nothing is due; what comes of it is a fresh start or the lane's end.
        if (isProbing) return now() + Math.min(input.keepAliveMs, input.silenceDeadlineMs);
        return Math.min(wroteAtMs + input.keepAliveMs, heardAtMs + input.silenceDeadlineMs);
      },
      run: () => void probe(),
    },
    ended: run(),
  };
}

/** A bug must not break the pipe without a word. */
function translateSafely(translation: StreamTranslation, text: string): Translation {
  try {
    return translation.push(text);
  } catch (bug) {
    const end: RunEnd = { type: 'failed', error: { kind: 'internal_error' }, detail: String(bug) };
    return { text: '', end, heard: true };
  }
}
