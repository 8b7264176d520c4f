// Counts how much of a text a piece of code looks at, so that linear cost can be asserted without a clock.

/**
 * Characters visited by `charCodeAt` and `indexOf` of strings while `run` runs. What the engine does by itself
 * (JSON.parse, slices) is not counted.
 */
export function countStringWork(run: () => void): number {
  const natives = { charCodeAt: String.prototype.charCodeAt, indexOf: String.prototype.indexOf };
  let work = 0;
  Object.assign(String.prototype, {
    charCodeAt(this: string, at: number): number {
      work += 1;
      return natives.charCodeAt.call(this, at);
    },
    indexOf(this: string, needle: string, from = 0): number {
      const found = natives.indexOf.call(this, needle, from);
      work += 1 + (found === -1 ? this.length : found) - Math.min(from, this.length);
      return found;
    },
  });
  try {
    run();
  } finally {
    Object.assign(String.prototype, natives);
  }
  return work;
}
