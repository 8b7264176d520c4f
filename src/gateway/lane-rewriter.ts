// What happens to the text that passes a client's pipe: what JavaScript wrote passes as it is, what the engine's body was
// piped into it is translated, and a mark shows where the one ends and the other begins again (SPEC §7, exact lane).

/** The rewriting of one pipe. */
export type LaneRewriter = {
  /** Called by the pipe for each piece of text, in order. */
  readonly rewrite: (text: string) => string;
  /** Says that JavaScript is about to write this text. */
  readonly expect: (text: string) => void;
  /** What is not expected is translated from now on. */
  readonly translate: (translate: (text: string) => string) => void;
  /** Resolves when `mark`, which must be written next and occur nowhere else, has come by; it is taken out. All that follows passes as it is. */
  readonly stopAt: (mark: string) => Promise<void>;
};

/** Creates the rewriting of a pipe nothing has passed yet. */
export function createLaneRewriter(): LaneRewriter {
  let expected = 0;
  let translator: ((text: string) => string) | null = null;
  let stop: { readonly mark: string; readonly reached: () => void } | null = null;

  function rewrite(text: string): string {
    if (expected > 0) {
      const own = Math.min(expected, text.length);
      expected -= own;
      return own === text.length ? text : text.slice(0, own) + rewrite(text.slice(own));
    }
    if (translator === null) return text;
    if (stop === null || !text.endsWith(stop.mark)) return translator(text);
    // Before the mark there is at most U+FFFD: half a character that the engine had sent, which comes whole later.
    translator = null;
    stop.reached();
    return '';
  }

  return {
    rewrite,
    expect(text) {
      if (translator === null) expected += text.length;
    },
    translate(translate) {
      translator = translate;
    },
    stopAt(mark) {
      const { promise, resolve } = Promise.withResolvers<void>();
      stop = { mark, reached: resolve };
      return promise;
    },
  };
}
