// Everything that happens by the clock while a request runs: keep-alives, deadlines, the lease. One timer for all of
// it, set to the next thing due, so that a chunk costs no timer.

/** Something to do when its time has come. `run` must move `dueAtMs` into the future, or to Infinity. */
export type Rule = { readonly dueAtMs: () => number; readonly run: (nowMs: number) => void };

/** A running watch; stop it or its timer keeps the request alive. */
export type Watch = {
  readonly stop: () => void;
  /** Looks at the rules anew: something has become due earlier than it was. */
  readonly refresh: () => void;
};

const TIMER_MS_MAX = 60_000;

/** Starts a watch over `rules`. */
export function startWatch(rules: readonly Rule[], now: () => number): Watch {
  let timer: ReturnType<typeof setTimeout> | null = null;
  let stopped = false;

  function schedule(): void {
    if (stopped) return;
    const dueAtMs = Math.min(...rules.map((rule) => rule.dueAtMs()));
    timer = setTimeout(tick, Math.min(Math.max(1, dueAtMs - now()), TIMER_MS_MAX));
  }

  function tick(): void {
    const nowMs = now();
    for (const rule of rules) if (!stopped && rule.dueAtMs() <= nowMs) rule.run(nowMs);
    schedule();
  }

  schedule();
  return {
    refresh() {
      if (timer !== null) clearTimeout(timer);
      schedule();
    },
    stop() {
      stopped = true;
      if (timer !== null) clearTimeout(timer);
    },
  };
}

/** A rule that runs once at a fixed time. */
export function runOnceAt(dueAtMs: number, run: () => void): Rule {
  let done = false;
  return {
    dueAtMs: () => (done ? Infinity : dueAtMs),
    run() {
      done = true;
      run();
    },
  };
}

/** A rule that runs every `everyMs`, first after one period. */
export function runEvery(everyMs: number, startMs: number, run: () => void): Rule {
  let nextMs = startMs + everyMs;
  return {
    dueAtMs: () => nextMs,
    run(nowMs) {
      nextMs = nowMs + everyMs;
      run();
    },
  };
}
