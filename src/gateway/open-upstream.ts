// Gets an answer going: tries the backends in turn until one has shown its first event (or, not streamed, its whole
// answer), within one deadline (SPEC §6). What the client must be told when none does is the last fault.

import { parseJsonObject } from '../core/json-read.ts';
import { orderBackends } from '../core/backend-order.ts';
import { type Backend } from '../core/model-entry.ts';
import { err, ok, type Result } from '../core/result.ts';
import { type AnswerContext, type UpstreamFault } from '../openai/endpoint.ts';
import { readConversationPrefix } from '../openai/conversation-prefix.ts';
import { withDeadline } from './deadline.ts';
import { readBodyText } from './read-body-text.ts';
import { type RunEnd } from './run.ts';
import { type AttemptFault, broken, send, timedOut, toAttemptFault, unreachable } from './send-upstream.ts';
import { type UpstreamCall } from './upstream-call.ts';
import { createStreamTranslation, readTranslated, type StreamTranslation } from './stream-translation.ts';
import { createTextReader, type TextReader } from './text-reader.ts';

/** A stream whose first event is known to be good. */
export type OpenedStream = {
  readonly reader: TextReader;
  readonly translation: StreamTranslation;
  /** The client's bytes for the first events, and the end if it came with them. */
  readonly firstText: string;
  readonly firstEnd: RunEnd | null;
  /** What the native lane goes on with; null where the stream must be written anew. */
  readonly native: NativeStart | null;
};

/** A stream that may reach the client as the engine wrote it: its text so far, and its terminal marker. */
export type NativeStart = { readonly text: string; readonly done: string; readonly outputTokensMax: number };

/** A whole answer in normal form. */
export type OpenedJson = { readonly body: string };

type Attempt<T> = (backend: Backend, leftMs: number) => Promise<Result<T, AttemptFault>>;

/** The largest JSON answer taken or put together. */
export const ANSWER_BYTES_MAX = 32 * 1024 * 1024;

/** The reader of a stream that has been read. */
const ENDED: TextReader = {
  read: () => Promise.resolve({ type: 'end', text: '', broken: false }),
  cancel: () => Promise.resolve(),
  split: () => null,
};

/** Opens a stream. */
export async function openStream(call: UpstreamCall): Promise<Result<OpenedStream, UpstreamFault>> {
  return tryBackends(call, (backend, leftMs) => attemptStream(call, backend, leftMs));
}

/** Fetches a whole JSON answer. */
export async function openJson(call: UpstreamCall): Promise<Result<OpenedJson, UpstreamFault>> {
  return tryBackends(call, (backend, leftMs) => attemptJson(call, backend, leftMs));
}

/** Asks one backend after the other; how each fared is remembered in this isolate. */
async function tryBackends<T>(call: UpstreamCall, attempt: Attempt<T>): Promise<Result<T, UpstreamFault>> {
  const deadlineAtMs = call.ports.now() + call.deadlineMs;
  let last: UpstreamFault = unreachable('no backend');
  for (const backend of chooseOrder(call)) {
    const leftMs = deadlineAtMs - call.ports.now();
    if (leftMs <= 0) break;
    call.run.backend = backend.binding;
    call.run.upstreamModel = backend.upstream_model;
    const note = call.health.begin(backend.binding);
    const result = await attempt(backend, leftMs);
    note(call.signal.aborted ? 'unknown' : result.ok || result.error.final ? 'answered' : 'failed');
    if (result.ok) return result;
    last = result.error;
    if (result.error.final || call.signal.aborted) break;
  }
  return err(last);
}

function chooseOrder({ context, run, ports, health }: UpstreamCall): readonly Backend[] {
  const { request } = context;
  const prefix = request.resolved.model.affinity === 'prefix' ? readConversationPrefix(request) : null;
  return orderBackends({
    backends: request.resolved.backends,
    random: () => readUnit(ports.randomBytes(4)),
    affinity: prefix === null ? null : `${run.reservation.receipt.workspace}\n${prefix}`,
    isOpen: ({ binding }) => health.isOpen(binding),
  });
}

