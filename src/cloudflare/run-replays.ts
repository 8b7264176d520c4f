// Looks whether somebody asked for receipts to be carried to D1 again, and asks the ledgers (SPEC §9). Carrying them is the
// ledgers' alarm's work, an upsert that changes nothing D1 has already.

import * as z from 'zod';
import { withDeadline } from '../gateway/deadline.ts';
import { type LogEntry } from '../gateway/ports.ts';
import { type Env } from './env.ts';
import { log as writeLog } from './log.ts';

/** Ledgers asked in one run. */
const REPLAYS_MAX = 200;
const DEADLINE_MS = 10_000;

const DUE = `SELECT seq, workspace, since FROM replays WHERE done_at IS NULL ORDER BY seq LIMIT ${REPLAYS_MAX}`;
const MARK = 'UPDATE replays SET receipts = ?2, fault = ?3, done_at = ?4 WHERE seq = ?1';

const dueSchema = z.array(z.object({ seq: z.number(), workspace: z.string(), since: z.string() }));

/** Runs what is due. Never rejects; a ledger that does not answer is asked again the next time. */
export async function runReplays(
  env: Env,
  now: () => number,
  log: (entry: LogEntry) => void = writeLog,
): Promise<void> {
  try {
    const due = dueSchema.parse((await env.DB.prepare(DUE).all()).results);
    for (const { seq, workspace, since } of due) {
      const mark = async (receipts: number | null, fault: string | null): Promise<void> => {
        await env.DB.prepare(MARK).bind(seq, receipts, fault, new Date(now()).toISOString()).run();
      };
      const sinceMs = Date.parse(since);
      if (Number.isNaN(sinceMs)) {
        await mark(null, 'since is no time');
        continue;
      }
      const receipts = await ask(env, workspace, sinceMs, log);
      if (receipts === null) continue;
      await mark(receipts, null);
      log({ event: 'replay', workspace, since, receipts });
    }
  } catch (error) {
    log({ event: 'replay_failed', fault: String(error) });
  }
}

async function ask(
  env: Env,
  workspace: string,
  sinceMs: number,
  log: (entry: LogEntry) => void,
): Promise<number | null> {
  try {
    const asking: Promise<number> = env.LEDGER.getByName(workspace).replayReceipts(sinceMs);
    const answer = await withDeadline(asking, DEADLINE_MS, () => undefined);
    if (answer !== 'deadline') return answer;
    log({ event: 'replay_failed', workspace, fault: 'the ledger did not answer in time' });
  } catch (error) {
    log({ event: 'replay_failed', workspace, fault: String(error) });
  }
  return null;
}
