// Moves a stream from the engine to the client: whole events only, comments in silence, and one of three ends, once (SPEC
// §7). While the engine speaks a native lane may carry it; the plain pump here carries the rest. What the client's bytes
// are is the translator's work.

import { type GatewayError } from '../core/errors.ts';
import { type Result } from '../core/result.ts';
import { type UpstreamFault } from '../openai/endpoint.ts';
import { type HeldBytes } from './byte-budget.ts';
import { type ClientWriter, createClientWriter } from './client-writer.ts';
import { withDeadline } from './deadline.ts';
import { DRAIN_MS, type Lane, openExactLane } from './exact-lane.ts';
import { type Halt } from './halt.ts';
import { type LaneRewriter } from './lane-rewriter.ts';
import { type NativeLaneInput, runNativeLane } from './native-lane.ts';
import { type OpenedStream } from './open-upstream.ts';
import { type Settings } from './ports.ts';
import { buildUpstreamEnd, type Run, type RunEnd } from './run.ts';
import { buildLastText, readTranslated, type StreamTranslation, toMidstreamEnd } from './stream-translation.ts';
import { type TextReader } from './text-reader.ts';
import { type Rule, startWatch } from './watch.ts';

/** What a relay works with. `opening` may still be waiting for the engine: the client gets comments meanwhile. */
export type RelayInput = {
  readonly opening: Promise<Result<OpenedStream, UpstreamFault>>;
  readonly writable: WritableStream<Uint8Array>;
  /** What rewrites the pipe behind the writable; null where nothing does: the native lane or the pump carries all. */
  readonly rewriter: LaneRewriter | null;
  readonly run: Run;
  readonly settings: Settings;
  readonly now: () => number;
  /** Ends the upstream side; the first reason given is the one that counts. */
  readonly halt: Halt;
  readonly held: HeldBytes;
  /** The last bytes of a stream that has failed, if nothing is known of it. */
  readonly fail: (error: GatewayError) => string;
};

/** A client that takes nothing for so long after its request was ended is not waited for. */
const STALLED_MS = 5000;
const KEEP_ALIVE = ': keep-alive\n\n';

/** What the clock's rules look at. */
type Phase = {
  /** Since when the pump has been waiting for the engine. */
  waitingSinceMs: number | null;
  lane: Lane | null;
  /** Whether nobody here sees what passes. */
  isNative: boolean;
  /** Must be called when something has become due earlier. */
  refresh: () => void;
};

/** Relays until the end, and tells which end it was. Never rejects; the writable is closed or aborted. */
export async function relayStream(input: RelayInput): Promise<RunEnd> {
  const { halt, rewriter, now } = input;
  const client = createClientWriter(input.writable, halt, now, (text) => rewriter?.expect(text));
  const phase: Phase = { waitingSinceMs: null, lane: null, isNative: false, refresh: () => undefined };
  const watch = startWatch(buildRules(input, client, phase), now);
  phase.refresh = watch.refresh;
  try {
    const opened = await input.opening;
    if (opened.ok) return await relayOpened(input, opened.value, client, phase);
    const end: RunEnd = halt.reason() ?? { type: 'failed', ...opened.error };
    return await client.finish(end, end.type === 'failed' ? input.fail(end.error) : '');
  } finally {
    watch.stop();
  }
}

function buildRules({ settings, now, halt }: RelayInput, client: ClientWriter, phase: Phase): readonly Rule[] {
  const silence: Rule = {
    dueAtMs: () => (phase.waitingSinceMs ?? Infinity) + settings.silenceDeadlineMs,
    run: () => halt.halt(buildUpstreamEnd('upstream_timeout', 'silence')),
  };
  const keepAlive: Rule = {
    dueAtMs: () =>
      phase.lane === null && !phase.isNative
        ? (client.isBusy() ? now() : client.lastWriteMs()) + settings.keepAliveMs
        : Infinity,
    run: () => void client.write(KEEP_ALIVE),
  };
  const laneSilence: Rule = {
    dueAtMs: () => phase.lane?.silence.dueAtMs() ?? Infinity,
    run: (nowMs) => phase.lane?.silence.run(nowMs),
  };
  const stalled: Rule = {
    dueAtMs: () => (client.isBusy() && halt.signal.aborted ? client.lastWriteMs() + STALLED_MS : Infinity),
    run: () => client.giveUp(),
  };
  return [silence, keepAlive, laneSilence, stalled];
}

