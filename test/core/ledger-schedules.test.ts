// The ledger under random schedules of reserves, renewals, settles, releases, expiries, duplicates, late commands and
// clock jumps: what must hold after every step and at the end (SPEC §5). A failure names its seed.

import { expect, test } from 'vitest';
import { type GatewayError } from '../../src/core/errors.ts';
import { type LedgerCommand } from '../../src/core/ledger-types.ts';
import { scopesOf } from '../../src/core/ledger-opening.ts';
import { applyCommand } from '../../src/core/ledger-state.ts';
import { toTotalTokens } from '../../src/core/usage.ts';
import { buildReservation, type ReservationOptions } from './build-reservation.ts';
import { countBalance, createLedgerHarness, type LedgerHarness, readBalanceOf, readUse } from './ledger-harness.ts';
import { createSeededRandom, type SeededRandom } from './seeded-random.ts';

/** Of each property; a million in all with TURNPIKE_DEEP. */
const SCHEDULES = process.env['TURNPIKE_DEEP'] === undefined ? 10_000 : 500_000;
const STEPS = 40;
const START = 1_796_000_000_000;

/** A request that was admitted in one scope; what it really used is known when all is over. */
type Admission = {
  readonly scope: string;
  readonly id: string;
  readonly atMs: number;
  readonly taken: number;
  /** Closings before this one are of an earlier life of the id. */
  readonly closingsFrom: number;
  released: boolean;
};

type Plan = {
  readonly random: SeededRandom;
  readonly requests: readonly ReservationOptions[];
  readonly leasesMs: readonly number[];
  /** Amounts of the grants there are in between, in nano-USD. */
  readonly grants: readonly number[];
  readonly nextMs: (nowMs: number) => number;
};

/** A tight plan: small limits, a clock that moves, stands and steps back. */
function planTight(seed: number): Plan {
  const random = createSeededRandom(seed);
  const limits = (): NonNullable<ReservationOptions['limits']> => ({
    rpm: random.pick([1, 3, 20, 60, null]),
    tpm: random.pick([60, 300, 5000, null]),
    concurrency: random.pick([1, 2, 5, null]),
  });
  const workspace = limits();
  const keys = [limits(), null];
  return {
    random,
    requests: Array.from({ length: 8 }, (_, at) => ({
      id: `req_${at}`,
      key: `k${at % 2}`,
      limits: workspace,
      keyLimits: keys[at % 2] ?? null,
      prompt: random.int(0, 40),
      output: random.chance(0.3) ? null : random.int(1, 60),
      choices: random.int(1, 3),
      credit: random.chance(0.5) ? { inputTokensMax: random.int(0, 40), outputTokensMax: random.int(1, 60) } : null,
    })),
    grants: [0, 1000, 40_000, 40_000, 1_000_000, -20_000],
    leasesMs: [60_000],
    nextMs: (nowMs) => nowMs + random.pick([0, 0, 0, 1, 50, 1000, 7000, 25_000, 61_000, -1, -30_000]),
  };
}

/** Limits far away and a clock that stands, so that every unit can be accounted for; some leases end at once. */
function planFrozen(seed: number): Plan {
  const { random, requests, grants } = planTight(seed);
  const far = { rpm: 1_000_000, tpm: 1_000_000_000, concurrency: null };
  return {
    random,
    requests: requests.map((request) => ({
      ...request,
      limits: far,
      keyLimits: request.keyLimits === null ? null : far,
    })),
    leasesMs: [0, 60_000],
    grants,
    nextMs: (nowMs) => nowMs,
  };
}

