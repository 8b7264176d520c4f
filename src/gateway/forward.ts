// Carries an admitted request to its backends and its answer back, renewing the lease meanwhile (SPEC §5, §6). Decides
// when a stream is committed: with its first event, or after the hold, with comments until the engine speaks.

import { type GatewayError } from '../core/errors.ts';
import { err, ok, type Result } from '../core/result.ts';
import { type Endpoint, type UpstreamFault } from '../openai/endpoint.ts';
import { type BackendHealth } from './backend-health.ts';
import { type HeldBytes } from './byte-budget.ts';
import { collectStream } from './collect-stream.ts';
import { withDeadline } from './deadline.ts';
import { openJson, openStream } from './open-upstream.ts';
import { type UpstreamCall } from './upstream-call.ts';
import { type Ports } from './ports.ts';
import { type Halt } from './halt.ts';
import { createLaneRewriter } from './lane-rewriter.ts';
import { relayStream } from './relay-stream.ts';
import { buildRunningReservation, buildUpstreamEnd, type Run, type RunEnd, toAnswerableEnd } from './run.ts';
import { runEvery, runOnceAt, startWatch, type Watch } from './watch.ts';

/** An admitted request with everything it needs to be carried out. */
export type Forwarding = {
  readonly ports: Ports;
  readonly endpoint: Endpoint;
  readonly context: UpstreamCall['context'];
  readonly run: Run;
  readonly halt: Halt;
  readonly held: HeldBytes;
  readonly health: BackendHealth;
};

type Body = ReadableStream<Uint8Array> | string;

/**
 * Forwards and answers. `end` is called exactly once, when the request is over: for a stream long after this returned.
 */
export async function forward(forwarding: Forwarding, end: (end: RunEnd) => void): Promise<Result<Body, GatewayError>> {
  const watch = watchRequest(forwarding);
  const finish = (how: RunEnd): void => {
    watch.stop();
    end(how);
  };
  return forwarding.context.request.stream ? forwardStream(forwarding, finish) : forwardJson(forwarding, finish);
}

/**
 * Renewed so often that a revoked key's stream ends within ten seconds: the ledger's own copy of the revocations may be
 * five seconds old (SPEC §2).
 */
const RENEW_MS_MAX = 4000;

/** Renews the lease in time, and ends the request at its total deadline. */
function watchRequest({ ports, run, halt }: Forwarding): Watch {
  const { leaseMs, totalDeadlineMs } = ports.settings;
  const renew = async (): Promise<void> => {
    const answer = await ports.ledger.renew(buildRunningReservation(run));
    if (answer === 'stop')
      halt.halt({ type: 'failed', error: { kind: 'request_stopped' }, detail: 'stopped by the ledger' });
  };
  const startMs = ports.now();
  return startWatch(
    [
      runEvery(Math.min(leaseMs / 3, RENEW_MS_MAX), startMs, () => void renew()),
      runOnceAt(startMs + totalDeadlineMs, () => halt.halt(buildUpstreamEnd('upstream_timeout', 'total deadline'))),
    ],
    ports.now,
  );
}

async function forwardJson(forwarding: Forwarding, finish: (end: RunEnd) => void): Promise<Result<Body, GatewayError>> {
  const { ports, context, run, halt } = forwarding;
  const call = { ...forwarding, signal: halt.signal, deadlineMs: ports.settings.totalDeadlineMs };
  if (context.request.resolved.model.upstreamStream) {
    const collected = await collectStream({ ...call, deadlineMs: ports.settings.firstEventDeadlineMs }, halt);
    if (!collected.ok) return refuse(collected.error, finish);
    finish({ type: 'finished' });
    return collected;
  }
  const opened = await openJson(call);
  if (!opened.ok) return refuse(halt.reason() ?? toFailed(opened.error), finish);
  run.firstTokenAtMs = ports.now();
  finish({ type: 'finished' });
  return ok(opened.value.body);
}

async function forwardStream(
  forwarding: Forwarding,
  finish: (end: RunEnd) => void,
): Promise<Result<Body, GatewayError>> {
  const { ports, endpoint, run, halt, held } = forwarding;
  const { body, ...request } = forwarding.context.request;
  // Behind the opening nothing refers to the body any more: a long stream does not hold it, but for what it repeats.
  const context = { ...forwarding.context, request };
  const opening = openStream({
    ...forwarding,
    signal: halt.signal,
    deadlineMs: ports.settings.firstEventDeadlineMs,
  });
  const bodyBytes = body.bytes;
  void opening.then(() => (request.echo === null ? held.drop(bodyBytes) : undefined));
  const first = await withDeadline(opening, ports.settings.firstEventHoldMs, () => undefined);
  if (first !== 'deadline' && !first.ok) return refuse(halt.reason() ?? toAnswerableEnd(toFailed(first.error)), finish);
  const isNative = first !== 'deadline' && first.value.native !== null && ports.settings.nativeLanes;
  const rewriter = ports.settings.nativeLanes && !isNative ? createLaneRewriter() : null;
  const pipe = rewriter === null ? ports.openPipe() : ports.openRewritingPipe(rewriter.rewrite);
  run.committed = true;
  const [backend] = request.resolved.backends;
  // Owned by `finish`: the account waits for it behind the answer.
  void relayStream({
    opening,
    writable: pipe.writable,
    rewriter,
    run,
    settings: ports.settings,
    now: ports.now,
    halt,
    held,
    fail: (error) => endpoint.createTranslator({ ...context, backend }).fail(error),
  }).then(finish, (bug: unknown) => {
    finish({ type: 'failed', error: { kind: 'internal_error' }, detail: String(bug) });
  });
  return ok(pipe.readable);
}

/** A request that ended before a 200: the account is closed and the client gets the error's status. */
function refuse(how: RunEnd, finish: (end: RunEnd) => void): Result<never, GatewayError> {
  finish(how);
  return err(how.type === 'failed' ? how.error : { kind: 'client_closed_request' });
}

function toFailed(fault: UpstreamFault): RunEnd {
  return { type: 'failed', error: fault.error, detail: fault.detail };
}
