// The faults of the chaos: a D1 that fails, before or after it did what it was asked; ledger objects that are reset; calls
// to a ledger whose reply is lost; isolates that die with requests under way. And what was admitted meanwhile, as the
// gateway was told. It asserts nothing.

import { env } from 'cloudflare:workers';
import { evictDurableObject, runInDurableObject } from 'cloudflare:test';
import { err } from '../../src/core/result.ts';
import { sleep } from '../../src/gateway/deadline.ts';
import { type Ledger } from '../../src/gateway/ports.ts';
import { type Receipt } from '../../src/core/receipt.ts';
import { type SeededRandom } from '../core/seeded-random.ts';

/** `down`: nothing is done. `applied`: done, and answered with an error. `shaky`: any of these, or all is well. */
export type D1Mode = 'fine' | 'down' | 'applied' | 'shaky';

export type FailingD1 = { mode: D1Mode; readonly restore: () => void };

type Method = (this: unknown, ...values: unknown[]) => Promise<unknown>;

/** Makes this isolate's D1, the one the ledger objects use too, fail as `mode` says. */
export function breakD1(random: SeededRandom): FailingD1 {
  const spoilt: (() => void)[] = [];
  const failing: FailingD1 = { mode: 'fine', restore: () => spoilt.forEach((restore) => restore()) };
  const spoil = (prototype: object, name: string): void => {
    const real: Method = Reflect.get(prototype, name);
    const broken: Method = async function (...values) {
      const mode = failing.mode === 'shaky' ? random.pick(['fine', 'down', 'applied'] as const) : failing.mode;
      if (mode === 'down') throw new Error('D1_ERROR: down');
      const answer = await real.apply(this, values);
      if (mode === 'applied') throw new Error('D1_ERROR: the answer was lost');
      return answer;
    };
    Reflect.set(prototype, name, broken);
    spoilt.push(() => void Reflect.set(prototype, name, real));
  };
  const statement = Reflect.getPrototypeOf(env.DB.prepare('SELECT 1'));
  const database = Reflect.getPrototypeOf(env.DB);
  if (statement === null || database === null) throw new Error('D1 is not what it was');
  for (const name of ['run', 'raw', 'first', 'all']) spoil(statement, name);
  spoil(database, 'batch');
  return failing;
}

/** How many times each workspace's ledger was reset. */
export type Resets = Map<string, number>;

/** Resets a ledger object: at once, with its calls under way, or once they are answered. */
export async function resetLedger(workspace: string, resets: Resets, atOnce: boolean): Promise<void> {
  resets.set(workspace, (resets.get(workspace) ?? 0) + 1);
  const stub = env.LEDGER.getByName(workspace);
  if (!atOnce) return evictDurableObject(stub);
  await runInDurableObject(stub, (_, state) => state.abort('chaos')).catch(() => undefined);
}

/** What the gateway knows of its admissions. */
export type Admissions = {
  /** Requests that the ledger admitted and that were not released. */
  readonly admitted: Set<string>;
  /** Requests whose isolate died, with the counts of each renewal that was answered. */
  readonly dead: Map<string, number[]>;
  readonly wrap: (ledger: Ledger) => Ledger;
};

/** Waits until a reservation is saved; false when the ledger has been reset first. */
async function isSaved(workspace: string, id: string, isReset: () => boolean): Promise<boolean> {
  const stub = env.LEDGER.getByName(workspace);
  for (;;) {
    if (isReset()) return false;
    const query = 'SELECT COUNT(*) AS n FROM reservations WHERE id = ?';
    const found = runInDurableObject(stub, (_, { storage }) => storage.sql.exec(query, id).one()['n']);
    if ((await found.catch(() => 0)) === 1) return !isReset();
    await sleep(20);
  }
}

/** What is to become of a request. */
export type Fate = { readonly dies: boolean; readonly late: boolean };

/** Renewals that reach the ledger from a request that dies or ends late. */
const RENEWALS = 2;

/** Spoils calls now and then, and those of some requests as their fate says. */
export function spoilLedger(
  random: SeededRandom,
  resets: Resets,
  fateOf: (receipt: Receipt) => Fate | undefined,
): Admissions {
  const renewals = new Map<string, number>();
  const admitted = new Set<string>();
  const dead = new Map<string, number[]>();
  const wrap = (ledger: Ledger): Ledger => ({
    ...ledger,
    async reserve(reservation, location) {
      const { id, workspace } = reservation.receipt;
      const answer = await ledger.reserve(reservation, location);
      if (!answer.ok) return answer;
      if (random.chance(0.03)) return err({ error: { kind: 'limiter_unavailable' }, rates: null });
      admitted.add(id);
      const resetsBefore = resets.get(workspace);
      // What a reset forgets is only known again through the request itself: it must not die before it was saved.
      if (fateOf(reservation.receipt)?.dies === true) {
        if (await isSaved(workspace, id, () => resets.get(workspace) !== resetsBefore)) dead.set(id, [0]);
      }
      return answer;
    },
    async renew(reservation) {
      const { id, usage } = reservation.receipt;
      const counts = dead.get(id);
      const isDoomed = counts !== undefined || fateOf(reservation.receipt)?.late === true;
      if (!isDoomed) return random.chance(0.2) ? 'unreachable' : ledger.renew(reservation);
      const renewed = renewals.get(id) ?? 0;
      if (renewed === RENEWALS) return 'unreachable';
      renewals.set(id, renewed + 1);
      counts?.push(usage.output_tokens);
      return ledger.renew(reservation);
    },
    async settle(reservation) {
      if (dead.has(reservation.receipt.id)) return true;
      if (random.chance(0.1)) return false;
      const settled = await ledger.settle(reservation);
      return settled && !random.chance(0.1);
    },
    async release(workspace, id) {
      admitted.delete(id);
      dead.delete(id);
      return ledger.release(workspace, id);
    },
  });
  return { admitted, dead, wrap };
}
