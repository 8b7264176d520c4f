// The one translation of an error into OpenAI's envelope and HTTP (SPEC §3). Messages say nothing internal: hosts,
// stacks and other tenants stay in the log.

import { type GatewayError, type UpstreamFailure } from './errors.ts';
import { buildErrorAnswer as answer, type OpenAIError } from './error-envelope.ts';
import { toLimitFault } from './limit-error.ts';
import { toHttpHints } from './retry-hints.ts';

/**
 * Translates an error into its HTTP answer. Exhaustive over {@link GatewayError}.
 * Source: SPEC §3; OpenAI's envelope and codes as recorded in WIRE §1.
 */
export function toOpenAIError(error: GatewayError): OpenAIError {
  switch (error.kind) {
    case 'invalid_api_key':
      return answer(401, error.reason, 'invalid_request_error', 'invalid_api_key', null, {
        'www-authenticate': 'Bearer',
      });
    case 'insufficient_scope':
      return answer(403, `This key lacks the scope ${error.scope}.`, 'invalid_request_error', 'insufficient_scope');
    case 'model_not_found':
      return answer(
        404,
        `The model \`${error.model}\` does not exist or you do not have access to it.`,
        'invalid_request_error',
        'model_not_found',
        'model',
      );
    case 'receipt_not_found':
      return answer(404, 'No such receipt.', 'invalid_request_error', 'receipt_not_found');
    case 'invalid_json':
      return answer(400, error.reason, 'invalid_request_error', 'invalid_json');
    case 'invalid_parameter':
      return answer(400, error.message, 'invalid_request_error', error.code, error.param);
    case 'upstream_rejected':
      return answer(400, error.message, 'invalid_request_error', error.code, error.param);
    case 'client_closed_request':
      return answer(499, 'The client closed the connection.', 'invalid_request_error', 'client_closed_request');
    case 'request_too_large':
    case 'unsupported_content_type':
    case 'unsupported_content_encoding':
    case 'method_not_supported':
    case 'unknown_url':
      return toHttpFault(error);
    case 'too_many_failed_keys':
    case 'rate_limited':
    case 'request_above_bucket':
    case 'concurrency_limited':
    case 'insufficient_quota':
      return toLimitFault(error);
    case 'auth_unavailable':
    case 'catalog_unavailable':
    case 'limiter_unavailable':
    case 'upstream':
    case 'request_stopped':
    case 'internal_error':
      return toServerFault(error);
  }
}

type HttpFault = Extract<
  GatewayError,
  {
    kind:
      | 'request_too_large'
      | 'unsupported_content_type'
      | 'unsupported_content_encoding'
      | 'method_not_supported'
      | 'unknown_url';
  }
>;

function toHttpFault(error: HttpFault): OpenAIError {
  const type = 'invalid_request_error';
  switch (error.kind) {
    case 'request_too_large':
      return answer(413, `Request body exceeds the limit of ${error.bodyBytesMax} bytes.`, type, error.kind);
    case 'unsupported_content_type':
      return answer(415, `Unsupported content type: '${error.contentType}'. Use 'application/json'.`, type, error.kind);
    case 'unsupported_content_encoding':
      return answer(
        415,
        `Unsupported content encoding: '${error.contentEncoding}'. Use gzip, deflate or none.`,
        type,
        error.kind,
      );
    case 'method_not_supported':
      return answer(405, `Method ${error.method} is not supported for ${error.path}.`, type, error.kind, null, {
        allow: error.allow,
      });
    case 'unknown_url':
      return answer(404, `Unknown request URL: ${error.method} ${error.path}.`, type, error.kind);
  }
}

type ServerFault = Extract<
  GatewayError,
  {
    kind:
      | 'auth_unavailable'
      | 'catalog_unavailable'
      | 'limiter_unavailable'
      | 'upstream'
      | 'request_stopped'
      | 'internal_error';
  }
>;

function toServerFault(error: ServerFault): OpenAIError {
  const soon = toHttpHints({ retry: true, afterMs: 1000 });
  switch (error.kind) {
    case 'auth_unavailable':
      return answer(
        503,
        'The API key could not be validated right now. Retry shortly.',
        'server_error',
        error.kind,
        null,
        soon,
      );
    case 'catalog_unavailable':
      return answer(
        503,
        'This model is not available right now. Retry shortly.',
        'server_error',
        error.kind,
        null,
        soon,
      );
    case 'limiter_unavailable':
      return answer(
        503,
        'Limits could not be checked right now. Retry shortly.',
        'server_error',
        error.kind,
        null,
        soon,
      );
    case 'request_stopped':
      return answer(401, 'The request was stopped: its key is no longer valid.', 'server_error', error.kind);
    case 'internal_error':
      return answer(500, 'The gateway failed to handle this request.', 'server_error', error.kind);
    case 'upstream':
      return toUpstreamFault(error.failure);
  }
}

function toUpstreamFault(failure: UpstreamFailure): OpenAIError {
  const hints = toHttpHints({ retry: failure !== 'upstream_misconfigured' });
  switch (failure) {
    case 'upstream_unreachable':
      return answer(502, 'The upstream inference endpoint could not be reached.', 'server_error', failure, null, hints);
    case 'upstream_error':
      return answer(502, 'The upstream inference endpoint failed.', 'server_error', failure, null, hints);
    case 'upstream_timeout':
      return answer(
        502,
        'The upstream inference endpoint did not answer in time.',
        'server_error',
        failure,
        null,
        hints,
      );
    case 'upstream_disconnected':
      return answer(502, 'The upstream inference endpoint broke off its answer.', 'server_error', failure, null, hints);
    case 'upstream_misconfigured':
      return answer(
        502,
        'The upstream inference endpoint is not set up correctly.',
        'server_error',
        failure,
        null,
        hints,
      );
    case 'server_is_overloaded':
      return answer(
        503,
        'The model is overloaded. Retry shortly.',
        'service_unavailable_error',
        failure,
        null,
        toHttpHints({ retry: true, afterMs: 1000 }),
      );
  }
}
