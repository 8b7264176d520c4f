// Every fault of the table over all endpoints, on the production bundle and real sockets: the client's status
// or last events, as published, and the receipt. The requests overlap; each row is then looked at by itself.

import { afterAll, beforeAll, describe, expect, test } from 'vitest';

import { errorEnvelopeSchema } from '../openai/published-schema.ts';
import { COUNT_FAULTS } from './count-faults.ts';
import { type Wire, WIRES } from './endpoint-wire.ts';
import { type Client, DEADLINES, type Row } from './fault-rows.ts';
import {
  MODELS,
  pause,
  poll,
  type ReceiptObject,
  type ScriptedGateway,
  startScriptedGateway,
  toCostUsd,
} from './scripted-gateway.ts';
import { ENDLESS, STREAM_FAULTS } from './stream-faults.ts';

const ROWS: readonly Row[] = [...STREAM_FAULTS, ...COUNT_FAULTS];
const FREE = '0.000000000';
/** Requests are begun in waves: no row's deadlines are to measure how busy the machine is. */
const WAVE = 20;
const WAVE_MS = 120;

/** What came of one row at one endpoint. */
type Outcome = {
  readonly status: number;
  readonly text: string;
  readonly tookMs: number;
  readonly requestId: string;
  readonly receipt: ReceiptObject;
};

let scripted: ScriptedGateway;
const outcomes = new Map<Wire, Map<Row, Promise<Outcome>>>();

beforeAll(async () => {
  const vars = Object.fromEntries(Object.entries(DEADLINES).map(([name, value]) => [name, String(value)]));
  scripted = await startScriptedGateway({ vars });
  const cases = WIRES.flatMap((wire) => [...ROWS, ENDLESS].map((row) => ({ wire, row })));
  // The request says which case it is.
  scripted.upstream.play(async (exchange) => {
    const { wire, row } = cases[Number(/"x_case":"(\d+)"/.exec(exchange.body)?.[1])] ?? {};
    if (wire !== undefined) await row?.play(exchange, wire);
  });
  for (const wire of WIRES) outcomes.set(wire, new Map());
  for (const [at, { wire, row }] of cases.entries()) {
    const outcome = run(row, wire, String(at));
    // Whoever looks at the row gets the failure.
    outcome.catch(() => undefined);
    outcomes.get(wire)?.set(row, outcome);
    if (at % WAVE === WAVE - 1) await pause(WAVE_MS);
  }
});
afterAll(() => scripted.stop());

async function run({ ask, model }: Row, wire: Wire, x_case: string): Promise<Outcome> {
  const startedAtMs = Date.now();
  const name = ask === 'assembled' ? MODELS.assembled : MODELS[model ?? 'counted'];
  const answer = await scripted.post(wire.path, wire.ask(name, ask === 'stream', { x_case })).answer;
  const text = await answer.whole();
  const tookMs = Date.now() - startedAtMs;
  const { status, requestId } = answer;
  return { status, text, tookMs, requestId, receipt: await scripted.waitForReceipt(requestId) };
}

async function getOutcome(wire: Wire, row: Row): Promise<Outcome> {
  const outcome = await outcomes.get(wire)?.get(row);
  if (outcome === undefined) throw new Error(`${row.name} was not played`);
  return outcome;
}

/** The client's answer in the row's own words. */
function readClient(wire: Wire, { ask }: Row, { status, text }: Outcome): Client {
  if (status !== 200)
    return { type: 'refused', http: status, code: errorEnvelopeSchema.parse(JSON.parse(text)).error.code };
  const { said, finish, error, usage } = ask === 'stream' ? wire.readStream(text) : wire.readAnswer(text);
  if (error === null) return { type: 'answered', said, finish: finish ?? 'none' };
  return { type: 'broken', code: error.code, said, usage: usage === null ? null : [usage.input, usage.output] };
}

/** What this endpoint's client is to get. */
function toExpected(wire: Wire, { client }: Row): Client {
  return client.type === 'broken' ? { ...client, code: wire.toShownCode(client.code) } : client;
}

function expectReceipt({ client, source = 'none', tokens = [0, 0] }: Row, { receipt }: Outcome): void {
  const [input, output] = tokens;
  expect(receipt).toMatchObject({
    status: client.type !== 'answered' ? 'failed' : client.finish === 'length' ? 'incomplete' : 'completed',
    http_status: client.type === 'refused' ? client.http : 200,
    error_code: client.type === 'answered' ? null : client.code,
    attempts: 1,
    usage_source: source,
    usage: { output_tokens: output },
  });
  if (input === null) expect(receipt.usage.input_tokens).toBeGreaterThan(0);
  else expect(receipt.usage.input_tokens).toBe(input);
  expect(receipt.cost_usd).toBe(client.type === 'answered' ? toCostUsd(receipt) : FREE);
  expect(receipt.ended_at).not.toBeNull();
}

describe.each(WIRES.map((wire) => [wire.name, wire] as const))('§7 nothing ends silently: %s', (_endpoint, wire) => {
  test.each(ROWS.map((row) => [row.ask, row.name, row] as const))('§3 §7 §9 %s: %s', async (_ask, _name, row) => {
    const outcome = await getOutcome(wire, row);
    expect(readClient(wire, row, outcome)).toEqual(toExpected(wire, row));
    expect(outcome.text).not.toMatch(/10\.0\.0|GPU|boom|lost/);
    expectReceipt(row, outcome);
    if (row.client.type === 'answered') {
      const { input_tokens, output_tokens } = outcome.receipt.usage;
      const { usage } = row.ask === 'stream' ? wire.readStream(outcome.text) : wire.readAnswer(outcome.text);
      expect(usage).toEqual({
        input: input_tokens,
        output: output_tokens,
        estimated: row.source === 'estimated',
      });
    }
    const [minMs, maxMs] = row.overMs ?? [0, DEADLINES.TOTAL_DEADLINE_MS];
    expect(outcome.tookMs).toBeGreaterThanOrEqual(minMs);
    expect(outcome.tookMs).toBeLessThan(maxMs);
    // However it ended, the engine is not kept.
    const exchanges = scripted.upstream.find(outcome.requestId);
    expect(exchanges).toHaveLength(1);
    await poll(() => exchanges.every(({ isGone }) => isGone()), Boolean, 3_000);
  });

  test('§6 the total deadline ends a stream that flows: what came, its counts, the error', async () => {
    const outcome = await getOutcome(wire, ENDLESS);
    const { deltas, usage, error } = wire.readStream(outcome.text);
    expect(error?.code).toBe(wire.toShownCode('upstream_timeout'));
    expect(outcome.tookMs).toBeGreaterThanOrEqual(DEADLINES.TOTAL_DEADLINE_MS - 50);
    expect(deltas).toBeGreaterThan(10);
    expect(usage).toEqual({ input: 3, output: deltas, estimated: false });
    const { receipt } = outcome;
    expect(receipt).toMatchObject({ status: 'failed', error_code: 'upstream_timeout', usage_source: 'engine_running' });
    expect(receipt).toMatchObject({ usage: { input_tokens: 3, output_tokens: deltas }, cost_usd: FREE });
    await poll(() => scripted.upstream.find(outcome.requestId).every(({ isGone }) => isGone()), Boolean, 3_000);
  });
});
