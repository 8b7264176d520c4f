// The public routes on hono, and the one exit for errors. Shapes only: what is decided is decided in the gateway room.

import { type Context, Hono } from 'hono';
import { type Caller } from '../core/api-key.ts';
import { type GatewayError } from '../core/errors.ts';
import { toOpenAIError } from '../core/openai-error.ts';
import { buildRequestId } from '../core/request-id.ts';
import { type Result } from '../core/result.ts';
import { toRateLimitHeaders } from '../core/retry-hints.ts';
import { type ByteBudget } from '../gateway/byte-budget.ts';
import { createIsolate, type Isolate } from '../gateway/isolate.ts';
import { handleInference, type Inbound } from '../gateway/handle-inference.ts';
import { type Credentials, identifyReader } from '../gateway/identify-caller.ts';
import { listModels, readModel } from '../gateway/list-models.ts';
import { listReceipts } from '../gateway/list-receipts.ts';
import { type Ports } from '../gateway/ports.ts';
import { createReadLimiter } from '../gateway/read-limiter.ts';
import { readCredits } from '../gateway/read-credits.ts';
import { readReceipt } from '../gateway/read-receipt.ts';
import { sumUsage } from '../gateway/sum-usage.ts';
import { type Endpoint } from '../openai/endpoint.ts';
import { SERVED_ENDPOINTS } from '../openai/served-endpoints.ts';
import { buildCorsHeaders, buildPreflightHeaders } from './cors.ts';
import { describeApi } from './describe-api.ts';
import { discardBody } from './discard-body.ts';
import { buildDocsPage, readDocsHeaders } from './docs-page.ts';
import { readRequestBody } from './read-request-body.ts';

type Env = { Variables: { requestId: string; receivedAtMs: number } };
type App = Hono<Env>;
type Read = (caller: Caller, context: Context<Env>) => Promise<Result<unknown, GatewayError>>;

/** The gateway as an HTTP application. */
export function createApp(ports: Ports): App {
  const app: App = new Hono<Env>({ strict: true });
  app.use(async (context, next) => {
    const receivedAtMs = ports.now();
    const requestId = buildRequestId(receivedAtMs, ports.randomBytes(16));
    context.set('requestId', requestId);
    context.set('receivedAtMs', receivedAtMs);
    await next();
    if (context.res.status >= 400) await discardBody(context.req.raw);
    const cors = buildCorsHeaders(context.req.header('origin') ?? null, ports.settings.corsOrigins);
    for (const [name, value] of Object.entries(cors)) context.res.headers.set(name, value);
    context.res.headers.set('x-request-id', requestId);
  });
  const isolate = createIsolate(ports);
  for (const endpoint of SERVED_ENDPOINTS) addInference(app, ports, isolate, endpoint);
  addReads(app, ports);
  addRoute(app, ports, 'GET', '/health', (context) => context.json({ status: 'ok' }));
  addRoute(app, ports, 'GET', '/openapi.json', (context) => context.json(describeApi(readOrigin(context))));
  addRoute(app, ports, 'GET', '/docs', async (context) => {
    return context.body(buildDocsPage(readOrigin(context)), 200, await readDocsHeaders());
  });
  app.notFound((context) => {
    return answerError(context, ports, { kind: 'unknown_url', method: context.req.method, path: context.req.path });
  });
  app.onError((bug, context) => {
    ports.log({ event: 'bug', request_id: context.get('requestId'), message: bug.message, stack: bug.stack });
    return answerError(context, ports, { kind: 'internal_error' });
  });
  return app;
}

type Handler = (context: Context<Env>) => Promise<Response> | Response;

/** One path with its one method: OPTIONS is a preflight, HEAD goes with GET, everything else is 405. */
function addRoute(app: App, ports: Ports, method: 'GET' | 'POST', path: string, handle: Handler): void {
  const allow = method === 'GET' ? 'GET, HEAD, OPTIONS' : 'POST, OPTIONS';
  app.on(method, path, handle);
  app.on('OPTIONS', path, (context) => {
    const requested = context.req.header('access-control-request-headers') ?? null;
    return context.body(null, 204, { allow, ...buildPreflightHeaders(allow, requested) });
  });
  app.all(path, (context) => {
    const { method: used, path: asked } = context.req;
    return answerError(context, ports, { kind: 'method_not_supported', method: used, path: asked, allow });
  });
}

