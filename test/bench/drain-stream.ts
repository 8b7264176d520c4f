// One request of the load generator: sends, drains, times the first byte of the body, and checks that the stream is whole.
// A lane that loses events or ends early must not look fast.

import { request, type Agent, type IncomingMessage } from 'node:http';
import { performance } from 'node:perf_hooks';

import { DONE, EVENT_MARK, FINISH_MARK } from './engine-events.ts';

export type Call = {
  readonly url: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
  /** The counted events that the stream must have. */
  readonly events: number;
};

export type Drained = { readonly ttftMs: number; readonly fault: string | null };

const DEADLINE_MS = 120_000;

/** Runs one stream to its end. Never rejects: what is wrong with it is its `fault`. */
export async function drainStream({ url, headers, body, events }: Call, agent: Agent): Promise<Drained> {
  const startMs = performance.now();
  let ttftMs = Infinity;
  const chunks: Buffer[] = [];
  try {
    const response = await send(url, { ...headers, 'content-type': 'application/json' }, body, agent);
    response.on('data', (chunk: Buffer) => {
      if (chunks.length === 0) ttftMs = performance.now() - startMs;
      chunks.push(chunk);
    });
    await new Promise<void>((resolve, reject) => response.once('end', resolve).once('error', reject));
    return { ttftMs, fault: findFault(response.statusCode ?? 0, Buffer.concat(chunks).toString('latin1'), events) };
  } catch (error) {
    return { ttftMs, fault: String(error) };
  }
}

function send(url: string, headers: Record<string, string>, body: string, agent: Agent): Promise<IncomingMessage> {
  return new Promise((resolve, reject) => {
    const outgoing = request(url, { method: 'POST', agent, headers, timeout: DEADLINE_MS }, resolve);
    outgoing.once('error', reject);
    outgoing.once('timeout', () => outgoing.destroy(new Error(`silent for ${DEADLINE_MS} ms`)));
    outgoing.end(body);
  });
}

function findFault(status: number, text: string, events: number): string | null {
  if (status !== 200) return `status ${status}: ${text.slice(0, 200)}`;
  const found = text.split(EVENT_MARK).length - 1;
  if (found !== events) return `${found} events instead of ${events}`;
  if (text.split(FINISH_MARK).length !== 2) return 'not exactly one finish';
  return text.endsWith(DONE) ? null : 'no [DONE] at the end';
}
