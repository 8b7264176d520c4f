// The bench's engine, a process of its own so that its CPU is nobody's: streams what the request orders, one write per
// event, either with back-pressure as fast as they are taken or by a clock. Tells its port to the parent and ends with it.

import { once } from 'node:events';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import { performance } from 'node:perf_hooks';
import { setTimeout as sleep } from 'node:timers/promises';

import { readOrder, type StreamOrder, writeEnd, writeRole, writeWord } from './engine-events.ts';

const server = createServer((request, response) => {
  // A stream that breaks shows at the load generator, which expects its end.
  answer(request, response).catch(() => response.destroy());
});
// Gateways keep their connections; that one is closed between two requests must not be part of a measurement.
server.keepAliveTimeout = 600_000;
server.listen(0, '127.0.0.1', () => {
  const address = server.address();
  process.send?.({ port: typeof address === 'object' && address !== null ? address.port : 0 });
});
process.once('disconnect', () => process.exit());

async function answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
  let body = '';
  for await (const text of request.setEncoding('utf8')) body += String(text);
  const order = readOrder(body);
  if (order === null) {
    response.writeHead(400).end();
    return;
  }
  response.socket?.setNoDelay(true);
  response.writeHead(200, { 'content-type': 'text/event-stream' });
  await stream(order, response);
}

async function stream({ events, paceMs, usage }: StreamOrder, response: ServerResponse): Promise<void> {
  const write = async (text: string): Promise<void> => {
    if (!response.write(text)) await once(response, 'drain');
  };
  await write(writeRole(usage));
  const startMs = performance.now();
  for (let count = 1; count <= events; count += 1) {
    // By the clock from the start: a late timer does not move those behind it.
    if (paceMs > 0 && count > 1) await sleep(Math.max(0, startMs + (count - 1) * paceMs - performance.now()));
    await write(writeWord(usage, count));
  }
  for (const text of writeEnd(usage, events)) await write(text);
  response.end();
}
