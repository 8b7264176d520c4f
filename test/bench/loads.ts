// The loads of the bench and the goals set for them. Two lengths per load: the slope between them is the cost of an event,
// what remains the cost of a request.

export type Load = {
  readonly name: string;
  readonly streams: number;
  /** 0: as fast as they come. */
  readonly paceMs: number;
  /** Events per stream; a load of one length has no slope. */
  readonly lengths: readonly number[];
  /** How long new streams are begun, each time. */
  readonly forMs: number;
  /** Over how long the first streams begin; clocked engines then speak at different times. */
  readonly spreadMs: number;
  /** Where the goals on the slope and on TTFT are set. */
  readonly goal: 'fast' | 'paced' | 'ttft' | null;
};

const PACE_MS = 20;
/** Between two streams' beginnings, by the clock: no divisor of the pace. */
const STEP_MS = 11;

function fast(streams: number, forMs: number): Load {
  const goal = streams === 16 ? 'fast' : null;
  return { name: `${streams} fast`, streams, paceMs: 0, lengths: [50, 400], forMs, spreadMs: 0, goal };
}

function paced(lengths: readonly number[], forMs: number): Load {
  return { name: '32 paced', streams: 32, paceMs: PACE_MS, lengths, forMs, spreadMs: 32 * STEP_MS, goal: 'paced' };
}

/** With processors to spare: what a lane adds to a stream's start, not how long the queue before it is. */
function openings(forMs: number): Load {
  const spreadMs = 16 * STEP_MS;
  return { name: '16 paced, short', streams: 16, paceMs: PACE_MS, lengths: [10], forMs, spreadMs, goal: 'ttft' };
}

/** Runs before the first round: the engines compile what is hot, stores and connections are opened. */
export const WARM_UP: Load = { ...fast(16, 1200), name: 'warm-up', lengths: [100], goal: null };

/** All loads, or the ones that have goals in a third of the time. */
export function listLoads(quick: boolean): readonly Load[] {
  if (quick) return [fast(16, 600), paced([20, 50], 700), openings(600)];
  return [fast(1, 1000), fast(16, 1500), fast(64, 1500), paced([50, 150], 2500), openings(1200)];
}

/** Goals on the slope's ratio to bare. For `plain` it is the floor that was measured, to be beaten. */
export const SLOPE_GOALS = {
  fast: { plain: 5, native: 1.6, exact: 3 },
  paced: { plain: 2.7, native: 1.5, exact: 2.3 },
} as const;

/** Goals on what TTFT is above bare's, at 16 streams. */
export const ADDED_TTFT_GOAL_MS = { p50: 2, p99: 10 } as const;
