// A client with a socket of its own for each request, so that leaving is a real close or a real reset on the wire.
// It understands nothing of the API.

import { request as openRequest, type ClientRequest, type IncomingHttpHeaders, type IncomingMessage } from 'node:http';
import { connect } from 'node:net';
import { performance } from 'node:perf_hooks';

export type RawOptions = {
  readonly method?: string;
  readonly headers?: Readonly<Record<string, string>>;
  /** An object is stringified; a string goes to the letter. */
  readonly body?: string | object;
};

/** An answer while it arrives. */
export type RawAnswer = {
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
  readonly requestId: string;
  /** What has arrived of the body. */
  readonly text: () => string;
  /** Waits until the body matches; rejects when it ends before. */
  readonly waitFor: (pattern: RegExp) => Promise<void>;
  /** The whole body. */
  readonly whole: () => Promise<string>;
  /** Leaves and tells when (`performance.now()`). */
  readonly leave: (how: Leaving) => number;
};

/** `close` says goodbye (FIN), `reset` does not (RST). */
export type Leaving = 'close' | 'reset';

/** A request under way: leave before its answer, or wait for the headers. */
export type RawCall = { readonly answer: Promise<RawAnswer>; readonly leave: (how: Leaving) => number };

/** Starts a request on a connection of its own. */
export function startCall(url: string, { method, headers, body }: RawOptions = {}): RawCall {
  const text = typeof body === 'object' ? JSON.stringify(body) : body;
  const request = openRequest(url, {
    agent: false,
    method: method ?? (text === undefined ? 'GET' : 'POST'),
    headers: {
      ...(text === undefined ? {} : { 'content-type': 'application/json', 'content-length': Buffer.byteLength(text) }),
      ...headers,
    },
  });
  const leave = (how: Leaving): number => leaveBy(request, how);
  const answer = new Promise<RawAnswer>((resolve, reject) => {
    request.once('response', (response) => resolve(toAnswer(response, leave)));
    request.on('error', reject);
  });
  // A call that is left before its answer is nobody's failure.
  answer.catch(() => undefined);
  request.end(text);
  return { answer, leave };
}

/** Sends and waits for the headers. */
export async function call(url: string, options: RawOptions = {}): Promise<RawAnswer> {
  return startCall(url, options).answer;
}

/** Posts JSON and never reads a byte of the answer; returns how to leave. */
export function postAndNeverRead(url: string, token: string, body: object): () => number {
  const { hostname, port, pathname } = new URL(url);
  const text = JSON.stringify(body);
  const socket = connect(Number(port), hostname).pause();
  socket.on('error', () => undefined);
  const head = [`POST ${pathname} HTTP/1.1`, `host: ${hostname}`, `authorization: Bearer ${token}`];
  const length = `content-length: ${Buffer.byteLength(text)}`;
  socket.write([...head, 'content-type: application/json', length, '', text].join('\r\n'));
  return () => {
    socket.destroy();
    return performance.now();
  };
}

function leaveBy(request: ClientRequest, how: Leaving): number {
  if (how === 'reset') request.socket?.resetAndDestroy();
  else request.destroy();
  return performance.now();
}

function toAnswer(response: IncomingMessage, leave: (how: Leaving) => number): RawAnswer {
  let text = '';
  let state: 'open' | 'ended' | 'broken' = 'open';
  let change = Promise.withResolvers<void>();
  const notify = (next?: 'ended' | 'broken'): void => {
    if (next !== undefined && state === 'open') state = next;
    change.resolve();
    change = Promise.withResolvers();
  };
  response.setEncoding('utf8');
  response.on('data', (more: string) => {
    text += more;
    notify();
  });
  response.on('end', () => notify('ended'));
  response.on('error', () => notify('broken'));
  response.on('close', () => notify('broken'));
  const isOpen = (): boolean => state === 'open';
  return {
    status: response.statusCode ?? 0,
    headers: response.headers,
    requestId: String(response.headers['x-request-id'] ?? ''),
    text: () => text,
    async waitFor(pattern) {
      while (!pattern.test(text)) {
        if (!isOpen()) throw new Error(`${state} before ${pattern}: ${text}`);
        await change.promise;
      }
    },
    async whole() {
      while (isOpen()) await change.promise;
      if (state === 'broken') throw new Error(`the answer broke off: ${text}`);
      return text;
    },
    leave,
  };
}
