// The order in which a model's backends are asked: by weight, or by the prefix of the conversation so that an engine
// finds its cache warm; healthy ones first (SPEC §6). Pure: chance is an argument.

import { type Backend } from './model-entry.ts';

/** A backend with a number that ranks it; the highest is asked first. */
type Ranked = { readonly backend: Backend; readonly rank: number; readonly isOpen: boolean };

/** What an order is made from. */
export type OrderInput = {
  readonly backends: readonly Backend[];
  /** A number from 0 up to 1 for each call; null where `affinity` decides. */
  readonly random: () => number;
  /** What requests that should meet again have in common; null draws by weight. */
  readonly affinity: string | null;
  readonly isOpen: (backend: Backend) => boolean;
};

/**
 * Orders backends: a weighted draw without replacement, or weighted rendezvous hashing over `affinity`, which moves
 * only the share of a backend that is lost. Those with an open breaker come last, in the same order.
 */
export function orderBackends({ backends, random, affinity, isOpen }: OrderInput): readonly Backend[] {
  if (backends.length === 1) return backends;
  const ranked = backends.map((backend): Ranked => {
    const chance =
      affinity === null ? random() : hashToUnit(`${affinity}\n${backend.binding}\n${backend.upstream_model}`);
    // Efraimidis and Spirakis: with u uniform, ordering by ln(u) / weight draws in proportion to the weights.
    return { backend, rank: Math.log(Math.max(chance, Number.MIN_VALUE)) / backend.weight, isOpen: isOpen(backend) };
  });
  const inOrder = ranked.toSorted(
    (left, right) => Number(left.isOpen) - Number(right.isOpen) || right.rank - left.rank,
  );
  return inOrder.map(({ backend }) => backend);
}

/** A text as a number from 0 up to 1, evenly spread: FNV-1a over its UTF-16 code units, then mixed. */
export function hashToUnit(text: string): number {
  let hash = 0x811c9dc5;
  for (let at = 0; at < text.length; at += 1) hash = Math.imul(hash ^ text.charCodeAt(at), 0x01000193);
  hash = Math.imul(hash ^ (hash >>> 16), 0x85ebca6b);
  hash = Math.imul(hash ^ (hash >>> 13), 0xc2b2ae35);
  return ((hash ^ (hash >>> 16)) >>> 0) / 2 ** 32;
}
