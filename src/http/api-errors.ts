// The errors a caller can meet, as GET /openapi.json and GET /docs tell them. What is really answered is decided in
// core/openai-error.ts; test/http/describe-api.test.ts holds this table to it in both directions.

import { type ErrorType } from '../core/error-envelope.ts';

/** Where an error can occur: in every answer, with a key, in a read's query, in inference, in its stream only. */
export type ErrorPlace = 'everywhere' | 'key' | 'query' | 'receipt' | 'model' | 'limiter' | 'inference' | 'stream';

/** One kind of error. `status` is that of the answer; inside a stream the status was 200. */
export type ApiError = {
  readonly status: number;
  readonly type: ErrorType;
  readonly code: string;
  readonly places: readonly ErrorPlace[];
  readonly when: string;
};

const REQUEST = 'invalid_request_error';
const SERVER = 'server_error';

function error(status: number, type: ErrorType, code: string, places: readonly ErrorPlace[], when: string): ApiError {
  return { status, type, code, places, when };
}

/** All of them, by status. */
export const API_ERRORS: readonly ApiError[] = [
  error(400, REQUEST, 'invalid_json', ['inference'], 'not UTF-8, not a JSON object, nested over 128 deep, a key twice'),
  error(400, REQUEST, 'missing_required_parameter', ['inference', 'query'], 'a required field is missing or null'),
  error(400, REQUEST, 'invalid_type', ['inference', 'query'], 'a field has the wrong type'),
  error(400, REQUEST, 'invalid_value', ['inference', 'query'], 'a field has a value that does not exist'),
  error(400, REQUEST, 'integer_below_min_value', ['inference', 'query'], 'a whole number is too small'),
  error(400, REQUEST, 'integer_above_max_value', ['inference', 'query'], 'a whole number is too large'),
  error(400, REQUEST, 'decimal_below_min_value', ['inference'], 'a number is too small'),
  error(400, REQUEST, 'decimal_above_max_value', ['inference'], 'a number is too large'),
  error(400, REQUEST, 'array_above_max_length', ['inference'], 'an array is too long'),
  error(400, REQUEST, 'string_above_max_length', ['inference'], 'a text is too long'),
  error(400, REQUEST, 'empty_array', ['inference'], 'an array is empty'),
  error(400, REQUEST, 'unsupported_parameter', ['inference'], 'the model cannot do what the field asks for'),
  error(
    400,
    REQUEST,
    'unsupported_value',
    ['inference'],
    'the model cannot do it with this value, or not on this endpoint',
  ),
  error(400, REQUEST, 'unknown_parameter', ['inference', 'query'], 'the field does not exist'),
  error(400, REQUEST, 'context_length_exceeded', ['inference'], 'prompt and output limit do not fit the context'),
  error(
    401,
    REQUEST,
    'invalid_api_key',
    ['key'],
    'the key is missing, malformed, unknown, expired, disabled or revoked',
  ),
  error(403, REQUEST, 'insufficient_scope', ['key'], 'the key lacks the scope of this endpoint'),
  error(404, REQUEST, 'model_not_found', ['inference', 'model'], 'no such model, or not for this key'),
  error(404, REQUEST, 'receipt_not_found', ['receipt'], 'no such receipt, or not this key’s'),
  error(404, REQUEST, 'unknown_url', [], 'no such route'),
  error(405, REQUEST, 'method_not_supported', [], 'another method; Allow names the right ones'),
  error(413, REQUEST, 'request_too_large', ['inference'], 'the body is over 5 MiB, decoded'),
  error(415, REQUEST, 'unsupported_content_type', ['inference'], 'the body is not JSON'),
  error(415, REQUEST, 'unsupported_content_encoding', ['inference'], 'the encoding is not identity, gzip or deflate'),
  error(429, 'requests', 'rate_limit_exceeded', ['key', 'inference'], 'requests per minute; Retry-After says when'),
  error(
    429,
    'tokens',
    'rate_limit_exceeded',
    ['inference'],
    'tokens per minute; x-should-retry is false where it can never fit',
  ),
  error(429, 'requests', 'concurrency_limit_exceeded', ['inference'], 'too many requests in flight'),
  error(429, 'insufficient_quota', 'insufficient_quota', ['inference'], 'out of credits; not to be tried again'),
  error(499, REQUEST, 'client_closed_request', [], 'the client left before the answer: seen in logs alone'),
  error(500, SERVER, 'internal_error', ['everywhere'], 'a bug of the gateway'),
  error(502, SERVER, 'upstream_unreachable', ['inference'], 'the inference server could not be reached'),
  error(502, SERVER, 'upstream_error', ['inference'], 'the inference server failed'),
  error(502, SERVER, 'upstream_timeout', ['inference'], 'the inference server did not answer in time'),
  error(
    502,
    SERVER,
    'upstream_misconfigured',
    ['inference'],
    'the operator has to mend the gateway; not to be tried again',
  ),
  error(503, SERVER, 'auth_unavailable', ['key'], 'keys cannot be checked right now'),
  error(503, SERVER, 'catalog_unavailable', ['inference', 'model'], 'the model’s entry cannot be used right now'),
  error(
    503,
    SERVER,
    'limiter_unavailable',
    ['inference', 'limiter', 'receipt'],
    'limits or receipts cannot be read right now',
  ),
  error(
    503,
    'service_unavailable_error',
    'server_is_overloaded',
    ['inference'],
    'the model has no room; Retry-After says when',
  ),
  error(502, SERVER, 'upstream_disconnected', ['stream'], 'inside a stream: the inference server broke off'),
  error(401, SERVER, 'request_stopped', ['stream'], 'inside a stream: the key was revoked or disabled'),
];
