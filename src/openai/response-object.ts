// The response object: every member that OpenAI and Open Responses publish, in every event that carries it (SPEC §8,
// WIRE §5d), and the one of a request's members that it says again.

import { type JsonObject, readCount, readObject } from '../core/json-read.ts';
import { type AnswerContext } from './endpoint.ts';
import { type Metered } from './usage-meter.ts';

/** What of a response changes while it is made. */
export type ResponseState = {
  readonly id: string;
  model: string;
  status: 'in_progress' | 'completed' | 'incomplete' | 'failed';
  completedAtMs: number | null;
  incompleteReason: string | null;
  error: { readonly code: 'server_error' | 'invalid_prompt'; readonly message: string } | null;
  /** What it used; null until it is over, and where nothing is known. */
  metered: Metered | null;
};

/** Members that no request changes: what is not served has one value. */
const FIXED = {
  background: false,
  max_tool_calls: null,
  previous_response_id: null,
  service_tier: 'default',
  store: false,
  top_logprobs: 0,
  truncation: 'disabled',
} as const;

/** Builds the response object as it stands. */
export function buildResponseObject(
  { request, createdSeconds }: AnswerContext,
  state: ResponseState,
  output: readonly JsonObject[],
): JsonObject {
  const { completedAtMs, incompleteReason, metered } = state;
  return {
    id: state.id,
    object: 'response',
    created_at: createdSeconds,
    completed_at: completedAtMs === null ? null : Math.floor(completedAtMs / 1000),
    status: state.status,
    error: state.error,
    incomplete_details: incompleteReason === null ? null : { reason: incompleteReason },
    model: state.model,
    output,
    ...FIXED,
    ...request.echo?.members,
    usage: metered === null ? null : toResponseUsage(metered),
  };
}

/** OpenAI's `usage` object for Responses; both details are always there. */
function toResponseUsage({ usage, source, reported }: Metered): JsonObject {
  const engine = readObject(reported);
  const details = readObject(engine['prompt_tokens_details'] ?? engine['input_tokens_details']);
  const wroteCache =
    usage.cache_write_tokens > 0 ||
    readCount(details['created_cache_tokens'] ?? details['cache_write_tokens']) !== null;
  return {
    input_tokens: usage.input_tokens,
    input_tokens_details: {
      cached_tokens: usage.cached_input_tokens,
      ...(wroteCache ? { cache_write_tokens: usage.cache_write_tokens } : {}),
    },
    output_tokens: usage.output_tokens,
    output_tokens_details: { reasoning_tokens: usage.reasoning_tokens },
    total_tokens: usage.input_tokens + usage.output_tokens,
    ...(source === 'estimated' || source === 'none' ? { estimated: true } : {}),
  };
}