function nextCommand({ random, requests, leasesMs }: Plan, sent: readonly LedgerCommand[]): LedgerCommand | 'expire' {
  if (sent.length > 0 && random.chance(0.25)) return random.pick(sent);
  const request = { ...random.pick(requests), leaseMs: random.pick(leasesMs) };
  const used = [request.prompt ?? 0, random.int(0, 90)] as const;
  switch (random.pick(['reserve', 'reserve', 'reserve', 'renew', 'settle', 'settle', 'release', 'expire'] as const)) {
    case 'reserve':
      return { type: 'reserve', reservation: buildReservation(request) };
    case 'renew':
      return { type: 'renew', reservation: buildReservation({ ...request, used }) };
    case 'settle': {
      const status = random.pick(['completed', 'incomplete', 'interrupted', 'failed'] as const);
      return { type: 'settle', reservation: buildReservation({ ...request, used, status }) };
    }
    case 'release':
      return { type: 'release', id: request.id! };
    case 'expire':
      return 'expire';
  }
}

/** Runs a plan and calls `check` after every step. */
function runPlan(plan: Plan, check: (ledger: LedgerHarness, admissions: readonly Admission[]) => void): LedgerHarness {
  const { random } = plan;
  const ledger = createLedgerHarness(random.pick(plan.grants));
  const admissions: Admission[] = [];
  const sent: LedgerCommand[] = [];
  let nowMs = START;
  for (let step = 0; step < STEPS; step += 1) {
    nowMs = plan.nextMs(nowMs);
    const granted = ledger.funds.grantedNanoUsd + (random.chance(0.1) ? random.pick(plan.grants) : 0);
    ledger.funds = { grantedNanoUsd: granted, isCurrent: random.chance(0.9) };
    const before = new Map(ledger.state.open);
    const barred = new Set(ledger.state.barred.keys());
    const closedBefore = ledger.closings.length;
    const command = nextCommand(plan, sent);
    if (command === 'expire') ledger.expire(nowMs);
    else {
      sent.push(command);
      const decision = ledger.apply(command, nowMs);
      if (decision.type === 'refused') checkRefusal(ledger, plan, command, decision.error);
      if (decision.type === 'admitted' && command.type === 'reserve') {
        const { id } = command.reservation.receipt;
        const opened = ledger.state.open.get(id);
        if (opened !== undefined && opened !== before.get(id)) {
          if (opened.heldNanoUsd > 0) demand(readBalanceOf(ledger) >= 0, 'balance after a hold', readBalanceOf(ledger));
          for (const [scope, { concurrency }] of scopesOf(opened.reservation)) {
            const inFlight = ledger.state.scopes.get(scope)?.inFlight ?? 0;
            demand(concurrency === null || inFlight <= concurrency, `in flight of '${scope}' admitted`, inFlight);
            const atMs = ledger.state.nowMs;
            const closingsFrom = ledger.closings.length;
            admissions.push({ scope, id, atMs, taken: opened.takenTokens, closingsFrom, released: false });
          }
        }
      }
    }
    for (const { receipt } of ledger.closings.slice(closedBefore)) {
      if (barred.has(receipt.id)) demand(!ledger.state.barred.has(receipt.id), 'closed while barred', receipt.id);
    }
    if (command !== 'expire' && command.type === 'release' && before.has(command.id)) {
      const closed = ledger.closings.slice(closedBefore).some(({ receipt }) => receipt.id === command.id);
      for (const own of admissions) if (own.id === command.id && !closed) own.released = true;
    }
    demand(readBalanceOf(ledger) === countBalance(ledger), 'balance', readBalanceOf(ledger));
    check(ledger, admissions);
  }
  ledger.expire(nowMs + 600_000);
  return ledger;
}

function readAllUse(ledger: LedgerHarness, plan: Plan): string {
  const uses = plan.requests.map(({ key, limits, keyLimits }) => [
    readUse(ledger.state, '', { rpm: limits?.rpm ?? null, tpm: limits?.tpm ?? null }),
    readUse(ledger.state, key!, { rpm: keyLimits?.rpm ?? null, tpm: keyLimits?.tpm ?? null }),
  ]);
  return JSON.stringify(uses);
}

/** An assertion for millions of steps: vitest's own would take most of the time. */
function demand(holds: boolean, what: string, found: unknown): void {
  if (!holds) expect.fail(`${what}: ${JSON.stringify(found)}`);
}

