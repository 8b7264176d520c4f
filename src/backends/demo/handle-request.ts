// The engine's routes: POST /v1/chat/completions, POST /v1/completions and GET /v1/models. Everything else is 404.
// Each answer is produced as it is read: one event per pull, and the reader's leaving or the request's signal stops it.
// Nothing is kept between requests.

import { toEngineError, toNotFound } from './engine-error.ts';
import { createPacer, type Clock } from './pacer.ts';
import type { AnswerHead } from './chat-wire.ts';
import type { ParseFault } from './parse-body.ts';
import { parseChatRequest, type ChatRequest } from './parse-chat-request.ts';
import { parseTextRequest, type TextRequest } from './parse-text-request.ts';
import { completeChat, streamChat, type NextTurn } from './run-chat.ts';
import { completeText, streamText } from './run-text.ts';

/** What the Worker hands in: the speed (null when the var is no speed), ids and the clock. */
export interface DemoConfig extends Clock {
  readonly tokensPerSecond: number | null;
  readonly newId: () => string;
}

// A fixed date, so that the list is the same on every machine: 2026-12-01.
const modelCreated = 1_796_083_200;

/** Answers one request at the named entrypoint. */
export async function handleRequest(request: Request, config: DemoConfig): Promise<Response> {
  switch (`${request.method} ${new URL(request.url).pathname}`) {
    case 'POST /v1/chat/completions':
      return answer(chat, request, config);
    case 'POST /v1/completions':
      return answer(text, request, config);
    case 'GET /v1/models':
      return toModelList();
    default:
      return toNotFound();
  }
}

/** An endpoint: how its body is read, and how it is answered. */
interface Route<R extends { readonly stream: boolean; readonly model: string }> {
  readonly idPrefix: string;
  readonly parse: (text: string) => { readonly ok: true; readonly request: R } | ParseFault;
  readonly stream: (request: R, head: AnswerHead, turn: NextTurn) => AsyncGenerator<string, void>;
  readonly complete: (request: R, head: AnswerHead, turn: NextTurn) => Promise<object>;
}

const chat: Route<ChatRequest> = {
  idPrefix: 'chatcmpl',
  parse: parseChatRequest,
  stream: streamChat,
  complete: completeChat,
};
const text: Route<TextRequest> = {
  idPrefix: 'cmpl',
  parse: parseTextRequest,
  stream: streamText,
  complete: completeText,
};

async function answer<R extends { readonly stream: boolean; readonly model: string }>(
  route: Route<R>,
  request: Request,
  config: DemoConfig,
): Promise<Response> {
  if (config.tokensPerSecond === null) {
    return toEngineError(500, 'InternalServerError', 'TOKENS_PER_SECOND must be a number, 0 or more.');
  }
  const parsed = route.parse(await request.text());
  if (!parsed.ok) return toEngineError(400, 'BadRequestError', parsed.message, parsed.param);
  const body = parsed.request;
  const head = {
    id: `${route.idPrefix}-${request.headers.get('x-request-id') ?? config.newId()}`,
    created: Math.floor(config.nowMs() / 1000),
    model: body.model,
  };
  const reader = new AbortController();
  const turn = createPacer(config.tokensPerSecond, config, AbortSignal.any([request.signal, reader.signal]));
  if (!body.stream) return Response.json(await route.complete(body, head, turn));
  return new Response(toByteStream(route.stream(body, head, turn), reader), {
    headers: { 'content-type': 'text/event-stream; charset=utf-8' },
  });
}

function toByteStream(events: AsyncGenerator<string, void>, reader: AbortController): ReadableStream<Uint8Array> {
  const encoder = new TextEncoder();
  return new ReadableStream<Uint8Array>(
    {
      async pull(controller) {
        const next = await events.next();
        if (next.done === true) controller.close();
        else controller.enqueue(encoder.encode(next.value));
      },
      cancel(reason) {
        reader.abort(reason);
      },
    },
    // Nothing is made before somebody reads it.
    { highWaterMark: 0 },
  );
}

function toModelList(): Response {
  const model = { id: 'turnpike-demo', object: 'model', created: modelCreated, owned_by: 'turnpike-demo' };
  return Response.json({ object: 'list', data: [model] });
}
