// Random numbers that are the same in every run, so that a property that fails can be run again by its seed.

export type SeededRandom = {
  /** From 0 up to, not including, 1. */
  readonly next: () => number;
  /** A whole number from `from` to `to`, both included. */
  readonly int: (from: number, to: number) => number;
  readonly pick: <T>(items: readonly T[]) => T;
  readonly chance: (probability: number) => boolean;
};

/** Creates a generator (mulberry32). */
export function createSeededRandom(seed: number): SeededRandom {
  let state = Math.imul(seed + 1, 0x9e3779b1) >>> 0;
  function next(): number {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  }
  function int(from: number, to: number): number {
    return from + Math.floor(next() * (to - from + 1));
  }
  return {
    next,
    int,
    pick: (items) => items[int(0, items.length - 1)]!,
    chance: (probability) => next() < probability,
  };
}
