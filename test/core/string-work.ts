// Counts how much of a text a piece of code looks at, so that linear cost can be asserted without a clock.

/**
 * Characters visited by `charCodeAt` and `indexOf` of strings while `run` runs. What the engine does by itself
 * (JSON.parse, slices) is not counted.
 */
export function countStringWork(run: () => void): number {
  const charCodeAt = Reflect.get(String.prototype, 'charCodeAt');
  const indexOf = Reflect.get(String.prototype, 'indexOf');
  let work = 0;
  Object.assign(String.prototype, {
    charCodeAt(this: string, at: number): number {
      work += 1;
      return Reflect.apply(charCodeAt, this, [at]);
    },
    indexOf(this: string, needle: string, from = 0): number {
      const found = Reflect.apply(indexOf, this, [needle, from]);
      work += 1 + (found === -1 ? this.length : found) - Math.min(from, this.length);
      return found;
    },
  });
  try {
    run();
  } finally {
    Object.assign(String.prototype, { charCodeAt, indexOf });
  }
  return work;
}