/** Relays a stream whose engine has begun to speak: in the lane while there is one, then by the pump. */
async function relayOpened(
  input: RelayInput,
  opened: OpenedStream,
  client: ClientWriter,
  phase: Phase,
): Promise<RunEnd> {
  const { run, now, rewriter } = input;
  const { translation, reader, firstText, firstEnd, native } = opened;
  if (run.progress().started) run.firstTokenAtMs ??= now();
  if (rewriter === null && input.settings.nativeLanes && native !== null && firstEnd === null) {
    const branches = reader.split();
    if (branches !== null) {
      // Nobody here sees what follows: the first event is the first token.
      run.firstTokenAtMs ??= now();
      await client.write(native.text);
      return relayNative(input, { ...native, branches, client, translation }, phase);
    }
  }
  if (!(await client.write(firstText))) return close(client, reader, { type: 'client_gone' }, translation);
  if (firstEnd !== null) return close(client, reader, toMidstreamEnd(firstEnd), translation);
  const branches = rewriter === null ? null : reader.split();
  if (rewriter === null || branches === null) return pump(input, { translation, reader }, client, phase);
  const mark = `\u0001${run.reservation.receipt.id}\u0001`;
  phase.lane = openExactLane({ ...input, ...input.settings, branches, client, rewriter, translation, mark });
  const ended = await phase.lane.ended;
  phase.lane = null;
  switch (ended.type) {
    case 'written':
      return client.finish(ended.end, '');
    case 'ended':
      return client.finish(ended.end, ended.text + buildLastText(ended.end, translation.translator));
    case 'silent':
      phase.waitingSinceMs = ended.sinceMs;
      void client.write(KEEP_ALIVE);
      phase.refresh();
      return pump(input, { translation, reader: ended.reader }, client, phase);
  }
}

async function relayNative(
  { halt, held, fail }: RelayInput,
  stream: Omit<NativeLaneInput, 'halt' | 'held' | 'fail'>,
  phase: Phase,
): Promise<RunEnd> {
  phase.isNative = true;
  const writeFailure = (end: RunEnd): string => (end.type === 'failed' ? fail(end.error) : '');
  const { end, text } = await runNativeLane({ ...stream, halt, held, fail: writeFailure });
  phase.isNative = false;
  return stream.client.finish(end, text);
}

type Source = { readonly translation: StreamTranslation; readonly reader: TextReader };

/** The plain pump: reads, translates and writes until something ends it. */
async function pump(
  { run, halt, now }: RelayInput,
  { translation, reader }: Source,
  client: ClientWriter,
  phase: Phase,
): Promise<RunEnd> {
  for (;;) {
    phase.waitingSinceMs ??= now();
    const { text, end, heard } = await readTranslated(reader, translation);
    phase.waitingSinceMs = null;
    if (run.firstTokenAtMs === null && run.progress().started) run.firstTokenAtMs = now();
    const haltedBy = halt.reason();
    if (haltedBy !== null && !heard) return close(client, reader, haltedBy, translation);
    if (text !== '' && !(await client.write(text))) {
      return close(client, reader, { type: 'client_gone' }, translation);
    }
    if (end !== null) return close(client, reader, toMidstreamEnd(end), translation);
    if (haltedBy !== null) return close(client, reader, haltedBy, translation);
  }
}

/** Ends the client's side, then the engine's. */
async function close(
  client: ClientWriter,
  reader: TextReader,
  end: RunEnd,
  { translator }: StreamTranslation,
): Promise<RunEnd> {
  const written = await client.finish(end, buildLastText(end, translator));
  if (end.type === 'finished') await drain(reader);
  else await reader.cancel();
  return written;
}

/** Reads what follows [DONE], so that the connection can be used again; an engine that holds it open is let go. */
async function drain(reader: TextReader): Promise<void> {
  const ended = (async (): Promise<void> => {
    while ((await reader.read()).type === 'text');
  })();
  if ((await withDeadline(ended, DRAIN_MS, () => undefined)) === 'deadline') await reader.cancel();
}
