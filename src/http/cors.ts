// CORS: a preflight is answered before any key is looked at, and every answer can be read by the browser that asked
// (SPEC §1). `*` does not cover Authorization, so the request headers are named.

const ALLOWED_HEADERS = [
  'authorization',
  'content-type',
  'accept',
  'x-client-request-id',
  'idempotency-key',
  'openai-organization',
  'openai-project',
  'openai-beta',
];
const EXPOSED_HEADERS = [
  'x-request-id',
  'retry-after',
  'retry-after-ms',
  'x-should-retry',
  'x-ratelimit-limit-requests',
  'x-ratelimit-limit-tokens',
  'x-ratelimit-remaining-requests',
  'x-ratelimit-remaining-tokens',
  'x-ratelimit-reset-requests',
  'x-ratelimit-reset-tokens',
  'server-timing',
].join(', ');
const STAINLESS_HEADER = /^x-stainless-[a-z-]{1,40}$/;
const PREFLIGHT_SECONDS = '86400';

/** The headers that let a browser read an answer; none for an origin that is not allowed. */
export function buildCorsHeaders(origin: string | null, allowed: readonly string[]): Record<string, string> {
  if (allowed.includes('*')) {
    return { 'access-control-allow-origin': '*', 'access-control-expose-headers': EXPOSED_HEADERS };
  }
  if (origin === null || !allowed.includes(origin)) return { vary: 'origin' };
  return { 'access-control-allow-origin': origin, 'access-control-expose-headers': EXPOSED_HEADERS, vary: 'origin' };
}

/** The further headers of a preflight: methods, and the headers asked for that are known. */
export function buildPreflightHeaders(methods: string, requestedHeaders: string | null): Record<string, string> {
  const stainless = (requestedHeaders ?? '')
    .toLowerCase()
    .split(',')
    .map((name) => name.trim())
    .filter((name) => STAINLESS_HEADER.test(name));
  return {
    'access-control-allow-methods': methods,
    'access-control-allow-headers': [...ALLOWED_HEADERS, ...stainless].join(', '),
    'access-control-max-age': PREFLIGHT_SECONDS,
  };
}
