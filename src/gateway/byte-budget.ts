// One budget of bytes per isolate: request bodies in hand, partial events, JSON answers being read (SPEC §6). When it is
// spent, new requests are refused; those under way go on, and still count.

/** What one request holds of the budget. */
export type HeldBytes = {
  /** Counts bytes taken in hand; false when the budget is spent with them. */
  readonly add: (bytes: number) => boolean;
  readonly drop: (bytes: number) => void;
  /** Gives back all that is held; what comes later is not counted. */
  readonly free: () => void;
};

/** The budget of an isolate. */
export type ByteBudget = {
  readonly isSpent: () => boolean;
  readonly open: () => HeldBytes;
};

/** Creates a budget of `bytesMax`. */
export function createByteBudget(bytesMax: number): ByteBudget {
  let total = 0;
  return {
    isSpent: () => total > bytesMax,
    open() {
      let held = 0;
      let isOpen = true;
      return {
        add(bytes) {
          if (!isOpen) return true;
          held += bytes;
          total += bytes;
          return total <= bytesMax;
        },
        drop(bytes) {
          const dropped = Math.min(bytes, held);
          held -= dropped;
          total -= dropped;
        },
        free() {
          total -= held;
          held = 0;
          isOpen = false;
        },
      };
    },
  };
}
