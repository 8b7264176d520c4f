// What the ledger bench measures, inside workerd: calls to an object that does nothing and to the gateway's own Ledger class,
// both of this one Worker as in production, and statements to D1. It only runs orders and tells the times.

import { DurableObject } from 'cloudflare:workers';

export { Ledger } from './index.js';

const RATES = { limit: 1, remaining: 1, resetMs: 1 };
const REPLY = { v: 2, decision: { type: 'admitted', rates: { requests: RATES, tokens: RATES } } };

export class Empty extends DurableObject {
  call() {}
  /** Takes and gives what an admission does. */
  carry() {
    return REPLY;
  }
}

let last = 0;

const kinds = { calls: runCalls, statements: runStatements };

export default {
  async fetch(request, env) {
    const order = await request.json();
    return Response.json(await kinds[order.kind](order, env));
  },
};

/** `calls` calls, `parallel` at a time. `settleAfter`: admissions alone are timed, and settled when all are done. */
async function runCalls({ target, calls, parallel, settleAfter, reservation }, env) {
  const isEmpty = target !== 'ledger';
  const stub = isEmpty ? env.EMPTY.getByName('bench') : env.LEDGER.getByName(reservation.receipt.workspace);
  const [timesMs, faults, open] = [[], [], []];
  const ask = async (type, receipt) => {
    const startMs = performance.now();
    const reply = await stub.call({ v: 2, command: { type, reservation: { ...reservation, receipt } } });
    return { ms: performance.now() - startMs, answer: reply.decision.type };
  };
  const one = async () => {
    if (isEmpty) {
      const startMs = performance.now();
      await (target === 'empty' ? stub.call() : stub.carry({ v: 2, command: { type: 'reserve', reservation } }));
      return timesMs.push(performance.now() - startMs);
    }
    const id = `req_${String((last += 1)).padStart(26, '0')}`;
    const { ms, answer } = await ask('reserve', { ...reservation.receipt, id });
    timesMs.push(ms);
    if (answer !== 'admitted') faults.push(answer);
    if (settleAfter) return open.push(id);
    return settle(id);
  };
  const settle = async (id) => {
    const { answer } = await ask('settle', { ...reservation.receipt, id, status: 'completed' });
    if (answer !== 'settled') faults.push(answer);
  };
  let begun = 0;
  const startMs = performance.now();
  const work = async () => {
    while ((begun += 1) <= calls) await one();
  };
  await Promise.all(Array.from({ length: parallel }, work));
  const wallMs = performance.now() - startMs;
  await Promise.all(open.map(settle));
  return { timesMs, wallMs, faults };
}

/** A batch of statements again and again, one after the other. `rows`: given as JSON to the first, under ids of their own. */
async function runStatements({ sql, values, rows, times }, env) {
  const bound = Array.from({ length: times }, () => {
    const fresh = rows?.map((row) => ({ ...row, id: `req_${String((last += 1)).padStart(26, '0')}` }));
    const all = fresh === undefined ? values : [[JSON.stringify(fresh)]];
    return sql.map((text, at) => env.DB.prepare(text).bind(...all[at]));
  });
  const timesMs = [];
  const startMs = performance.now();
  for (const batch of bound) {
    const beginMs = performance.now();
    await (batch.length === 1 ? batch[0].run() : env.DB.batch(batch));
    timesMs.push(performance.now() - beginMs);
  }
  return { timesMs, wallMs: performance.now() - startMs, faults: [] };
}
