// What the ledger has just refused, told again by this isolate for up to 2 s, so that a client in a loop does not starve
// settlements (SPEC §5). Only refusals by a limit are remembered, only for the key and model refused, only against
// requests that ask for as much or more, never for longer than the client was told to wait, and not once a request that
// this isolate closed has given something back.

import { countDownError, countDownRates } from '../core/count-down.ts';
import { type Reservation } from '../core/ledger-types.ts';
import { err, type Result } from '../core/result.ts';
import { type RateSnapshot } from '../core/retry-hints.ts';
import { sleep } from './deadline.ts';
import { type Admission, type Refusal } from './ports.ts';

/** What a request asks of its limits and credits. */
type Demand = Pick<Reservation, 'promptTokens' | 'outputTokens' | 'choices' | 'credit'>;

type Answer = Result<Admission, Refusal>;
type AskLedger = () => Promise<Answer>;

/** The memory of one isolate. */
export type RefusalMemory = {
  /** The ledger's answer to a reservation, or its last refusal again. `askLedger` is called at most once. */
  readonly reserve: (reservation: Reservation, askLedger: AskLedger) => Promise<Answer>;
  /** A request was closed at the ledger: what it gave back may admit what was refused before. */
  readonly noteClosed: (reservation: Reservation) => void;
};

const REPEATED_MS_MAX = 2000;
/**
 * How long each kind is repeated at most. A slot may come free at any moment, in other isolates too, without a wait that
 * could be told: those refusals are repeated just long enough to take the edge off a loop.
 */
const REPEATED_MS: Readonly<Record<string, number>> = {
  rate_limited: REPEATED_MS_MAX,
  request_above_bucket: REPEATED_MS_MAX,
  insufficient_quota: REPEATED_MS_MAX,
  concurrency_limited: 200,
};
const REFUSALS_MAX = 5000;
/**
 * Once a refusal has had its time, one request asks anew and the others wait so long for what it learns, looking every
 * few milliseconds: a promise of another request may never be settled, if that one's client leaves.
 */
const PROBE_MS = 250;
const LOOK_MS = 10;

type Known = {
  readonly demand: Demand;
  readonly refusal: Refusal;
  readonly atMs: number;
  readonly untilMs: number;
  /** Since when one request has been asking the ledger anew; null while none does. */
  probedAtMs: number | null;
};

/** Creates an empty memory. `now` is Unix time in milliseconds. */
export function createRefusalMemory(now: () => number): RefusalMemory {
  const byName = new Map<string, Known>();
  /** When a request of a workspace was last closed by this isolate. */
  const closedAtMs = new Map<string, number>();

  function find(reservation: Reservation, nowMs: number): Known | null {
    const known = byName.get(nameOf(reservation));
    if (known === undefined || !asksAsMuch(reservation, known.demand)) return null;
    if (known.refusal.error.kind === 'insufficient_quota' && !holdsAsMuch(reservation, known.demand)) return null;
    return nowMs < known.untilMs + REPEATED_MS_MAX ? known : null;
  }

  async function ask(reservation: Reservation, askLedger: AskLedger, known: Known | null): Promise<Answer> {
    if (known !== null) known.probedAtMs = now();
    const answer = await askLedger();
    const name = nameOf(reservation);
    const repeatedMs = answer.ok ? 0 : readRepeatedMs(answer.error);
    if (!answer.ok && repeatedMs > 0) keep(name, reservation, answer.error, repeatedMs);
    else if (known !== null && byName.get(name) === known) {
      // Admitted, but with nothing left for the next: whoever waited goes on asking one by one.
      if (answer.ok && isUsedUp(answer.value.rates, reservation)) known.probedAtMs = null;
      else byName.delete(name);
    }
    return answer;
  }

  function keep(name: string, reservation: Reservation, refusal: Refusal, ms: number): void {
    const atMs = now();
    const { promptTokens, outputTokens, choices, credit } = reservation;
    const demand = { promptTokens, outputTokens, choices, ...(credit === undefined ? {} : { credit }) };
    byName.delete(name);
    byName.set(name, { demand, refusal, atMs, untilMs: atMs + ms, probedAtMs: null });
    const [oldest] = byName.keys();
    if (byName.size > REFUSALS_MAX && oldest !== undefined) byName.delete(oldest);
  }

  return {
    async reserve(reservation, askLedger) {
      const patientUntilMs = now() + PROBE_MS;
      for (;;) {
        const nowMs = now();
        const known = find(reservation, nowMs);
        const isHelped = known !== null && isHelpedByClosing(known, closedAtMs.get(reservation.receipt.workspace));
        const repeated = known === null || isHelped ? null : repeat(known, reservation, nowMs);
        if (repeated !== null) return err(repeated);
        const isProbed = known !== null && known.probedAtMs !== null && nowMs < known.probedAtMs + PROBE_MS;
        if (!isProbed || nowMs >= patientUntilMs) return ask(reservation, askLedger, known);
        await sleep(LOOK_MS);
      }
    },
    noteClosed({ receipt }) {
      if (closedAtMs.size >= REFUSALS_MAX) closedAtMs.clear();
      closedAtMs.set(receipt.workspace, now());
    },
  };
}

/** Requests of one name are refused alike: those of a key, by what outputs are learned by and what they cost. */
function nameOf({ receipt }: Reservation): string {
  return `${receipt.key} ${receipt.price_version} ${receipt.upstream_model}`;
}

function asksAsMuch(demand: Demand, refused: Demand): boolean {
  if (demand.promptTokens < refused.promptTokens || demand.choices < refused.choices) return false;
  if (demand.outputTokens === null || refused.outputTokens === null) {
    return demand.outputTokens === refused.outputTokens;
  }
  return demand.outputTokens >= refused.outputTokens;
}

/** Credits are held by the bytes of a prompt, of which as many tokens can have fewer. */
function holdsAsMuch({ credit }: Demand, { credit: refused }: Demand): boolean {
  if (credit === undefined || refused === undefined) return credit === refused;
  return credit.inputTokensMax >= refused.inputTokensMax && credit.outputTokensMax >= refused.outputTokensMax;
}

function repeat({ demand: refused, refusal, atMs, untilMs }: Known, demand: Demand, nowMs: number): Refusal | null {
  if (nowMs >= untilMs) return null;
  const moreTokens = sumTokens(demand) - sumTokens(refused);
  const error = countDownError(refusal.error, nowMs - atMs, moreTokens);
  if (error === null) return null;
  return { error, rates: refusal.rates === null ? null : countDownRates(refusal.rates, nowMs - atMs) };
}

/** Closing a request gives back tokens, slots and credits, never the request itself. */
function isHelpedByClosing({ refusal: { error }, atMs }: Known, closedAtMs: number | undefined): boolean {
  if (error.kind === 'request_above_bucket') return false;
  if (error.kind === 'rate_limited' && error.bucket === 'requests') return false;
  return closedAtMs !== undefined && closedAtMs >= atMs;
}

/** Milliseconds for which a refusal is repeated; 0 for what is no refusal by a limit. */
function readRepeatedMs({ error }: Refusal): number {
  const repeatedMs = REPEATED_MS[error.kind] ?? 0;
  return error.kind === 'rate_limited' ? Math.min(repeatedMs, error.retryAfterMs) : repeatedMs;
}

function isUsedUp({ requests, tokens }: RateSnapshot, demand: Demand): boolean {
  return (requests !== null && requests.remaining < 1) || (tokens !== null && tokens.remaining < sumTokens(demand));
}

function sumTokens({ promptTokens, outputTokens }: Demand): number {
  return promptTokens + (outputTokens ?? 0);
}
