// The bench's client, a process of its own: keeps so many streams open at once for so long, and drains the last ones. One order
// from the parent is answered by one result. It ends with the parent.

import { Agent } from 'node:http';
import { performance } from 'node:perf_hooks';
import { setTimeout as sleep } from 'node:timers/promises';

import { drainStream, type Drained } from './drain-stream.ts';
import { loadOrderSchema, type LoadOrder, type LoadResult } from './load-order.ts';

// Connections outlive the runs: a new one is not what is measured.
const agent = new Agent({ keepAlive: true, maxSockets: Infinity, maxFreeSockets: Infinity });

process.on('message', (message) => {
  void run(loadOrderSchema.parse(message)).then((result) => process.send?.(result));
});
process.once('disconnect', () => process.exit());

async function run({ call, streams, forMs, spreadMs }: LoadOrder): Promise<LoadResult> {
  const startMs = performance.now();
  const drained: Drained[] = [];
  const work = async (_stream: unknown, at: number): Promise<void> => {
    await sleep((spreadMs * at) / streams);
    do drained.push(await drainStream(call, agent));
    while (performance.now() - startMs < forMs);
  };
  await Promise.all(Array.from({ length: streams }, work));
  const faults = drained.flatMap(({ fault }) => (fault === null ? [] : [fault]));
  const ttftMs = drained.filter(({ fault }) => fault === null).map((stream) => stream.ttftMs);
  return { wallMs: performance.now() - startMs, ttftMs, faults };
}
