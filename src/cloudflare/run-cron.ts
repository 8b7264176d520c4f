// Which cron of wrangler.toml does what: one looks for replays, every other is the daily run (SPEC §9, §12).

import { REPLAY_CRON } from '../core/crons.ts';
import { type Env } from './env.ts';
import { runDaily } from './run-daily.ts';
import { runReplays } from './run-replays.ts';

/** Runs what a cron stands for. Never rejects. */
export function runCron(cron: string, env: Env, scheduledMs: number): Promise<void> {
  return cron === REPLAY_CRON ? runReplays(env, Date.now) : runDaily(env, scheduledMs);
}
