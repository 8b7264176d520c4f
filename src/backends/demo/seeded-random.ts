// Deterministic randomness: a hash of text and a generator that starts from it.
// Good enough to pick sentences; nothing secret may ever come from here.

/** A hash of 32 bits (FNV-1a over UTF-16 units). */
export function hashText(text: string): number {
  let hash = 0x811c9dc5;
  for (let index = 0; index < text.length; index += 1) {
    hash = Math.imul(hash ^ text.charCodeAt(index), 0x01000193);
  }
  return hash >>> 0;
}

/** Gives a function that draws whole numbers from 0 to below `limit`; the same start gives the same draws (mulberry32). */
export function createRandom(start: number): (limit: number) => number {
  let state = start >>> 0;
  return (limit) => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return Math.floor((((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32) * limit);
  };
}
