// Gets an answer going: tries the backends in turn until one has shown its first event (or, not streamed, its whole
// answer), within one deadline (SPEC §6). What the client must be told when none does is the last fault.

import { parseJsonObject } from '../core/json-read.ts';
import { type Backend } from '../core/model-catalog.ts';
import { err, ok, type Result } from '../core/result.ts';
import {
  type AnswerContext,
  type Endpoint,
  type InferenceRequest,
  type StreamTranslator,
  type UpstreamFault,
} from '../openai/endpoint.ts';
import { toStreamEvents } from '../openai/answer-as-stream.ts';
import { readUpstreamStatus } from '../openai/upstream-error.ts';
import { type HeldBytes } from './byte-budget.ts';
import { createEventReader, type EventReader } from './event-reader.ts';
import { withDeadline } from './deadline.ts';
import { type Ports } from './ports.ts';
import { readBodyText } from './read-body-text.ts';
import { type Run, type RunEnd } from './run.ts';
import { translateBatch } from './translate-batch.ts';

/** One inference call, ready to go up. */
export type UpstreamCall = {
  readonly ports: Ports;
  readonly endpoint: Endpoint;
  readonly run: Run;
  /** The request as it came, with what is fixed about its answer. */
  readonly context: Omit<AnswerContext, 'backend' | 'request'> & { readonly request: InferenceRequest };
  readonly held: HeldBytes;
  /** Aborts every attempt: the client left, or a deadline passed. */
  readonly signal: AbortSignal;
};

/** A stream whose first event is known to be good. */
export type OpenedStream = {
  readonly reader: EventReader;
  readonly translator: StreamTranslator;
  /** The client's bytes for the first events, and the end if it came with them. */
  readonly firstText: string;
  readonly firstEnd: RunEnd | null;
};

/** A whole answer in normal form. */
export type OpenedJson = { readonly body: string };

/** A fault, and whether another backend may be asked. */
type AttemptFault = UpstreamFault & { readonly final: boolean };
type Attempt<T> = (backend: Backend) => Promise<Result<T, AttemptFault>>;

/** The largest event taken from an engine (SPEC §7). */
export const EVENT_BYTES_MAX = 4 * 1024 * 1024;
const ERROR_BYTES_MAX = 64 * 1024;
/** The largest JSON answer taken or put together. */
export const ANSWER_BYTES_MAX = 32 * 1024 * 1024;

/** The reader of a stream that has been read. */
const ENDED: EventReader = {
  read: () => Promise.resolve({ type: 'end', leftover: null, broken: false }),
  cancel: () => Promise.resolve(),
};

/** Opens a stream. */
export async function openStream(call: UpstreamCall): Promise<Result<OpenedStream, UpstreamFault>> {
  return tryBackends(call, (backend) => attemptStream(call, backend));
}

/** Fetches a whole JSON answer. */
export async function openJson(call: UpstreamCall): Promise<Result<OpenedJson, UpstreamFault>> {
  return tryBackends(call, (backend) => attemptJson(call, backend));
}

async function tryBackends<T>(call: UpstreamCall, attempt: Attempt<T>): Promise<Result<T, UpstreamFault>> {
  const backends = orderBackends(call.context.request.resolved.backends, call.ports.randomBytes);
  let last: UpstreamFault = unreachable('no backend');
  for (const backend of backends) {
    call.run.backend = backend.binding;
    call.run.upstreamModel = backend.upstream_model;
    const result = await attempt(backend);
    if (result.ok) return result;
    last = result.error;
    if (result.error.final || call.signal.aborted) break;
  }
  return err(last);
}

async function attemptStream(call: UpstreamCall, backend: Backend): Promise<Result<OpenedStream, AttemptFault>> {
  const { settings } = call.ports;
  const started = await send(call, backend, settings.headersDeadlineMs);
  if (!started.ok) return started;
  const { response, abort } = started.value;
  const { body } = response;
  if (body === null || !isEventStream(response)) return openWholeAnswer(call, backend, response);
  const translator = call.endpoint.createTranslator(toAnswerContext(call, backend));
  const reader = createEventReader(body, EVENT_BYTES_MAX, call.held);
  const first = await withDeadline(readFirst(reader, translator), settings.firstEventDeadlineMs, abort);
  if (first === 'deadline') return err(timedOut('no first event'));
  if (!first.ok) {
    await reader.cancel();
    return err(first.error);
  }
  call.run.progress = translator.progress;
  return ok({ reader, translator, firstText: first.value.text, firstEnd: first.value.end });
}

