// Sends one request to one backend and waits for its headers (SPEC §6). What went wrong is said with whether another
// backend may be asked.

import { type Backend } from '../core/model-entry.ts';
import { err, ok, type Result } from '../core/result.ts';
import { type UpstreamFault } from '../openai/endpoint.ts';
import { readUpstreamStatus } from '../openai/upstream-error.ts';
import { withDeadline } from './deadline.ts';
import { type UpstreamCall } from './upstream-call.ts';
import { readBodyText } from './read-body-text.ts';

const ERROR_BYTES_MAX = 64 * 1024;

/** A fault, and whether another backend may be asked. */
export type AttemptFault = UpstreamFault & { readonly final: boolean };
/** An answer that began well, and how to give it up. */
export type Started = { readonly response: Response; readonly abort: () => void };

/** Sends to one backend; a connection that dies before any header came back is tried once more (SPEC §6). */
export async function send(
  call: UpstreamCall,
  backend: Backend,
  headersMs: number,
): Promise<Result<Started, AttemptFault>> {
  for (let tries = 1; ; tries += 1) {
    call.run.attempts += 1;
    const controller = new AbortController();
    const signal = AbortSignal.any([call.signal, controller.signal]);
    const abort = (): void => controller.abort();
    const response = await withDeadline(sendOnce(call, backend, signal), headersMs, abort);
    if (response === 'deadline') return err(timedOut('no headers'));
    if (response instanceof Response) {
      if (response.status >= 200 && response.status < 300) return ok({ response, abort });
      const text = (await readBodyText(response, ERROR_BYTES_MAX, call.held)) ?? '';
      return err(toAttemptFault(readUpstreamStatus(response.status, text, call.endpoint.promptParam)));
    }
    if (tries === 2 || call.signal.aborted) return err(unreachable(response.reason));
  }
}

async function sendOnce(
  call: UpstreamCall,
  backend: Backend,
  signal: AbortSignal,
): Promise<Response | { readonly reason: string }> {
  const { request: inference, requestId } = call.context;
  const body = call.endpoint.toUpstreamBody(inference, backend);
  try {
    return await call.ports.backends.send(backend.binding, {
      path: call.endpoint.toUpstreamPath(inference.resolved.model),
      body,
      headers: {
        'content-type': 'application/json',
        accept: inference.stream ? 'text/event-stream' : 'application/json',
        'x-request-id': requestId,
      },
      signal,
    });
  } catch (error) {
    return { reason: error instanceof Error ? error.message : String(error) };
  }
}

/** A request that the engine found at fault stays at fault with any other backend. */
export function toAttemptFault(fault: UpstreamFault): AttemptFault {
  const { kind } = fault.error;
  return {
    error: fault.error,
    detail: fault.detail,
    final: kind === 'upstream_rejected' || kind === 'invalid_parameter',
  };
}

/** No backend could be reached. */
export function unreachable(detail: string): AttemptFault {
  return { error: { kind: 'upstream', failure: 'upstream_unreachable' }, detail, final: false };
}

/** What a backend sent is no answer. */
export function broken(detail: string): AttemptFault {
  return { error: { kind: 'upstream', failure: 'upstream_error' }, detail, final: false };
}

/** A backend took too long. */
export function timedOut(detail: string): AttemptFault {
  return { error: { kind: 'upstream', failure: 'upstream_timeout' }, detail, final: false };
}