/** Four random bytes as a number from 0 up to 1. */
function readUnit(bytes: Uint8Array): number {
  return bytes.reduce((unit, byte) => (unit + byte) / 256, 0);
}

async function attemptStream(
  call: UpstreamCall,
  backend: Backend,
  leftMs: number,
): Promise<Result<OpenedStream, AttemptFault>> {
  const { settings, now } = call.ports;
  const untilMs = now() + leftMs;
  const started = await send(call, backend, Math.min(settings.headersDeadlineMs, leftMs));
  if (!started.ok) return started;
  const { response, abort } = started.value;
  const { body } = response;
  if (body === null || !isEventStream(response)) return openWholeAnswer(call, backend, response);
  const translator = call.endpoint.createTranslator(toAnswerContext(call, backend));
  const translation = createStreamTranslation(translator, call.context.request.resolved.model.eventBytesMax, call.held);
  const reader = createTextReader(body);
  const heard = listenForNative(call, backend, reader);
  const first = await withDeadline(readFirst(heard.reader, translation), Math.max(1, untilMs - now()), abort);
  if (first === 'deadline') return err(timedOut('no first event'));
  if (!first.ok) {
    await reader.cancel();
    return err(first.error);
  }
  call.run.progress = translator.progress;
  return ok({
    reader,
    translation,
    firstText: first.value.text,
    firstEnd: first.value.end,
    native: heard.readStart(),
  });
}

type Heard = { readonly reader: Pick<TextReader, 'read'>; readonly readStart: () => NativeStart | null };

/** Keeps what the engine says first, where that may go on as it is; elsewhere nothing is kept. */
function listenForNative({ endpoint, context }: UpstreamCall, backend: Backend, reader: TextReader): Heard {
  const { request } = context;
  const form = endpoint.nativeForm;
  if (form?.passesUnchanged(request, backend) !== true) return { reader, readStart: () => null };
  let text = '';
  const read: TextReader['read'] = async () => {
    const piece = await reader.read();
    text += piece.text;
    return piece;
  };
  const start = (): NativeStart => ({ text, done: form.done, outputTokensMax: request.outputLimit ?? 0 });
  return { reader: { read }, readStart: () => (form.isNormal(text, backend) ? start() : null) };
}

type First = { readonly text: string; readonly end: RunEnd | null };

/** Reads until the engine has said something for the client, or failed; comments and empty chunks do not count. */
async function readFirst(
  reader: Pick<TextReader, 'read'>,
  translation: StreamTranslation,
): Promise<Result<First, AttemptFault>> {
  for (;;) {
    const { text, end } = await readTranslated(reader, translation);
    if (text !== '') return ok({ text, end });
    if (end?.type === 'failed') return err(toAttemptFault(end));
    if (end !== null) return err(broken('[DONE] and nothing else'));
  }
}

async function attemptJson(
  call: UpstreamCall,
  backend: Backend,
  leftMs: number,
): Promise<Result<OpenedJson, AttemptFault>> {
  const started = await send(call, backend, leftMs);
  if (!started.ok) return started;
  const text = await readBodyText(started.value.response, ANSWER_BYTES_MAX, call.held);
  if (text === null) return err(broken('the answer broke off or is too large'));
  const answer = call.endpoint.toJsonAnswer(text, toAnswerContext(call, backend));
  if (!answer.ok) return err(toAttemptFault(answer.error));
  call.run.progress = () => answer.value.progress;
  return ok({ body: answer.value.body });
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
  const translation = createStreamTranslation(translator, ANSWER_BYTES_MAX, call.held);
  const whole = translation.push(call.endpoint.toStreamText(parseJsonObject(text) ?? {}));
  call.run.progress = translator.progress;
  return ok({ reader: ENDED, translation, firstText: whole.text, firstEnd: whole.end, native: null });
}

function isEventStream(response: Response): boolean {
  return (response.headers.get('content-type') ?? '').toLowerCase().startsWith('text/event-stream');
}

/** What an answer is made with: everything of the request but its body. */
function toAnswerContext({ context }: UpstreamCall, backend: Backend): AnswerContext {
  const { body: _body, ...request } = context.request;
  return { ...context, request, backend };
}