/** A refusal costs nothing, and a lone caller who waits as long as it says is admitted. */
function checkRefusal(ledger: LedgerHarness, plan: Plan, command: LedgerCommand, error: GatewayError): void {
  const alone = structuredClone(ledger.state);
  const use = readAllUse(ledger, plan);
  const credits = { ...ledger.state.credits };
  applyCommand(ledger.state, command, ledger.state.nowMs, null, ledger.funds);
  expect(readAllUse(ledger, plan), 'use after the same refusal again').toBe(use);
  expect(ledger.state.credits, 'credits after the same refusal again').toEqual(credits);
  if (error.kind !== 'rate_limited') return;
  alone.open.clear();
  const early = structuredClone(alone);
  const tooEarly = applyCommand(early, command, early.nowMs + error.retryAfterMs - 1, null, ledger.funds).decision;
  expect(tooEarly.type, 'one millisecond early').toBe('refused');
  const retried = applyCommand(alone, command, alone.nowMs + error.retryAfterMs, null, ledger.funds).decision;
  const further = ['concurrency_limited', 'insufficient_quota', 'limiter_unavailable'];
  if (retried.type === 'refused') expect(further, 'after the wait').toContain(retried.error.kind);
}

/** Levels within [0, 2 × capacity]; in flight exactly the open reservations. */
function checkLevels(ledger: LedgerHarness): void {
  const open = new Map<string, number>();
  for (const { reservation } of ledger.state.open.values()) {
    for (const [name] of scopesOf(reservation)) open.set(name, (open.get(name) ?? 0) + 1);
  }
  for (const [name, use] of ledger.state.scopes) {
    const used = Math.min(use.requests.usedUnits, use.tokens.usedUnits);
    demand(used >= 0, `used of '${name}'`, used);
    demand(use.inFlight === (open.get(name) ?? 0), `in flight of '${name}'`, use.inFlight);
  }
  for (const { reservation } of ledger.state.open.values()) {
    for (const [name, limits] of scopesOf(reservation)) {
      const use = readUse(ledger.state, name, limits);
      for (const [used, limit] of [
        [use.requests, limits.rpm],
        [use.tokens, limits.tpm],
      ] as const) {
        demand(limit === null || used <= 2 * limit, `used of '${name}'`, used);
      }
    }
  }
}

/**
 * Over any interval: admitted ≤ capacity + rate × t. Of a request counts what it took and really used: what it gave
 * back counts for nobody, and what it used beyond its reservation is debt, not admission.
 */
function checkIntervals(plan: Plan, ledger: LedgerHarness, admissions: readonly Admission[]): void {
  const scopes = new Map(plan.requests.flatMap((request) => scopesOf(buildReservation(request))));
  for (const [scope, limits] of scopes) {
    const own = admissions.filter((admission) => admission.scope === scope && !admission.released);
    for (const [name, limit, amountOf] of [
      ['requests', limits.rpm, () => 1],
      ['tokens', limits.tpm, (admission: Admission) => readUsedOf(ledger, admission)],
    ] as const) {
      if (limit === null) continue;
      const amounts = own.map(amountOf);
      for (let from = 0; from < own.length; from += 1) {
        let admitted = 0;
        for (let to = from; to < own.length; to += 1) {
          admitted += amounts[to]!;
          const allowed: number = limit + ((own[to]!.atMs - own[from]!.atMs) * limit) / 60_000;
          demand(admitted <= allowed + 1e-6, `'${scope}': ${name} admitted where ${allowed} may be`, admitted);
        }
      }
    }
  }
}

/** What an admitted request took and used, by the closing that counted least: a later one only adds debt. */
function readUsedOf(ledger: LedgerHarness, { id, taken, closingsFrom }: Admission): number {
  const used = ledger.closings
    .slice(closingsFrom)
    .filter(({ receipt }) => receipt.id === id)
    .map(({ receipt }) => toTotalTokens(receipt.usage));
  return Math.min(taken, ...used);
}

