// What this isolate knows of its backends' health: one breaker per binding (SPEC §6). Each isolate learns for itself, in
// at most three failures.

import {
  beginAttempt,
  type Breaker,
  CLOSED_BREAKER,
  noteFailure,
  noteNothing,
  noteSuccess,
  readBreaker,
} from '../core/breaker.ts';

/** How an attempt ended, as far as the backend is concerned. */
export type AttemptOutcome = 'answered' | 'failed' | 'unknown';

/** The health of all backends. */
export type BackendHealth = {
  /** Whether a backend should be asked last. */
  readonly isOpen: (binding: string) => boolean;
  /** An attempt begins; call what is returned once, with its outcome. */
  readonly begin: (binding: string) => (outcome: AttemptOutcome) => void;
};

/** Creates the memory of one isolate. */
export function createBackendHealth(now: () => number): BackendHealth {
  const breakers = new Map<string, Breaker>();
  const read = (binding: string): Breaker => breakers.get(binding) ?? CLOSED_BREAKER;
  return {
    isOpen: (binding) => readBreaker(read(binding), now()) === 'open',
    begin(binding) {
      breakers.set(binding, beginAttempt(read(binding), now()));
      return (outcome) => {
        const after = { answered: noteSuccess, failed: noteFailure, unknown: noteNothing }[outcome];
        breakers.set(binding, after(read(binding), now()));
      };
    },
  };
}
