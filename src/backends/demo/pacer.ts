// Time: how fast tokens come, and a wait that an abort ends at once without leaving its timer behind.
// It reads no clock of its own besides the timer; `nowMs` is handed in.

/** The clock and the timer; the tests' versions take no time. */
export interface Clock {
  readonly nowMs: () => number;
  readonly wait: (ms: number, signal: AbortSignal) => Promise<void>;
}

const tokensPerSecondDefault = 40;
// A late timer is made up for, a reader that was away is not: it would get its backlog in one burst.
const catchUpMsMax = 250;
// At full speed nothing waits, so an abort could not be heard; this often the event loop gets its turn.
const tokensBetweenTurns = 256;

/** Reads the var TOKENS_PER_SECOND; null when it is no speed. Absent or blank is the default, 0 is no limit. */
export function parseTokensPerSecond(value: string | number | undefined): number | null {
  if (value === undefined || String(value).trim() === '') return tokensPerSecondDefault;
  const speed = Number(value);
  return Number.isFinite(speed) && speed >= 0 ? speed : null;
}

/** Resolves after `ms`, or as soon as `signal` aborts. */
export function wait(ms: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (signal.aborted) return resolve();
    const finish = (): void => {
      clearTimeout(timer);
      signal.removeEventListener('abort', finish);
      resolve();
    };
    const timer = setTimeout(finish, ms);
    signal.addEventListener('abort', finish);
  });
}

/** Gives a function that resolves when the next token is due, and rejects with the signal's reason once it aborted. */
export function createPacer(tokensPerSecond: number, clock: Clock, signal: AbortSignal): () => Promise<void> {
  const intervalMs = tokensPerSecond === 0 ? 0 : 1000 / tokensPerSecond;
  let dueMs = clock.nowMs();
  let count = 0;
  return async () => {
    signal.throwIfAborted();
    count += 1;
    if (intervalMs === 0) {
      if (count % tokensBetweenTurns === 0) await clock.wait(0, signal);
    } else {
      dueMs = Math.max(dueMs + intervalMs, clock.nowMs() - catchUpMsMax);
      const leftMs = dueMs - clock.nowMs();
      if (leftMs > 0) await clock.wait(leftMs, signal);
    }
    signal.throwIfAborted();
  };
}
