// GET /openapi.json and the tables of GET /docs against the code they describe: every route and every error is in them,
// and nothing else is (SPEC §1).

import { Validator } from '@seriousme/openapi-schema-validator';
import { expect, test } from 'vitest';
import { type GatewayError, type ParameterCode, type UpstreamFailure } from '../../src/core/errors.ts';
import { toOpenAIError } from '../../src/core/openai-error.ts';
import { API_ERRORS } from '../../src/http/api-errors.ts';
import { createApp } from '../../src/http/create-app.ts';
import { API_ROUTES, describeApi } from '../../src/http/describe-api.ts';
import { buildDocsPage } from '../../src/http/docs-page.ts';
import { CHAT_FIELDS } from '../../src/openai/chat-fields.ts';
import { readRequestSchema } from '../../src/openai/request-schemas.ts';
import { SERVED_ENDPOINTS } from '../../src/openai/served-endpoints.ts';
import { TEXT_FIELDS } from '../../src/openai/text-request.ts';
import { UNUSED_PORTS } from './unused-ports.ts';

const LIMIT = { scope: 'key', limit: 1, used: 1, requested: 1 } as const;
const RATE = { kind: 'rate_limited', ...LIMIT, retryAfterMs: 1 } as const;
const PARAMETER: Readonly<Record<ParameterCode, true>> = {
  missing_required_parameter: true,
  invalid_type: true,
  invalid_value: true,
  integer_below_min_value: true,
  integer_above_max_value: true,
  decimal_below_min_value: true,
  decimal_above_max_value: true,
  array_above_max_length: true,
  string_above_max_length: true,
  empty_array: true,
  unsupported_parameter: true,
  unsupported_value: true,
  unknown_parameter: true,
  context_length_exceeded: true,
};
const FAILURES: Readonly<Record<UpstreamFailure, true>> = {
  upstream_unreachable: true,
  upstream_error: true,
  upstream_timeout: true,
  upstream_disconnected: true,
  upstream_misconfigured: true,
  server_is_overloaded: true,
};
/** At least one error of every kind; the compiler sees to it that no kind is missing. */
const SAMPLES: { readonly [K in GatewayError['kind']]: readonly Extract<GatewayError, { kind: K }>[] } = {
  invalid_api_key: [{ kind: 'invalid_api_key', reason: 'x' }],
  too_many_failed_keys: [{ kind: 'too_many_failed_keys' }],
  insufficient_scope: [{ kind: 'insufficient_scope', scope: 'x' }],
  auth_unavailable: [{ kind: 'auth_unavailable' }],
  catalog_unavailable: [{ kind: 'catalog_unavailable' }],
  model_not_found: [{ kind: 'model_not_found', model: 'x' }],
  receipt_not_found: [{ kind: 'receipt_not_found' }],
  invalid_json: [{ kind: 'invalid_json', reason: 'x' }],
  invalid_parameter: Object.keys(PARAMETER).map((code) => {
    return {
      kind: 'invalid_parameter',
      code: isKey(PARAMETER, code) ? code : 'invalid_value',
      param: 'x',
      message: 'x',
    };
  }),
  rate_limited: [
    { ...RATE, bucket: 'requests' },
    { ...RATE, bucket: 'tokens' },
  ],
  request_above_bucket: [{ kind: 'request_above_bucket', ...LIMIT }],
  concurrency_limited: [{ kind: 'concurrency_limited', ...LIMIT }],
  insufficient_quota: [{ kind: 'insufficient_quota' }],
  request_too_large: [{ kind: 'request_too_large', bodyBytesMax: 1 }],
  unsupported_content_type: [{ kind: 'unsupported_content_type', contentType: 'x' }],
  unsupported_content_encoding: [{ kind: 'unsupported_content_encoding', contentEncoding: 'x' }],
  method_not_supported: [{ kind: 'method_not_supported', method: 'x', path: 'x', allow: 'x' }],
  unknown_url: [{ kind: 'unknown_url', method: 'x', path: 'x' }],
  upstream: Object.keys(FAILURES).map((failure) => {
    return { kind: 'upstream', failure: isKey(FAILURES, failure) ? failure : 'upstream_error' };
  }),
  // Passed on as the engine gave it: any code or none.
  upstream_rejected: [],
  request_stopped: [{ kind: 'request_stopped' }],
  client_closed_request: [{ kind: 'client_closed_request' }],
  limiter_unavailable: [{ kind: 'limiter_unavailable' }],
  internal_error: [{ kind: 'internal_error' }],
};

function isKey<K extends string>(record: Readonly<Record<K, unknown>>, key: string): key is K {
  return Object.hasOwn(record, key);
}

const DOCUMENT = describeApi('https://api.example.com');

test('§1 the document is valid OpenAPI 3.1 by a validator that is not ours', async () => {
  const result = await new Validator().validate(structuredClone(DOCUMENT));
  expect(result.errors).toBeUndefined();
  expect(result.valid).toBe(true);
});

test('§1 every route is described, and nothing else is', () => {
  const served = createApp(UNUSED_PORTS)
    .routes.filter(({ method }) => method === 'GET' || method === 'POST')
    .map(({ method, path }) => `${method.toLowerCase()} ${path.replaceAll(/:\w+(\{[^}]*\})?/g, '{}')}`);
  const described = API_ROUTES.map(({ method, path }) => `${method} ${path.replaceAll(/\{\w+\}/g, '{}')}`);
  expect(described.toSorted()).toEqual([...new Set(served)].toSorted());
  const paths = Object.keys(Object(DOCUMENT['paths']));
  expect(paths.toSorted()).toEqual(API_ROUTES.map(({ path }) => path).toSorted());
});

test('§3 every error is described with its status, type and code, and nothing else is', () => {
  const answered = Object.values(SAMPLES)
    .flat()
    .map((error) => {
      const { status, body } = toOpenAIError(error);
      return `${status} ${body.error.type} ${body.error.code}`;
    });
  const described = API_ERRORS.map(({ status, type, code }) => `${status} ${type} ${code}`);
  expect(described.toSorted()).toEqual([...new Set(answered)].toSorted());
});

test('§3 every error is in the document and on the page', () => {
  const text = JSON.stringify(DOCUMENT);
  const page = buildDocsPage('https://api.example.com');
  for (const { code, places } of API_ERRORS) {
    expect(page).toContain(`<code>${code}</code>`);
    if (places.length > 0) expect(text).toContain(code);
  }
  for (const { path } of API_ROUTES) expect(page).toContain(`<code>${path}</code>`);
});

test.each([
  ['/v1/chat/completions', CHAT_FIELDS],
  ['/v1/completions', TEXT_FIELDS],
])('§4 the request body of %s has every field that the gateway knows, and no other', (path, fields) => {
  const schema = readRequestSchema(path);
  expect(Object.keys(Object(schema['properties'])).toSorted()).toEqual([...fields].toSorted());
  expect(schema['required']).toContain('model');
});

test('§1 every endpoint that is served has a summary of its own', () => {
  for (const { path } of SERVED_ENDPOINTS) {
    expect(API_ROUTES.find((route) => route.path === path)?.summary, path).not.toBe(path);
  }
});