/** Each request has one final receipt, its revs without gaps, at most one of them not `lost`. */
function checkReceipts(ledger: LedgerHarness, opened: ReadonlySet<string>): void {
  demand(ledger.state.open.size === 0, 'open at the end', ledger.state.open.size);
  for (const [name, use] of ledger.state.scopes) {
    demand(use.inFlight === 0, `in flight of '${name}' at the end`, use.inFlight);
  }
  const stored = [...ledger.store.keys()];
  demand(stored.length === opened.size && stored.every((id) => opened.has(id)), 'receipts at the end', stored);
  for (const id of opened) {
    const closings = ledger.closings.filter(({ receipt }) => receipt.id === id);
    const told = closings.map(({ rev, receipt }) => `${rev} ${receipt.status}`);
    demand(
      closings.every(({ rev }, at) => rev === at + 1),
      `revs of ${id}`,
      told,
    );
    demand(
      closings.slice(0, -1).every(({ receipt }) => receipt.status === 'lost'),
      `what was replaced of ${id}`,
      told,
    );
    demand(closings.at(-1) === ledger.store.get(id), `the last of ${id}`, told);
    demand(closings.at(-1)?.receipt.status !== 'in_progress', `the end of ${id}`, told);
  }
}

/** The ids that must end with a receipt: all that were ever open and not taken back before they were closed. */
function trackOpened(): { readonly ids: Set<string>; readonly note: (ledger: LedgerHarness) => void } {
  const ids = new Set<string>();
  return {
    ids,
    note(ledger) {
      for (const id of ledger.state.open.keys()) ids.add(id);
      for (const { receipt } of ledger.closings) ids.add(receipt.id);
      for (const id of ids) if (!ledger.state.open.has(id) && !ledger.store.has(id)) ids.delete(id);
    },
  };
}

function forEachSeed(run: (seed: number) => void): void {
  for (let seed = 0; seed < SCHEDULES; seed += 1) {
    try {
      run(seed);
    } catch (error) {
      throw new Error(`seed ${seed}: ${error instanceof Error ? error.message : String(error)}`, { cause: error });
    }
  }
}

const LONG_MS = 1_800_000;

test(
  `§5 ${SCHEDULES} tight schedules: intervals, levels, slots, balance, honest refusals, one receipt each`,
  { timeout: LONG_MS },
  () => {
    let admissions = 0;
    forEachSeed((seed) => {
      const plan = planTight(seed);
      const opened = trackOpened();
      let last: readonly Admission[] = [];
      const ledger = runPlan(plan, (at, admitted) => {
        checkLevels(at);
        opened.note(at);
        last = admitted;
      });
      checkIntervals(plan, ledger, last);
      checkReceipts(ledger, opened.ids);
      admissions += last.length;
    });
    expect(admissions, 'the schedules must admit something').toBeGreaterThan(SCHEDULES);
  },
);

test(
  `§5 ${SCHEDULES} schedules in one instant: use is exactly what receipts and reservations say`,
  { timeout: LONG_MS },
  () => {
    let lost = 0;
    forEachSeed((seed) => {
      const plan = planFrozen(seed);
      const opened = trackOpened();
      const far = { rpm: 1_000_000, tpm: 1_000_000_000 };
      const check = (ledger: LedgerHarness): void => {
        opened.note(ledger);
        const receipts = [...ledger.store.values()].map(({ receipt }) => toTotalTokens(receipt.usage));
        const taken = [...ledger.state.open.values()].map(({ takenTokens }) => takenTokens);
        const { requests, tokens, inFlight } = readUse(ledger.state, '', far);
        const ids = new Set([...ledger.state.open.keys(), ...ledger.store.keys()]);
        const sum = [...receipts, ...taken].reduce((all, one) => all + one, 0);
        demand(requests === ids.size, 'requests of the workspace', requests);
        demand(tokens === sum, 'tokens of the workspace', tokens);
        demand(inFlight === taken.length, 'in flight of the workspace', inFlight);
      };
      const ledger = runPlan(plan, check);
      checkReceipts(ledger, opened.ids);
      lost += ledger.closings.filter(({ rev }) => rev > 1).length;
    });
    expect(lost, 'the schedules must replace lost receipts').toBeGreaterThan(SCHEDULES / 10);
  },
);
