// Stop strings across token borders: holds back what may be the beginning of one, so that none is ever let out.
// It knows text only; tokens, counts and the end of a choice are the decoder's.

/** Text that may go out now, and the stop string that ended it, if one did. */
export interface StopStep {
  readonly text: string;
  readonly matched: string | null;
}

/** Two calls: `push` for each piece of text, `flush` for what is still held when the text ends without a stop. */
export interface StopMatcher {
  readonly push: (piece: string) => StopStep;
  readonly flush: () => string;
}

/** Makes a matcher for one choice. None of the stops may be empty. */
export function createStopMatcher(stops: readonly string[]): StopMatcher {
  let held = '';
  return {
    push(piece) {
      held += piece;
      const match = findFirst(held, stops);
      if (match !== null) return { text: held.slice(0, match.at), matched: match.stop };
      const keep = Math.max(0, ...stops.map((stop) => measureBegun(held, stop)));
      const text = held.slice(0, held.length - keep);
      held = held.slice(held.length - keep);
      return { text, matched: null };
    },
    flush() {
      const text = held;
      held = '';
      return text;
    },
  };
}

/** The match that begins first; of two that begin together the one named first. */
function findFirst(text: string, stops: readonly string[]): { readonly at: number; readonly stop: string } | null {
  let first: { readonly at: number; readonly stop: string } | null = null;
  for (const stop of stops) {
    const at = text.indexOf(stop);
    if (at >= 0 && (first === null || at < first.at)) first = { at, stop };
  }
  return first;
}

/** The length of the longest end of `text` with which `stop` begins. */
function measureBegun(text: string, stop: string): number {
  for (let length = Math.min(text.length, stop.length - 1); length > 0; length -= 1) {
    if (stop.startsWith(text.slice(-length))) return length;
  }
  return 0;
}