function addInference(app: App, ports: Ports, isolate: Isolate, endpoint: Endpoint): void {
  addRoute(app, ports, 'POST', endpoint.path, async (context) => {
    const answer = await handleInference(ports, isolate, endpoint, toInbound(context, isolate.budget));
    if (!answer.ok) {
      const { error, rates, admitted } = answer.error;
      return answerError(context, ports, error, rates === null ? {} : toRateLimitHeaders(rates), admitted);
    }
    const { body, stream, rates } = answer.value;
    return context.body(body, 200, {
      ...toRateLimitHeaders(rates),
      ...(stream
        ? {
            'content-type': 'text/event-stream; charset=utf-8',
            'cache-control': 'no-cache, no-transform',
            'x-accel-buffering': 'no',
          }
        : { 'content-type': 'application/json' }),
    });
  });
}

function toInbound(context: Context<Env>, budget: ByteBudget): Inbound {
  const held = budget.open();
  const request = context.req.raw;
  const length = request.headers.get('content-length');
  return {
    requestId: context.get('requestId'),
    receivedAtMs: context.get('receivedAtMs'),
    credentials: readCredentials(request),
    clientRequestId: request.headers.get('x-client-request-id')?.slice(0, 128) ?? null,
    contentLength: length === null ? null : Number(length),
    held,
    readBody: () => readRequestBody(request, held),
    signal: request.signal,
    waitUntil: (work) => context.executionCtx.waitUntil(work),
  };
}

function readCredentials({ headers }: Request): Credentials {
  return { authorization: headers.get('authorization'), address: headers.get('cf-connecting-ip') };
}

function addReads(app: App, ports: Ports): void {
  const limit = createReadLimiter();
  const addRead = (path: string, scope: string | null, read: Read): void => {
    addRoute(app, ports, 'GET', path, async (context) => {
      const caller = await identifyReader(ports, readCredentials(context.req.raw), scope);
      if (!caller.ok) return answerError(context, ports, caller.error);
      const allowed = limit(caller.value.keyId, ports.now());
      if (!allowed.ok) return answerError(context, ports, allowed.error);
      const answer = await read(caller.value, context);
      if (!answer.ok) return answerError(context, ports, answer.error);
      return context.body(JSON.stringify(answer.value), 200, { 'content-type': 'application/json' });
    });
  };
  addRead('/v1/models', 'models:read', (caller) => listModels(ports, caller));
  addRead('/v1/models/:id{.+}', 'models:read', (caller, context) => readModel(ports, caller, readTail(context)));
  addRead('/v1/credits', 'receipts:read', (caller) => readCredits(ports, caller));
  addRead('/v1/receipts', null, (caller, context) => listReceipts(ports, caller, readSearch(context)));
  addRead('/v1/receipts/:id', null, (caller, context) => readReceipt(ports, caller, readTail(context)));
  addRead('/v1/usage', 'receipts:read', (caller, context) => sumUsage(ports, caller, readSearch(context)));
}

/** The URL of a request; null where its Host header is none that a URL can have. */
function readUrl(context: Context<Env>): URL | null {
  return URL.parse(context.req.url);
}

function readOrigin(context: Context<Env>): string {
  return readUrl(context)?.origin ?? '';
}

function readSearch(context: Context<Env>): URLSearchParams {
  return readUrl(context)?.searchParams ?? new URLSearchParams();
}

/** What follows the route's own part of the path, percent-decoded once where it can be. */
function readTail(context: Context<Env>): string {
  const tail = (readUrl(context)?.pathname ?? context.req.path).split('/').slice(3).join('/');
  try {
    return decodeURIComponent(tail);
  } catch {
    return tail;
  }
}

/** The one exit of every error: envelope, hints, and one line in the log unless a receipt tells of it. */
function answerError(
  context: Context<Env>,
  ports: Ports,
  error: GatewayError,
  headers: Readonly<Record<string, string>> = {},
  admitted = false,
): Response {
  const answer = toOpenAIError(error);
  if (!admitted) {
    ports.log({
      event: 'refused',
      request_id: context.get('requestId'),
      method: context.req.method,
      path: context.req.path,
      http_status: answer.status,
      error_code: answer.body.error.code,
    });
  }
  return new Response(JSON.stringify(answer.body), {
    status: answer.status,
    headers: { 'content-type': 'application/json', ...answer.headers, ...headers },
  });
}
