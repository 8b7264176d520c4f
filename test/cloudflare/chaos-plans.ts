// What each request of the chaos does, drawn from seeded numbers: endpoint, stream or not, how the engine answers, when
// the client leaves. And what its receipt may say then. It sends nothing.

import { type SeededRandom } from '../core/seeded-random.ts';
import {
  chat,
  type EngineScript,
  INFERENCE_PATHS,
  type InferencePath,
  toEngineChoice,
  toFieldsOf,
} from './fixtures.ts';

/** How the engine answers; `late`: it ends when the lease has run out, since renewals were lost. */
type Engine = 'done' | 'late' | 'length' | 'refused' | 'failing' | 'cut' | 'silent';

/** When the client leaves: never, by a signal at some time, or by cancelling the body after its first bytes. */
export type Leaving = { readonly how: 'signal'; readonly afterMs: number } | { readonly how: 'cancel' } | null;

export type Plan = {
  readonly path: InferencePath;
  readonly body: string;
  readonly model: Model;
  readonly leaving: Leaving;
  /** Whether its isolate dies before it can settle. */
  readonly dies: boolean;
  /** Whether only its first renewals reach the ledger. */
  readonly late: boolean;
  /** Statuses that its receipt may have in the end, unless its isolate died. */
  readonly statuses: readonly string[];
  /** Output tokens that the engine reports at most. */
  readonly outputTokensMax: number;
};

export type Model = keyof typeof NANO_USD;

/** What a token costs, in and out, in the catalog of fixtures.ts. */
export const NANO_USD = { 'test-model': [150, 600], streamed: [1000, 2000] } as const;

export const INPUT_TOKENS = 3;

const STATUS: Readonly<Record<Engine, string>> = {
  done: 'completed',
  late: 'completed',
  length: 'incomplete',
  refused: 'failed',
  failing: 'failed',
  cut: 'failed',
  silent: 'failed',
};

/** Draws a request. */
export function drawPlan(random: SeededRandom): Plan {
  const path = random.pick(INFERENCE_PATHS);
  const stream = random.chance(0.6);
  const engine = drawEngine(random);
  // Not streamed, the model that is collected here from a stream can be slow, cut and silent; the other answers at once.
  const model: Model = stream || engine === 'refused' || random.chance(0.3) ? 'test-model' : 'streamed';
  const isSteps = stream || model === 'streamed';
  const leaving = engine === 'late' ? null : drawLeaving(random, stream);
  const late = isSteps && engine === 'late';
  const dies = !late && random.chance(0.06);
  const outputTokensMax = random.int(2, 6);
  const script = drawScript(random, isSteps ? engine : 'done', path, outputTokensMax);
  const limit = random.pick([10, 20, 100, 1000, undefined]);
  const ended = isSteps || engine === 'refused' ? STATUS[engine] : 'completed';
  return {
    path,
    body: chat({ model, stream, ...toFieldsOf(path, limit) }, engine === 'refused' ? REFUSED : script),
    model,
    leaving,
    dies,
    late,
    statuses: leaving === null ? [ended] : [ended, 'interrupted'],
    outputTokensMax: isSteps ? outputTokensMax : 2,
  };
}

const REFUSED: EngineScript = { status: 400, body: '{"error":{"message":"no","code":400}}' };

function drawEngine(random: SeededRandom): Engine {
  if (random.chance(0.6)) return 'done';
  return random.pick(['late', 'length', 'refused', 'failing', 'cut', 'silent']);
}

function drawLeaving(random: SeededRandom, stream: boolean): Leaving {
  if (random.chance(0.75)) return null;
  return stream && random.chance(0.5) ? { how: 'cancel' } : { how: 'signal', afterMs: random.int(0, 400) };
}

function drawScript(random: SeededRandom, engine: Engine, path: InferencePath, tokens: number): EngineScript {
  if (engine === 'failing') {
    const cutFirst = { stream: [{ cut: true }] };
    return random.pick([{ throw: true }, { status: 500, body: '' }, { status: 429, body: '' }, cutFirst]);
  }
  const count = (output: number): object => ({
    prompt_tokens: INPUT_TOKENS,
    completion_tokens: output,
    total_tokens: INPUT_TOKENS + output,
  });
  const words = Array.from({ length: tokens }, (_, at) => ({
    wait: engine === 'late' ? ([250, 1700][at] ?? 20) : random.chance(0.2) ? random.int(200, 900) : random.int(0, 40),
    json: { choices: [toEngineChoice(path, 'a')], usage: count(at + 1) },
  }));
  const finish = {
    json: { choices: [toEngineChoice(path, null, engine === 'length' ? 'length' : 'stop')], usage: count(tokens) },
  };
  const end = [finish, { json: { choices: [], usage: count(tokens) } }, { data: '[DONE]' }];
  const tails = {
    cut: [{ cut: true }],
    silent: [{ wait: 6000, cut: true }],
    done: end,
    late: end,
    length: end,
    refused: end,
  };
  return { stream: [...words, ...tails[engine]] };
}
