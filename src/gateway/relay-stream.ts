// Moves a stream from the engine to the client: translates each batch, writes whole events only, comments in silence,
// and ends it in one of three ways, once (SPEC §7). The plain pump; what the client's bytes are is the translator's work.

import { type GatewayError } from '../core/errors.ts';
import { type Result } from '../core/result.ts';
import { type StreamTranslator, type UpstreamFault } from '../openai/endpoint.ts';
import { withDeadline } from './deadline.ts';
import { type EventReader } from './event-reader.ts';
import { type OpenedStream } from './open-upstream.ts';
import { type Settings } from './ports.ts';
import { buildUpstreamEnd, type Run, type RunEnd } from './run.ts';
import { translateBatch } from './translate-batch.ts';
import { type Rule, startWatch } from './watch.ts';

/** What a relay works with. `opening` may still be waiting for the engine: the client gets comments meanwhile. */
export type RelayInput = {
  readonly opening: Promise<Result<OpenedStream, UpstreamFault>>;
  readonly writable: WritableStream<Uint8Array>;
  readonly run: Run;
  readonly settings: Settings;
  readonly now: () => number;
  /** Ends the upstream side; the first reason given is the one that counts. */
  readonly halt: Halt;
  /** The last bytes of a stream whose engine never opened. */
  readonly fail: (error: GatewayError) => string;
};

/** Why a request must end before its engine is done. */
export type Halt = {
  readonly signal: AbortSignal;
  readonly reason: () => RunEnd | null;
  readonly halt: (end: RunEnd) => void;
};

/** A client that takes nothing for so long after its request was ended is not waited for. */
const STALLED_MS = 5000;
/** How long an engine may take to close after its [DONE]. */
const DRAIN_MS = 1000;
const KEEP_ALIVE = ': keep-alive\n\n';

/** Creates a halt: an AbortController that remembers the first reason as a {@link RunEnd}. */
export function createHalt(): Halt {
  const controller = new AbortController();
  let reason: RunEnd | null = null;
  return {
    signal: controller.signal,
    reason: () => reason,
    halt(end) {
      if (reason !== null) return;
      reason = end;
      controller.abort();
    },
  };
}

/** Relays until the end, and tells which end it was. Never rejects; the writable is closed or aborted. */
export async function relayStream(input: RelayInput): Promise<RunEnd> {
  const { settings, now, halt } = input;
  const client = createClient(input);
  let waitingSinceMs: number | null = null;
  const silence: Rule = {
    dueAtMs: () => (waitingSinceMs === null ? Infinity : waitingSinceMs + settings.silenceDeadlineMs),
    run: () => halt.halt(buildUpstreamEnd('upstream_timeout', 'silence')),
  };
  const keepAlive: Rule = {
    dueAtMs: () => (client.isBusy() ? now() : client.lastWriteMs()) + settings.keepAliveMs,
    run: () => client.writeKeepAlive(),
  };
  const stalled: Rule = {
    dueAtMs: () => (client.isBusy() && halt.signal.aborted ? client.lastWriteMs() + STALLED_MS : Infinity),
    run: () => client.giveUp(),
  };
  const watch = startWatch([silence, keepAlive, stalled], now);
  try {
    const opened = await input.opening;
    if (!opened.ok) {
      const end: RunEnd = halt.reason() ?? { type: 'failed', ...opened.error };
      return await client.finish(end, end.type === 'failed' ? input.fail(end.error) : '');
    }
    const { reader, translator } = opened.value;
    const end = await pump(opened.value, client, halt, (waiting) => {
      waitingSinceMs = waiting ? now() : null;
    });
    const written = await client.finish(end, buildLastText(end, translator));
    if (end.type === 'finished') await drain(reader);
    else await reader.cancel();
    return written;
  } finally {
    watch.stop();
  }
}

/** Reads, translates and writes until something ends it. */
async function pump(
  opened: OpenedStream,
  client: Client,
  halt: Halt,
  setWaiting: (waiting: boolean) => void,
): Promise<RunEnd> {
  const { reader, translator } = opened;
  if (!(await client.write(opened.firstText))) return { type: 'client_gone' };
  if (opened.firstEnd !== null) return toMidstreamEnd(opened.firstEnd);
  for (;;) {
    setWaiting(true);
    const batch = await reader.read();
    setWaiting(false);
    const haltedBy = halt.reason();
    if (haltedBy !== null && batch.type !== 'events') return haltedBy;
    const { text, end } = translateBatch(batch, translator);
    if (text !== '' && !(await client.write(text))) return { type: 'client_gone' };
    if (end !== null) return toMidstreamEnd(end);
    if (haltedBy !== null) return haltedBy;
  }
}

/** Reads what follows [DONE], so that the connection can be used again; an engine that holds it open is let go. */
async function drain(reader: EventReader): Promise<void> {
  const ended = (async (): Promise<void> => {
    while ((await reader.read()).type === 'events');
  })();
  if ((await withDeadline(ended, DRAIN_MS, () => undefined)) === 'deadline') await reader.cancel();
}

/** Once the client has seen text, an engine's refusal of the request is a failure of the engine. */
function toMidstreamEnd(end: RunEnd): RunEnd {
  if (end.type !== 'failed' || end.error.kind === 'upstream') return end;
  return buildUpstreamEnd('upstream_error', end.detail);
}

function buildLastText(end: RunEnd, translator: StreamTranslator): string {
  if (end.type === 'finished') return translator.finish();
  return end.type === 'failed' ? translator.fail(end.error) : '';
}

/** The client's side of a relay. Writes queue in order and wait for the reader; a write that fails is its last. */
type Client = {
  readonly write: (text: string) => Promise<boolean>;
  readonly writeKeepAlive: () => void;
  /** Writes the last bytes and closes, or drops a client that left. Tells the end that really came about. */
  readonly finish: (end: RunEnd, lastText: string) => Promise<RunEnd>;
  /** Drops a client that does not take what is written. */
  readonly giveUp: () => void;
  /** Whether a write waits for the client, or nothing may be written any more. */
  readonly isBusy: () => boolean;
  readonly lastWriteMs: () => number;
};

function createClient(input: RelayInput): Client {
  const { now, halt, run } = input;
  const writer = input.writable.getWriter();
  const encoder = new TextEncoder();
  let pending = 0;
  let lastWriteMs = now();
  // The writable fails as soon as the runtime has seen that the client left.
  writer.closed.catch(() => halt.halt({ type: 'client_gone' }));

  async function write(text: string): Promise<boolean> {
    pending += 1;
    try {
      await writer.write(encoder.encode(text));
      return true;
    } catch {
      halt.halt({ type: 'client_gone' });
      return false;
    } finally {
      pending -= 1;
      lastWriteMs = now();
    }
  }

  return {
    async write(text) {
      if (run.firstTokenAtMs === null && run.progress().started) run.firstTokenAtMs = now();
      return write(text);
    },
    writeKeepAlive() {
      void write(KEEP_ALIVE);
    },
    async finish(end, lastText) {
      if (end.type === 'client_gone') {
        await writer.abort().catch(() => undefined);
        return end;
      }
      pending += 1;
      if (!(await write(lastText))) return { type: 'client_gone' };
      await writer.close().catch(() => undefined);
      return end;
    },
    giveUp() {
      lastWriteMs = Infinity;
      void writer.abort().catch(() => undefined);
    },
    isBusy: () => pending > 0,
    lastWriteMs: () => lastWriteMs,
  };
}
