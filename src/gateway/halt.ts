// Why a request must end before its engine is done: the first reason counts, and its signal ends the upstream side.

import { type RunEnd } from './run.ts';

/** An AbortController that remembers the first reason. */
export type Halt = {
  readonly signal: AbortSignal;
  readonly reason: () => RunEnd | null;
  readonly halt: (end: RunEnd) => void;
};

/** Creates a halt that nobody has called for. */
export function createHalt(): Halt {
  const controller = new AbortController();
  let reason: RunEnd | null = null;
  return {
    signal: controller.signal,
    reason: () => reason,
    halt(end) {
      if (reason !== null) return;
      reason = end;
      controller.abort();
    },
  };
}
