// `npm run bench -- --ledger`: what admission and settlement cost beside a call to an empty Durable Object, and how many
// receipts one D1 takes (SPEC §5, §9). Rounds are interleaved; ratios hold within one run and nothing else does.

import { setTimeout as sleep } from 'node:timers/promises';

import { buildOpenReceipt } from '../../src/core/receipt.ts';
import type { Reservation } from '../../src/core/ledger-types.ts';
import { toReceiptRow, UPSERT_RECEIPTS } from '../../src/cloudflare/receipt-row.ts';
import { GRANTS, REVOKED } from '../../src/cloudflare/facts-query.ts';
import { type LedgerOrder, startLedgerWorker } from './ledger-worker.ts';
import { toQuantile } from './summarize.ts';

/** Local time of an admission at most, in empty calls. */
const ADMISSION_GOAL = 2;
/** An active workspace writes its receipts and reads its grants and revocations this often. */
const EVERY_MS = 5000;
const PARALLEL = 256;
/** What a ledger does behind its answers, saving and carrying to D1, is over by then and burdens no other row. */
const AFTER_MS = 700;
/** Receipts in one statement at most. */
const FULL = 200;

type Row = { readonly name: string; readonly order: LedgerOrder };
/** workerd's clock has whole milliseconds: a short call is told by the mean, a quantile only where there are many at a time. */
type Round = { readonly meanMs: number; readonly p99Ms: number; readonly perSecond: number };

export type LedgerBench = { readonly text: string; readonly faults: readonly string[]; readonly rounds: unknown };

/** Runs all rows in interleaved rounds. */
export async function benchLedger(rounds: number, note: (text: string) => void): Promise<LedgerBench> {
  note('bundling and starting the Worker');
  const worker = await startLedgerWorker();
  try {
    const rows = listRows();
    const results = new Map<string, Round[]>(rows.map(({ name }) => [name, []]));
    const faults: string[] = [];
    for (let round = -1; round < rounds; round += 1) {
      note(round < 0 ? 'warming up' : `round ${round + 1} of ${rounds}`);
      for (const { name, order } of rows) {
        const { timesMs, wallMs, faults: found } = await worker.run(order);
        if (order.kind === 'calls' && order.target === 'ledger') await sleep(AFTER_MS);
        faults.push(...found.map((fault) => `${name}: ${fault}`));
        if (round < 0) continue;
        const calls = timesMs.length;
        const meanMs = wallMs / calls;
        results.get(name)?.push({ meanMs, p99Ms: toQuantile(timesMs, 0.99), perSecond: (calls / wallMs) * 1000 });
      }
    }
    return { text: writeAll(results), faults, rounds: Object.fromEntries(results) };
  } finally {
    await worker.stop();
  }
}

const NAMES = {
  empty: 'empty call',
  carrying: 'empty call that carries as much',
  admission: 'admission',
  prepaid: 'admission, prepaid',
  emptyMany: `empty call, ${PARALLEL} at a time`,
  pairs: `admission + settlement, ${PARALLEL} at a time`,
  one: 'D1: flush of 1 receipt',
  ten: 'D1: flush of 10',
  full: `D1: flush of ${FULL}`,
  facts: 'D1: grants and revocations',
} as const;

function listRows(): readonly Row[] {
  const call = { kind: 'calls', reservation: buildReservation('bench', false), settleAfter: true } as const;
  const alone = { ...call, calls: 1000, parallel: 1 };
  const many = { ...call, calls: 4000, parallel: PARALLEL };
  const row = toReceiptRow({ rev: 1, receipt: buildReservation('bench-d1', false).receipt });
  const flush = (rows: number): LedgerOrder => ({
    kind: 'statements',
    sql: [UPSERT_RECEIPTS],
    rows: Array.from({ length: rows }, () => row),
    times: 20,
  });
  const facts = { kind: 'statements', sql: [REVOKED, GRANTS], values: [['["k"]'], ['bench', 0]], times: 50 } as const;
  return [
    { name: NAMES.empty, order: { ...alone, target: 'empty' } },
    { name: NAMES.carrying, order: { ...alone, target: 'carrying' } },
    { name: NAMES.admission, order: { ...alone, target: 'ledger' } },
    { name: NAMES.prepaid, order: { ...alone, target: 'ledger', reservation: buildReservation('bench-free', true) } },
    { name: NAMES.emptyMany, order: { ...many, target: 'empty' } },
    { name: NAMES.pairs, order: { ...many, target: 'ledger', settleAfter: false } },
    { name: NAMES.one, order: flush(1) },
    { name: NAMES.ten, order: flush(10) },
    { name: NAMES.full, order: flush(FULL) },
    { name: NAMES.facts, order: facts },
  ];
}

