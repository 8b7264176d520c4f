// Reads an engine's error in whatever shape it comes and decides what the client is told (SPEC §3, WIRE §4e). Texts of
// an engine reach the client only where the client's own request is at fault, shortened and without addresses.

import { type GatewayError, type UpstreamFailure } from '../core/errors.ts';
import { isObject, parseJsonObject, readObject, readText } from '../core/json-read.ts';
import { type UpstreamFault } from './endpoint.ts';

const MESSAGE_MAX = 500;
/** Of an engine's error only its kind goes to the log: the text may repeat the prompt. */
const KIND_MAX = 64;
const CONTEXT_OVERFLOW =
  /maximum context length|context (size|window|length)|exceed_context_size|inputs.{0,3} tokens.{0,3}\+ .{0,3}max_new_tokens/i;
const ADDRESS = /\b(?:[a-z][a-z0-9+.-]*:\/\/\S+|(?:\d{1,3}\.){3}\d{1,3}(?::\d+)?|\/(?:[\w.-]+\/)+[\w.-]+)/gi;

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

type Said = { readonly message: string; readonly param: string | null; readonly kind: string };

function toRejection(said: Said, contextParam: string): GatewayError {
  const message = said.message.replace(ADDRESS, '…').slice(0, MESSAGE_MAX);
  if (CONTEXT_OVERFLOW.test(said.message)) {
    return { kind: 'invalid_parameter', code: 'context_length_exceeded', param: contextParam, message };
  }
  return {
    kind: 'upstream_rejected',
    message: message === '' ? 'The model did not accept this request.' : message,
    param: said.param,
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
  if (body === null) return { message: text.trimStart().startsWith('<') ? '' : text, param: null, kind: '' };
  const error = isObject(body['error']) ? body['error'] : body;
  const detail = body['detail'];
  const first: unknown = Array.isArray(detail) ? detail[0] : undefined;
  const message =
    readText(error['message']) || readText(body['error']) || readText(detail) || readText(readObject(first)['msg']);
  const kind = readText(error['type']);
  const param = readText(error['param']);
  return {
    message: kind === 'exceed_context_size_error' ? `${kind}: ${message}` : message,
    param: param || null,
    kind,
  };
}
