// The engine's two routes: POST /v1/chat/completions and GET /v1/models. Everything else is 404.
// Each answer is produced as it is read: one event per pull, and the reader's leaving or the request's signal stops it.
// Nothing is kept between requests.

import { toEngineError, toNotFound } from './engine-error.ts';
import { createPacer, type Clock } from './pacer.ts';
import { parseChatRequest } from './parse-chat-request.ts';
import { completeChat, streamChat } from './run-chat.ts';

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
      return handleChat(request, config);
    case 'GET /v1/models':
      return toModelList();
    default:
      return toNotFound();
  }
}

async function handleChat(request: Request, config: DemoConfig): Promise<Response> {
  if (config.tokensPerSecond === null) {
    return toEngineError(500, 'InternalServerError', 'TOKENS_PER_SECOND must be a number, 0 or more.');
  }
  const parsed = parseChatRequest(await request.text());
  if (!parsed.ok) return toEngineError(400, 'BadRequestError', parsed.message, parsed.param);
  const chat = parsed.request;
  const head = {
    id: `chatcmpl-${request.headers.get('x-request-id') ?? config.newId()}`,
    created: Math.floor(config.nowMs() / 1000),
    model: chat.model,
  };
  const reader = new AbortController();
  const turn = createPacer(config.tokensPerSecond, config, AbortSignal.any([request.signal, reader.signal]));
  if (!chat.stream) return Response.json(await completeChat(chat, head, turn));
  return new Response(toByteStream(streamChat(chat, head, turn), reader), {
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