type First = { readonly text: string; readonly end: RunEnd | null };

/** Reads until the engine has said something for the client, or failed; comments and empty chunks do not count. */
async function readFirst(reader: EventReader, translator: StreamTranslator): Promise<Result<First, AttemptFault>> {
  for (;;) {
    const { text, end } = translateBatch(await reader.read(), translator);
    if (text !== '') return ok({ text, end });
    if (end?.type === 'failed') return err(toAttemptFault(end));
    if (end !== null) return err(broken('[DONE] and nothing else'));
  }
}

async function attemptJson(call: UpstreamCall, backend: Backend): Promise<Result<OpenedJson, AttemptFault>> {
  const started = await send(call, backend, call.ports.settings.totalDeadlineMs);
  if (!started.ok) return started;
  const text = await readBodyText(started.value.response, ANSWER_BYTES_MAX, call.held);
  if (text === null) return err(broken('the answer broke off or is too large'));
  const answer = call.endpoint.toJsonAnswer(text, toAnswerContext(call, backend));
  if (!answer.ok) return err(toAttemptFault(answer.error));
  call.run.progress = () => answer.value.progress;
  return ok({ body: answer.value.body });
}

type Started = { readonly response: Response; readonly abort: () => void };

/** Sends to one backend; a connection that dies before any header came back is tried once more (SPEC §6). */
async function send(call: UpstreamCall, backend: Backend, headersMs: number): Promise<Result<Started, AttemptFault>> {
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
      path: call.endpoint.path,
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

/** A 2xx that is no event stream: a whole JSON answer, which is relayed as one, or an error, or no answer at all. */
async function openWholeAnswer(
  call: UpstreamCall,
  backend: Backend,
  response: Response,
): Promise<Result<OpenedStream, AttemptFault>> {
  const text = (await readBodyText(response, ANSWER_BYTES_MAX, call.held)) ?? '';
  const context = toAnswerContext(call, backend);
  const answer = call.endpoint.toJsonAnswer(text, context);
  if (!answer.ok) return err(toAttemptFault(answer.error));
  const translator = call.endpoint.createTranslator(context);
  const events = toStreamEvents(parseJsonObject(text) ?? {});
  const whole = translateBatch({ type: 'events', events }, translator);
  call.run.progress = translator.progress;
  return ok({ reader: ENDED, translator, firstText: whole.text, firstEnd: whole.end });
}

/** A weighted draw without replacement: the order in which backends are asked. */
function orderBackends(backends: readonly Backend[], randomBytes: Ports['randomBytes']): readonly Backend[] {
  const rest = [...backends];
  const ordered: Backend[] = [];
  while (rest.length > 1) {
    const total = rest.reduce((sum, { weight }) => sum + weight, 0);
    const [high = 0, low = 0] = randomBytes(2);
    let mark = ((high * 256 + low) / 65_536) * total;
    const drawn = rest.findIndex(({ weight }) => (mark -= weight) < 0);
    ordered.push(...rest.splice(Math.max(0, drawn), 1));
  }
  return [...ordered, ...rest];
}

function isEventStream(response: Response): boolean {
  return (response.headers.get('content-type') ?? '').toLowerCase().startsWith('text/event-stream');
}

/** A request that the engine found at fault stays at fault with any other backend. */
function toAttemptFault(fault: UpstreamFault): AttemptFault {
  const { kind } = fault.error;
  return {
    error: fault.error,
    detail: fault.detail,
    final: kind === 'upstream_rejected' || kind === 'invalid_parameter',
  };
}

function unreachable(detail: string): AttemptFault {
  return { error: { kind: 'upstream', failure: 'upstream_unreachable' }, detail, final: false };
}

function broken(detail: string): AttemptFault {
  return { error: { kind: 'upstream', failure: 'upstream_error' }, detail, final: false };
}

function timedOut(detail: string): AttemptFault {
  return { error: { kind: 'upstream', failure: 'upstream_timeout' }, detail, final: false };
}

/** What an answer is made with: everything of the request but its body. */
function toAnswerContext({ context }: UpstreamCall, backend: Backend): AnswerContext {
  const { body: _body, ...request } = context.request;
  return { ...context, request, backend };
}
