// Forwards one request of the gateway to the inference server: four exact routes, three request headers, nothing else.
// One more route, GET /health, is answered here; it alone asks the server for its load.
// Bytes and cancellation pass through: the upstream response is returned as it came, its body never read here.
// It does not retry, parse, follow redirects or map errors; the gateway decides about all of that.

import { reportHealth } from './report-health.ts';
import type { SendUpstream } from './send-upstream.ts';
import { parseBridgeConfig, type BridgeConfig, type BridgeEnv } from './parse-bridge-config.ts';

// The target is taken from this table and never from the client's URL, so no spelling of a path leads elsewhere.
const upstreamPaths: ReadonlyMap<string, string> = new Map([
  ['POST /v1/chat/completions', '/chat/completions'],
  ['POST /v1/completions', '/completions'],
  ['POST /v1/responses', '/responses'],
  ['GET /v1/models', '/models'],
]);

const HEALTH_ROUTE = 'GET /health';

// An allow-list: what a caller or Cloudflare adds (authorization, cookie, cf-*, x-forwarded-*) stays here.
const forwardedHeaders = ['content-type', 'accept', 'x-request-id'];

/**
 * Answers one request at the named entrypoint. Rejects when `send` rejects: the gateway tells an unreachable server
 * from one that answers by exactly that.
 */
export async function forwardRequest(request: Request, env: BridgeEnv, send: SendUpstream): Promise<Response> {
  const route = `${request.method} ${new URL(request.url).pathname}`;
  const path = upstreamPaths.get(route);
  if (path === undefined && route !== HEALTH_ROUTE) return toNotFound();
  const parsed = parseBridgeConfig(env);
  if (!parsed.ok) return toErrorResponse(500, 'bridge_misconfigured', parsed.message);
  const { baseUrl } = parsed.config;
  const headers = buildUpstreamHeaders(request.headers, parsed.config);
  if (path === undefined) return Response.json(await reportHealth(baseUrl, headers, send));
  return send(baseUrl + path, {
    method: request.method,
    headers,
    body: request.body,
    // A redirect could lead the key to another host.
    redirect: 'manual',
    signal: request.signal,
  });
}

/** The answer to every path that is not an inference path, and to everything at the default export. */
export function toNotFound(): Response {
  return toErrorResponse(404, 'unknown_url', 'This Worker answers only the gateway that is bound to it.');
}

function buildUpstreamHeaders(inbound: Headers, config: BridgeConfig): Headers {
  const headers = new Headers();
  for (const name of forwardedHeaders) {
    const value = inbound.get(name);
    if (value !== null) headers.set(name, value);
  }
  if (config.apiKey !== null) headers.set('authorization', `Bearer ${config.apiKey}`);
  return headers;
}

function toErrorResponse(status: number, code: string, message: string): Response {
  const type = status === 404 ? 'invalid_request_error' : 'server_error';
  return Response.json({ error: { message, type, param: null, code } }, { status });
}
