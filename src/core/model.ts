// One model of the catalog as the gateway uses it, made from the entry that the operator wrote (SPEC §2). Which models
// there are, and what names them, is the catalog's business.

import type * as z from 'zod';
import { firstIssue } from './first-issue.ts';
import {
  type Backends,
  type Capabilities,
  type InferencePath,
  modelSchema,
  type reasoningSchema,
} from './model-entry.ts';
import { FREE_RATES, type Rates } from './money.ts';
import { type Policy, resolvePolicy } from './policy.ts';
import { err, ok, type Result } from './result.ts';

/** How a model serves /v1/responses (SPEC §8). */
export type ResponsesTerms = {
  /** `native`: its engines have the endpoint themselves. */
  readonly mode: 'translate' | 'native';
  /** What Codex sends beyond the documented fields is dropped instead of refused. */
  readonly lenient: boolean;
  /** Streams end with [DONE], as Open Responses wants it. */
  readonly done: boolean;
};

/** A model as the gateway uses it. */
export type Model = {
  readonly id: string;
  readonly ownedBy: string;
  readonly created: number;
  readonly visibility: 'public' | readonly string[];
  readonly aliases: readonly string[];
  readonly policy: Policy;
  readonly endpoints: readonly InferencePath[];
  readonly contextLength: number | null;
  readonly maxOutputTokens: number | null;
  readonly capabilities: Capabilities;
  readonly reasoning: z.infer<typeof reasoningSchema> | null;
  /** How streams reach the client: rewritten event by event, or as the engine wrote them (SPEC §7). */
  readonly lane: 'exact' | 'native';
  readonly responses: ResponsesTerms;
  readonly runningCounts: boolean;
  /** The engine is asked to stream even where the client is not. */
  readonly upstreamStream: boolean;
  /** The largest event taken from its engines. */
  readonly eventBytesMax: number;
  /** Whether requests of one conversation go to one backend. */
  readonly affinity: 'none' | 'prefix';
  readonly rates: Rates;
  readonly priced: boolean;
  readonly backends: Backends;
  readonly revisions: Readonly<Record<string, Backends>>;
};

/** A native stream is held whole until its end, for its receipt (SPEC §7). */
const NATIVE_OUTPUT_TOKENS_MAX = 8192;

/**
 * Parses a model's entry.
 *
 * @param bindings Names of the service bindings that exist.
 * @returns an error text that says what is wrong with the entry.
 */
export function parseModel(id: string, entry: unknown, bindings: ReadonlySet<string>): Result<Model, string> {
  const parsed = modelSchema.safeParse(entry);
  if (!parsed.success) return err(firstIssue(parsed.error, '(document)'));
  const data = parsed.data;
  const revisions = Object.fromEntries(Object.entries(data.revisions).map(([name, value]) => [name, value.backends]));
  const absent = [...data.backends, ...Object.values(revisions).flat()].find(({ binding }) => !bindings.has(binding));
  if (absent !== undefined) return err(`there is no binding ${absent.binding}`);
  if (data.pricing !== undefined && data.context_length === undefined)
    return err('a priced model needs context_length');
  if (data.lane === 'native' && (data.max_output_tokens ?? Infinity) > NATIVE_OUTPUT_TOKENS_MAX)
    return err(`lane native needs max_output_tokens of at most ${NATIVE_OUTPUT_TOKENS_MAX}`);
  const pricing = data.pricing;
  return ok({
    id,
    ownedBy: data.owned_by,
    created: data.created,
    visibility: data.visibility,
    aliases: data.aliases,
    policy: resolvePolicy(data.preset, data.policy),
    endpoints: data.endpoints,
    contextLength: data.context_length ?? null,
    maxOutputTokens: data.max_output_tokens ?? null,
    capabilities: data.capabilities,
    reasoning: data.reasoning ?? null,
    lane: data.lane,
    responses: { mode: data.responses, lenient: data.responses_lenient, done: data.responses_done },
    runningCounts: data.running_counts,
    upstreamStream: data.upstream_stream,
    eventBytesMax: data.event_bytes_max,
    affinity: data.affinity,
    rates:
      pricing === undefined
        ? FREE_RATES
        : {
            input: pricing.input,
            cached_input: pricing.cached_input ?? pricing.input,
            cache_write: pricing.cache_write ?? pricing.input,
            output: pricing.output,
          },
    priced: pricing !== undefined,
    backends: data.backends,
    revisions,
  });
}