/** A request of a key with limits of its own: two scopes. A prepaid one holds nothing, since its model costs nothing. */
function buildReservation(workspace: string, isPrepaid: boolean): Reservation {
  const limits = { rpm: 1e8, tpm: 1e10, concurrency: 1e6 };
  const rate = isPrepaid ? '0' : '0.15';
  return {
    receipt: buildOpenReceipt({
      id: '',
      workspace,
      key: 'k',
      endpoint: '/v1/chat/completions',
      requested_model: 'support',
      upstream_model: 'Qwen/Qwen3-8B',
      revision: null,
      stream: true,
      rates: { input: rate, cached_input: rate, cache_write: rate, output: rate },
      price_version: '3fa9c01b77de',
      created_at: '2026-12-01T10:00:00.000Z',
      client_request_id: 'c1f2a6f0-0000-4000-8000-000000000000',
      end_user: null,
    }),
    workspaceLimits: limits,
    keyLimits: limits,
    promptTokens: 100,
    outputTokens: 500,
    choices: 1,
    leaseMs: 60_000,
    ...(isPrepaid ? { credit: { inputTokensMax: 400, outputTokensMax: 500 } } : {}),
  };
}

function writeAll(results: ReadonlyMap<string, readonly Round[]>): string {
  const read = (name: string, of: keyof Round): readonly number[] =>
    (results.get(name) ?? []).map((round) => round[of]);
  const median = (name: string, of: keyof Round): number => toQuantile(read(name, of), 0.5);
  const ratio = (name: string, base: string, of: keyof Round): string => {
    const rounds = read(name, of).map((value, at) => value / (read(base, of)[at] ?? NaN));
    const [least, most] = [Math.min(...rounds), Math.max(...rounds)];
    return `${toQuantile(rounds, 0.5).toFixed(2)} (${least.toFixed(2)}–${most.toFixed(2)})`;
  };
  const lines = [...results.keys()].map((name) => {
    const [mean, p99, perSecond] = [median(name, 'meanMs'), median(name, 'p99Ms'), median(name, 'perSecond')];
    return `${name}: ${mean.toFixed(3)} ms each, p99 ${p99.toFixed(0)} ms, ${perSecond.toFixed(0)}/s`;
  });
  const admission = median(NAMES.admission, 'meanMs') / median(NAMES.empty, 'meanMs');
  const workspaces = EVERY_MS / (median(NAMES.ten, 'meanMs') + median(NAMES.facts, 'meanMs'));
  return [
    ...lines,
    '',
    'Ratios to the empty call of the same round, median (least–most). What ran beside it is in the times, not in the ratios.',
    `admission ${ratio(NAMES.admission, NAMES.empty, 'meanMs')}, goal ≤ ${ADMISSION_GOAL} ${admission <= ADMISSION_GOAL ? 'met' : 'missed'}`,
    `an empty call that carries as much ${ratio(NAMES.carrying, NAMES.empty, 'meanMs')}; admission to that ${ratio(NAMES.admission, NAMES.carrying, 'meanMs')}`,
    `admission, prepaid ${ratio(NAMES.prepaid, NAMES.empty, 'meanMs')}`,
    `admission + settlement a second ${ratio(NAMES.pairs, NAMES.emptyMany, 'perSecond')}; p99 of its admission ${ratio(NAMES.pairs, NAMES.emptyMany, 'p99Ms')}`,
    `One D1: ${(median(NAMES.full, 'perSecond') * FULL).toFixed(0)} receipts a second in full statements; ${workspaces.toFixed(0)} active workspaces, each with a flush of 10 and a read of its grants every ${EVERY_MS / 1000} s`,
  ].join('\n');
}
