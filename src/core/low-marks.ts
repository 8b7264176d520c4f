// How low a bucket's use has been since each open reservation was taken. What has drained away in the meantime cannot be
// given back: a refund up to the low mark leaves the bucket as if that much had never been taken, and only so does
// "admitted ≤ capacity + rate × t" hold over every interval (SPEC §5).

/** Use was down to `units` while the newest reservation was number `seq`. */
export type LowMark = { readonly seq: number; readonly units: number };

/**
 * Notes the use at this moment. Marks are kept in order of `seq`, each lower than all after it, so that the first mark
 * from a reservation's number on is the lowest since.
 */
export function noteLow(marks: readonly LowMark[], seq: number, units: number): readonly LowMark[] {
  const last = marks.at(-1);
  if (last !== undefined && last.seq === seq && last.units <= units) return marks;
  return [...marks.slice(0, countLower(marks, units)), { seq, units }];
}

/** The lowest use since reservation `seq` was taken; Infinity when nothing was noted since. */
export function readLowSince(marks: readonly LowMark[], seq: number): number {
  return marks.find((mark) => mark.seq >= seq)?.units ?? Infinity;
}

/** The marks as if reservation `seq` had taken `units` less. */
export function lowerSince(marks: readonly LowMark[], seq: number, units: number): readonly LowMark[] {
  const from = marks.findIndex((mark) => mark.seq >= seq);
  if (from === -1 || units === 0) return marks;
  const lowered = marks.slice(from).map((mark) => ({ seq: mark.seq, units: mark.units - units }));
  const lowest = lowered[0]?.units ?? 0;
  return [...marks.slice(0, Math.min(from, countLower(marks, lowest))), ...lowered];
}

/** Drops the marks that no reservation from `oldestSeq` on can ask for. */
export function forgetBefore(marks: readonly LowMark[], oldestSeq: number): readonly LowMark[] {
  const first = marks.findIndex((mark) => mark.seq >= oldestSeq);
  return first <= 0 ? (first === 0 ? marks : []) : marks.slice(first);
}

/** How many marks, from the first on, are lower than `units`; marks rise, so it is found from the end. */
function countLower(marks: readonly LowMark[], units: number): number {
  let count = marks.length;
  while (count > 0 && (marks[count - 1]?.units ?? 0) >= units) count -= 1;
  return count;
}
