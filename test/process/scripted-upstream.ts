// A real inference server on loopback whose every answer is scripted by the test: timed events, silence, statuses, resets,
// garbage. It records what reached it, to the letter, and when the connection went. It asserts nothing.

import { createServer, type IncomingHttpHeaders, type IncomingMessage, type ServerResponse } from 'node:http';
import { performance } from 'node:perf_hooks';

/** One request as it reached the server, and its answer's controls. */
export type Exchange = {
  readonly method: string;
  readonly url: string;
  readonly headers: IncomingHttpHeaders;
  readonly body: string;
  /** Sends status and headers at once. */
  readonly head: (status: number, contentType?: string) => void;
  /** Writes text, or bytes that are none; false once the connection is gone. */
  readonly write: (text: string | Uint8Array) => boolean;
  /** Writes text and waits until the connection has taken all of it; false once the connection is gone. */
  readonly deliver: (text: string) => Promise<boolean>;
  readonly end: (text?: string) => void;
  /** Breaks the connection with a TCP reset. */
  readonly reset: () => void;
  /** `performance.now()` when the connection went before the answer had ended; resolves only then. */
  readonly aborted: Promise<number>;
  readonly isGone: () => boolean;
};

export type Script = (exchange: Exchange) => void | Promise<void>;

export type ScriptedUpstream = {
  readonly baseUrl: string;
  readonly exchanges: readonly Exchange[];
  /** Sets the script of all requests that arrive from now on. */
  readonly play: (script: Script) => void;
  /** What reached the server under one request id, in order. */
  readonly find: (requestId: string) => readonly Exchange[];
  readonly stop: () => Promise<void>;
};

/** Starts a server that answers 500 until `play` is called. */
export async function startScriptedUpstream(): Promise<ScriptedUpstream> {
  const exchanges: Exchange[] = [];
  let script: Script = refuse;
  const server = createServer((request, response) => {
    let body = '';
    request.setEncoding('utf8');
    request.on('data', (text: string) => (body += text));
    request.on('end', () => {
      const exchange = createExchange(request, response, body);
      exchanges.push(exchange);
      void Promise.resolve(script(exchange)).catch(() => response.destroy());
    });
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const address = server.address();
  if (typeof address !== 'object' || address === null) throw new Error('the scripted server does not listen');
  return {
    baseUrl: `http://127.0.0.1:${address.port}/v1`,
    exchanges,
    play: (next) => void (script = next),
    find: (requestId) => exchanges.filter(({ headers }) => headers['x-request-id'] === requestId),
    async stop() {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}

function refuse(exchange: Exchange): void {
  answerJson(exchange, 500, { error: { message: 'no script' } });
}

function createExchange(request: IncomingMessage, response: ServerResponse, body: string): Exchange {
  let gone = false;
  const closed = Promise.withResolvers<void>();
  const aborted = new Promise<number>((resolve) => {
    response.once('close', () => {
      gone = true;
      closed.resolve();
      if (!response.writableFinished) resolve(performance.now());
    });
  });
  response.socket?.setNoDelay(true);
  return {
    method: request.method ?? '',
    url: request.url ?? '',
    headers: request.headers,
    body,
    head(status, contentType = 'text/event-stream') {
      response.writeHead(status, { 'content-type': contentType });
      response.flushHeaders();
    },
    write(text) {
      if (!gone) response.write(text);
      return !gone;
    },
    async deliver(text) {
      if (!gone) await Promise.race([new Promise((resolve) => response.write(text, resolve)), closed.promise]);
      return !gone;
    },
    end: (text = '') => void response.end(text),
    reset: () => void request.socket.resetAndDestroy(),
    aborted,
    isGone: () => gone,
  };
}

/** Sends a whole JSON answer. */
export function answerJson(exchange: Exchange, status: number, body: unknown): void {
  exchange.head(status, 'application/json');
  exchange.end(JSON.stringify(body));
}

/** Counts as an engine reports them: always three prompt tokens. */
export function countUsage(outputTokens: number): Record<string, number> {
  return { prompt_tokens: 3, completion_tokens: outputTokens, total_tokens: 3 + outputTokens };
}

type ChunkParts = {
  readonly content?: string;
  readonly finish?: string;
  readonly usage?: Readonly<Record<string, number>>;
};

/** One chat event of an engine. */
export function chunk({ content, finish, usage }: ChunkParts): string {
  const choices =
    content === undefined && finish === undefined
      ? []
      : [{ index: 0, delta: content === undefined ? {} : { content }, finish_reason: finish ?? null }];
  const head = { id: 'chatcmpl-scripted', object: 'chat.completion.chunk', created: 1_796_083_200, model: 'engine/m' };
  return `data: ${JSON.stringify({ ...head, choices, ...(usage === undefined ? {} : { usage }) })}\n\n`;
}

export const DONE = 'data: [DONE]\n\n';

/** A short, whole stream of two deltas with the engine's final count. */
export function streamShort(exchange: Exchange): void {
  exchange.head(200);
  exchange.write(chunk({ content: 'Hello' }) + chunk({ content: ' there' }) + chunk({ finish: 'stop' }));
  exchange.end(chunk({ usage: countUsage(2) }) + DONE);
}

/** A short, whole JSON answer. */
export function answerShort(exchange: Exchange): void {
  answerJson(exchange, 200, {
    id: 'chatcmpl-scripted',
    object: 'chat.completion',
    created: 1_796_083_200,
    model: 'engine/m',
    choices: [{ index: 0, message: { role: 'assistant', content: 'Hello there' }, finish_reason: 'stop' }],
    usage: countUsage(2),
  });
}

/** What suits the request: a stream when it asks for one. */
export function answerAny(exchange: Exchange): void {
  if (exchange.headers.accept === 'text/event-stream') streamShort(exchange);
  else answerShort(exchange);
}
