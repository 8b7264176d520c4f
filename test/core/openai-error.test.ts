// Every error as an answer: status, type, code, param and hints of SPEC §3's table; nothing internal in a message.

import { describe, expect, test } from 'vitest';
import { type GatewayError, type UpstreamFailure } from '../../src/core/errors.ts';
import { toOpenAIError } from '../../src/core/openai-error.ts';

const LIMIT = { scope: 'key', limit: 60, used: 60, requested: 1 } as const;
const SOON = { 'x-should-retry': 'true', 'retry-after': '1', 'retry-after-ms': '1000' };
const RETRY = { 'x-should-retry': 'true' };
const NEVER = { 'x-should-retry': 'false' };
const INVALID = 'invalid_request_error';

function upstream(failure: UpstreamFailure): GatewayError {
  return { kind: 'upstream', failure };
}

test.each<[GatewayError, number, string, string | null, string | null, Record<string, string>]>([
  [{ kind: 'invalid_api_key', reason: 'x' }, 401, INVALID, 'invalid_api_key', null, { 'www-authenticate': 'Bearer' }],
  [{ kind: 'insufficient_scope', scope: 'a' }, 403, INVALID, 'insufficient_scope', null, {}],
  [{ kind: 'auth_unavailable' }, 503, 'server_error', 'auth_unavailable', null, SOON],
  [{ kind: 'catalog_unavailable' }, 503, 'server_error', 'catalog_unavailable', null, SOON],
  [{ kind: 'insufficient_quota' }, 429, 'insufficient_quota', 'insufficient_quota', null, NEVER],
  [{ kind: 'limiter_unavailable' }, 503, 'server_error', 'limiter_unavailable', null, SOON],
  [{ kind: 'model_not_found', model: 'm' }, 404, INVALID, 'model_not_found', 'model', {}],
  [{ kind: 'invalid_json', reason: 'x' }, 400, INVALID, 'invalid_json', null, {}],
  [
    { kind: 'invalid_parameter', code: 'invalid_type', param: 'messages[0].role', message: 'x' },
    400,
    INVALID,
    'invalid_type',
    'messages[0].role',
    {},
  ],
  [{ kind: 'upstream_rejected', message: 'x', param: 'stop', code: null }, 400, INVALID, null, 'stop', {}],
  [
    { kind: 'rate_limited', bucket: 'requests', ...LIMIT, retryAfterMs: 9816 },
    429,
    'requests',
    'rate_limit_exceeded',
    null,
    { ...RETRY, 'retry-after': '10', 'retry-after-ms': '9816' },
  ],
  [
    { kind: 'rate_limited', bucket: 'tokens', ...LIMIT, retryAfterMs: 90_000 },
    429,
    'tokens',
    'rate_limit_exceeded',
    null,
    { ...RETRY, 'retry-after': '60', 'retry-after-ms': '60000' },
  ],
  [
    { kind: 'concurrency_limited', scope: 'key', limit: 8, used: 8 },
    429,
    'requests',
    'concurrency_limit_exceeded',
    null,
    SOON,
  ],
  [
    { kind: 'request_above_bucket', scope: 'key', limit: 8, requested: 9 },
    429,
    'tokens',
    'rate_limit_exceeded',
    null,
    NEVER,
  ],
  [{ kind: 'request_too_large', bodyBytesMax: 5 }, 413, INVALID, 'request_too_large', null, {}],
  [{ kind: 'unsupported_content_type', contentType: 'a/b' }, 415, INVALID, 'unsupported_content_type', null, {}],
  [
    { kind: 'unsupported_content_encoding', contentEncoding: 'br' },
    415,
    INVALID,
    'unsupported_content_encoding',
    null,
    {},
  ],
  [
    { kind: 'method_not_supported', method: 'GET', path: '/v1/x', allow: 'POST, OPTIONS' },
    405,
    INVALID,
    'method_not_supported',
    null,
    { allow: 'POST, OPTIONS' },
  ],
  [{ kind: 'unknown_url', method: 'GET', path: '/v1/nope' }, 404, INVALID, 'unknown_url', null, {}],
  [upstream('upstream_unreachable'), 502, 'server_error', 'upstream_unreachable', null, RETRY],
  [upstream('upstream_error'), 502, 'server_error', 'upstream_error', null, RETRY],
  [upstream('upstream_timeout'), 502, 'server_error', 'upstream_timeout', null, RETRY],
  [upstream('upstream_disconnected'), 502, 'server_error', 'upstream_disconnected', null, RETRY],
  [upstream('upstream_misconfigured'), 502, 'server_error', 'upstream_misconfigured', null, NEVER],
  [upstream('server_is_overloaded'), 503, 'service_unavailable_error', 'server_is_overloaded', null, SOON],
  [{ kind: 'internal_error' }, 500, 'server_error', 'internal_error', null, {}],
])('§3 %j', (error, status, type, code, param, headers) => {
  const answer = toOpenAIError(error);
  expect(answer).toEqual({
    status,
    headers,
    body: { error: { message: expect.stringMatching(/./), type, param, code } },
  });
});

describe('messages', () => {
  test('§3 a refusal by a limit names scope, limit, used, requested and the whole wait', () => {
    const { body } = toOpenAIError({ kind: 'rate_limited', bucket: 'tokens', ...LIMIT, retryAfterMs: 90_500 });
    expect(body.error.message).toBe(
      'Rate limit reached for this key on tokens per minute: Limit 60, Used 60, Requested 1. Please try again in 90.5s.',
    );
    const full = toOpenAIError({ kind: 'concurrency_limited', scope: 'workspace', limit: 8, used: 8 });
    expect(full.body.error.message).toMatch(/workspace: Limit 8, Used 8, Requested 1/);
  });

  test('§7 request_stopped is a server_error inside a stream', () => {
    expect(toOpenAIError({ kind: 'request_stopped' }).body.error).toMatchObject({
      type: 'server_error',
      code: 'request_stopped',
    });
  });
});
