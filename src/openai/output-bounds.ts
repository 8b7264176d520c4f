// How much a prepaid request may use at most, and the output limit that goes up for it once the ledger has said what its
// balance buys (SPEC §5). Pure.

import { type CreditTerms } from '../core/ledger-credits.ts';
import { type InferenceRequest } from './endpoint.ts';
import { ENGINE_QUIRKS } from './engine-quirks.ts';

/**
 * The most tokens a request can use. A prompt is no longer than its bytes or the context. Without a limit a choice may
 * take the whole context: how few tokens a prompt leaves it with cannot be told from its bytes.
 */
export function buildCreditTerms(request: InferenceRequest): CreditTerms {
  const { contextLength } = request.resolved.model;
  const prompts = request.choices / request.choicesPerPrompt;
  const inputTokensMax = Math.min(request.inputTokensMax, (contextLength ?? Infinity) * prompts);
  return { inputTokensMax, outputTokensMax: request.outputLimit ?? contextLength ?? 0 };
}

/**
 * The request of a prepaid workspace as it goes up.
 *
 * @param boughtTokens Output tokens per choice that the balance buys; null when it buys all that was asked for.
 */
export function limitOutput(request: InferenceRequest, boughtTokens: number | null): InferenceRequest {
  if (request.outputLimit === null) return { ...request, outputLimit: toSpokenLimit(request, boughtTokens) };
  return boughtTokens === null ? request : { ...request, outputLimit: Math.min(request.outputLimit, boughtTokens) };
}

/** A limit for a client that set none, since the balance does not cover whatever the engine would do. */
function toSpokenLimit(request: InferenceRequest, boughtTokens: number | null): number | null {
  const { contextLength, priced } = request.resolved.model;
  if (!priced || contextLength === null) return boughtTokens;
  // Engines that shift their context go on for ever without a limit.
  const isEndless = request.resolved.backends.every(({ engine }) => ENGINE_QUIRKS[engine].truncatesSilently);
  if (boughtTokens === null) return isEndless ? contextLength : null;
  // Others refuse prompt + limit over the context: what surely fits, or half of what should.
  const surely = contextLength - request.promptTokensMax;
  const roughly = Math.floor((contextLength - request.promptTokens) / 2);
  return Math.min(boughtTokens, isEndless ? contextLength : Math.max(1, surely, roughly));
}
