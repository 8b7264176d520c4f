// What a request without an output limit is expected to make: learned from the model's recent requests (SPEC §5). Pure.

import { type LimitedScope } from './ledger-scopes.ts';
import { type Reservation } from './ledger-types.ts';

const UNKNOWN_OUTPUT_TOKENS = 512;
const LEARNING_WEIGHT = 0.2;

/**
 * Tokens to take for a request: prompt, and its output limit, or else what the model's recent requests made. What is
 * learned never makes a request too large for a bucket that its prompt fits.
 */
export function estimateTokens(
  learnedByModel: ReadonlyMap<string, number>,
  reservation: Reservation,
  scopes: readonly LimitedScope[],
): number {
  const { promptTokens, outputTokens, choices, receipt } = reservation;
  if (outputTokens !== null) return promptTokens + outputTokens;
  const learned = (learnedByModel.get(receipt.upstream_model) ?? UNKNOWN_OUTPUT_TOKENS) * choices;
  const capacity = Math.min(...scopes.map(([, limits]) => limits.tpm ?? Infinity));
  return promptTokens + Math.max(0, Math.ceil(Math.min(learned, capacity / 4, capacity - promptTokens)));
}

/** Learns from a request that ended by itself; one that was cut teaches nothing. */
export function learnOutput(learnedByModel: Map<string, number>, reservation: Reservation): void {
  const { receipt, choices } = reservation;
  if (receipt.status !== 'completed' && receipt.status !== 'incomplete') return;
  const seen = receipt.usage.output_tokens / Math.max(1, choices);
  const known = learnedByModel.get(receipt.upstream_model) ?? seen;
  learnedByModel.set(receipt.upstream_model, known + (seen - known) * LEARNING_WEIGHT);
}
