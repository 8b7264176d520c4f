// Reads an engine's error in whatever shape it comes and decides what the client is told (SPEC §3, WIRE §4e). Texts of
// an engine reach the client only where the client's own request is at fault, shortened and without addresses.

import { type GatewayError, type UpstreamFailure } from '../core/errors.ts';
import { isObject, type JsonObject, parseJsonObject, readObject, readText } from '../core/json-read.ts';
import { type UpstreamFault } from './endpoint.ts';
import { toResponsesParam } from './responses-names.ts';

const MESSAGE_MAX = 500;
/** Of an engine's error only its kind goes to the log: the text may repeat the prompt. */
const KIND_MAX = 64;
const CONTEXT_OVERFLOW =
  /context[ _](size|window|length)|maximum model length|inputs.{0,3} tokens.{0,3}\+ .{0,3}max_new_tokens/i;
/** What of an engine's insides may stand in its messages: addresses, absolute paths, keys. */
const INTERNAL = new RegExp(
  [
    String.raw`\b[a-z][a-z0-9+.-]*://\S+`,
    String.raw`\b(?:\d{1,3}\.){3}\d{1,3}(?::\d+)?`,
    String.raw`\[(?:[0-9a-f]*:){2,}[0-9a-f.]*\](?::\d+)?`,
    String.raw`\b(?:localhost|[\w-]+(?:\.[\w-]+)+):\d{2,5}\b`,
    String.raw`(?<!\w)/(?:[\w.@-]+/)+[\w.@-]+`,
    String.raw`\b(?:sk|hf|tp)[-_][\w-]{8,}`,
    String.raw`\bbearer \S+`,
  ].join('|'),
  'gi',
);
const STACK_TRACE = /\s*Traceback \(most recent call last\)[^]*$/;

/**
 * The fault behind an HTTP answer that is not a success.
 *
 * @param contextParam The request field that a context overflow is blamed on: messages, prompt or input.
 */
export function readUpstreamStatus(status: number, text: string, contextParam: string): UpstreamFault {
  const said = readMessage(text);
  const detail = `status ${status}${said.kind === '' ? '' : ` (${said.kind.slice(0, KIND_MAX)})`}`;
  if (status === 400 || status === 422) return { error: toRejection(said, contextParam), detail };
  return { error: { kind: 'upstream', failure: toFailure(status) }, detail };
}

/**
 * The fault in a JSON object that should have been an answer: an `error` member, or an error object itself.
 *
 * @returns null when the object carries no error.
 */
export function readEmbeddedError(
  value: Readonly<Record<string, unknown>>,
  contextParam: string,
): UpstreamFault | null {
  const error = value['error'] ?? (value['object'] === 'error' ? value : null);
  if (error === null || error === undefined || error === false) return null;
  const text = JSON.stringify({ error });
  const code = readObject(error)['code'] ?? readObject(error)['http_status_code'];
  const status = typeof code === 'number' ? code : 500;
  return readUpstreamStatus(CONTEXT_OVERFLOW.test(text) ? 400 : status, text, contextParam);
}

/** SGLang ends an aborted generation with the finish reason `abort`: not an answer, though it looks like one. */
export function readAbort(answer: JsonObject): UpstreamFault | null {
  const list: unknown = answer['choices'];
  const aborted = Array.isArray(list) && list.some((item) => isObject(item) && item['finish_reason'] === 'abort');
  return aborted ? { error: { kind: 'upstream', failure: 'upstream_error' }, detail: 'finish_reason abort' } : null;
}

type Said = { readonly message: string; readonly param: string | null; readonly kind: string; readonly code: string };

function toRejection(said: Said, contextParam: string): GatewayError {
  // Cut before it is searched: what an engine sends has no bound.
  const head = said.message.slice(0, 4 * MESSAGE_MAX).replace(STACK_TRACE, '');
  const message = head.replace(INTERNAL, '…').slice(0, MESSAGE_MAX);
  if (CONTEXT_OVERFLOW.test(`${head} ${said.kind} ${said.code}`)) {
    return { kind: 'invalid_parameter', code: 'context_length_exceeded', param: contextParam, message };
  }
  return {
    kind: 'upstream_rejected',
    message: message === '' ? 'The model did not accept this request.' : message,
    // Of a request that was translated the engine knows other names.
    param: said.param !== null && contextParam === 'input' ? toResponsesParam(said.param) : said.param,
    code: null,
  };
}

function toFailure(status: number): UpstreamFailure {
  if (status === 401 || status === 403 || status === 404) return 'upstream_misconfigured';
  if (status === 429 || status === 503) return 'server_is_overloaded';
  return 'upstream_error';
}

/** {error:{message}} · {error:"…"} · {object:"error",message} · {detail:"…"} · {detail:[{loc,msg}]} · {message} · text. */
function readMessage(text: string): Said {
  const body = parseJsonObject(text);
  if (body === null) return { message: text.trimStart().startsWith('<') ? '' : text, param: null, kind: '', code: '' };
  const error = isObject(body['error']) ? body['error'] : body;
  const detail = body['detail'];
  const first: unknown = Array.isArray(detail) ? detail[0] : undefined;
  const message =
    readText(error['message']) || readText(body['error']) || readText(detail) || readText(readObject(first)['msg']);
  const param = readText(error['param']) || null;
  return { message, param, kind: readText(error['type']), code: readText(error['code']) };
}
