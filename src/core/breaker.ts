// A circuit breaker for one backend as this isolate has seen it (SPEC §6). Three failures in a row open it; while it is
// open the backend is asked last, never not at all; after a pause one request at a time may probe it. Pure.

/** What an isolate remembers of a backend. */
export type Breaker = {
  /** Failures since the last success. */
  readonly failures: number;
  /** Until then the backend is asked last. */
  readonly openUntilMs: number;
  /** Whether a probe is under way. */
  readonly probing: boolean;
};

/** A backend nothing is known against. */
export const CLOSED_BREAKER: Breaker = { failures: 0, openUntilMs: 0, probing: false };

/** Failures in a row that open a breaker. */
export const FAILURES_MAX = 3;

const PAUSE_MS = 5000;
const PAUSE_MS_MAX = 60_000;

/** How a backend stands: `probe` means that the next request may try it, and only that one. */
export function readBreaker(breaker: Breaker, nowMs: number): 'closed' | 'open' | 'probe' {
  if (breaker.failures < FAILURES_MAX) return 'closed';
  return breaker.probing || nowMs < breaker.openUntilMs ? 'open' : 'probe';
}

/** A request is being sent; of an open breaker it is the probe. */
export function beginAttempt(breaker: Breaker, nowMs: number): Breaker {
  return readBreaker(breaker, nowMs) === 'probe' ? { ...breaker, probing: true } : breaker;
}

/** The backend answered. */
export function noteSuccess(): Breaker {
  return CLOSED_BREAKER;
}

/** The backend failed; each further failure doubles the pause, up to a minute. */
export function noteFailure(breaker: Breaker, nowMs: number): Breaker {
  const failures = breaker.failures + 1;
  if (failures < FAILURES_MAX) return { failures, openUntilMs: 0, probing: false };
  const pauseMs = Math.min(PAUSE_MS * 2 ** (failures - FAILURES_MAX), PAUSE_MS_MAX);
  return { failures, openUntilMs: nowMs + pauseMs, probing: false };
}

/** The attempt told nothing of the backend: the client left, or its request was at fault. */
export function noteNothing(breaker: Breaker): Breaker {
  return { ...breaker, probing: false };
}
