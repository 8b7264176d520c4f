// What the doctor says of a running gateway: it answers, a test request goes through and is receipted, and the ledger and D1
// agree about what the workspace spent (SPEC §12). It is a caller with a key, and no more.

import { setTimeout as sleep } from 'node:timers/promises';
import * as z from 'zod';
import { parseUsd, toUsd } from '../core/money.ts';
import { readSpent } from './check-stores.ts';
import { faultOf, type Finding, wellAs } from './doctor.ts';
import type { OperatorStore } from './operator-store.ts';

export type GatewayAccess = {
  readonly url: string;
  readonly key: string;
  readonly model?: string;
  /** How long ledger and D1 may take to agree. */
  readonly settledWithinMs?: number;
};

const DEADLINE_MS = 30_000;
/** A receipt reaches D1 within some seven seconds. */
const SETTLED_WITHIN_MS = 15_000;
const POLL_MS = 1000;

const modelsSchema = z.object({
  data: z.array(z.object({ id: z.string(), supported_endpoints: z.array(z.string()) })),
});
const receiptSchema = z.object({ workspace: z.string(), status: z.string(), cost_usd: z.string() });
const creditsSchema = z.object({ spent_usd: z.string() });
const CHAT = '/v1/chat/completions';

type Reply = { readonly status: number; readonly requestId: string; readonly body: unknown };

/** Health, a test request, its receipt, and the sums. */
export async function checkGateway(store: OperatorStore, access: GatewayAccess): Promise<readonly Finding[]> {
  const health = await ask(access, '/health');
  if (health.status !== 200) {
    return [faultOf('gateway', `GET /health: ${health.status}`, 'is it deployed, and is the URL its own?')];
  }
  const models = await ask(access, '/v1/models');
  if (models.status !== 200)
    return [faultOf('gateway', `GET /v1/models: ${tell(models)}`, 'use a key that is good: keys list')];
  const listed = modelsSchema.parse(models.body).data.filter(({ supported_endpoints: paths }) => paths.includes(CHAT));
  const model = access.model ?? listed[0]?.id;
  if (model === undefined)
    return [faultOf('gateway', 'the key may call no chat model', 'look at its `models` and at the catalog')];
  const body = { model, max_tokens: 1, messages: [{ role: 'user', content: 'Hello' }] };
  const answer = await ask(access, CHAT, body);
  if (answer.status !== 200) {
    return [faultOf('test request', `${model}: ${tell(answer)}`, `look for ${answer.requestId} in the log`)];
  }
  const findings = [wellAs('test request', `${model} answered, ${answer.requestId}`)];
  return [...findings, ...(await checkReceipt(store, access, answer.requestId))];
}

async function checkReceipt(store: OperatorStore, access: GatewayAccess, id: string): Promise<readonly Finding[]> {
  const reply = await ask(access, `/v1/receipts/${id}`);
  if (reply.status !== 200) return [faultOf('receipt', `${id}: ${tell(reply)}`, 'look for it in the log')];
  const { workspace, cost_usd: cost } = receiptSchema.parse(reply.body);
  const query = 'SELECT status FROM receipts WHERE workspace = ?1 AND id = ?2';
  const isThere = async (): Promise<boolean> => (await store.query(query, workspace, id)).length === 1;
  if (!(await waitFor(access, isThere))) {
    return [
      faultOf(
        'receipt',
        `${id} did not reach D1`,
        'look for receipts_unflushed in the log; is this the same deployment?',
      ),
    ];
  }
  return [wellAs('receipt', `${cost} USD, in D1`), ...(await checkSums(store, access, workspace))];
}

/** The ledger's own count against the receipts; both move while others call, so they must only meet once. */
export async function checkSums(
  store: OperatorStore,
  access: GatewayAccess,
  workspace: string,
): Promise<readonly Finding[]> {
  const first = await ask(access, '/v1/credits');
  if (first.status === 403) {
    return [wellAs('ledger', 'not compared with D1: that needs a key with the scope receipts:read')];
  }
  let [ledger, record] = [NaN, NaN];
  const isSame = async (): Promise<boolean> => {
    ledger = parseUsd(creditsSchema.parse((await ask(access, '/v1/credits')).body).spent_usd) ?? NaN;
    record = await readSpent(store, workspace);
    return ledger === record;
  };
  if (await waitFor(access, isSame)) return [wellAs('ledger', `${workspace} spent ${toUsd(ledger)} USD, as D1 says`)];
  const detail = `${workspace} spent ${toUsd(ledger)} USD by its ledger, ${toUsd(record)} by D1`;
  return [faultOf('ledger', detail, `after a restore of D1: receipts replay --workspace ${workspace}`)];
}

async function waitFor(
  { settledWithinMs = SETTLED_WITHIN_MS }: GatewayAccess,
  isGood: () => Promise<boolean>,
): Promise<boolean> {
  for (let waitedMs = 0; ; waitedMs += POLL_MS) {
    if (await isGood()) return true;
    if (waitedMs >= settledWithinMs) return false;
    await sleep(POLL_MS);
  }
}

async function ask({ url, key }: GatewayAccess, path: string, body?: object): Promise<Reply> {
  const response = await fetch(url.replace(/\/+(v1\/*)?$/, '') + path, {
    headers: { authorization: `Bearer ${key}`, ...(body === undefined ? {} : { 'content-type': 'application/json' }) },
    ...(body === undefined ? {} : { method: 'POST', body: JSON.stringify(body) }),
    signal: AbortSignal.timeout(DEADLINE_MS),
  });
  const text = await response.text();
  return { status: response.status, requestId: response.headers.get('x-request-id') ?? '', body: parse(text) };
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return text;
  }
}

const errorSchema = z.object({ error: z.object({ message: z.string() }) });

function tell({ status, body }: Reply): string {
  const parsed = errorSchema.safeParse(body);
  return `${status}${parsed.success ? ` ${parsed.data.error.message}` : ''}`;
}
