// What each engine does its own way, as a table (facts: WIRE §4). Code asks the table; it never asks for an engine by
// name.

import { type Engine } from '../core/model-catalog.ts';

/** The differences between engines that reach the wire. */
export type EngineQuirks = {
  /** How usage is asked for while a stream runs. */
  readonly runningCounts: 'continuous_usage_stats' | 'timings_per_token' | null;
  /** The name under which the engine reads reasoning on incoming assistant messages; null leaves it as sent. */
  readonly reasoningIn: 'reasoning' | 'reasoning_content' | null;
  /** The engine cuts a prompt that is too long instead of refusing it, so the gateway must refuse. */
  readonly truncatesSilently: boolean;
  /**
   * How /v1/completions is told to use the rest of the context when there is no limit: vLLM's default is 16, and an
   * explicit null lifts it; `rest` sends what surely fits; null leaves it to an engine that does so by itself.
   */
  readonly omittedTextLimit: 'null' | 'rest' | null;
  /** `stop` must be a list. */
  readonly stopIsList: boolean;
  /** With several choices the engine closes each with counts of its own. */
  readonly countsPerTask: boolean;
  /** The engine makes one choice whatever `n` says. */
  readonly singleChoice: boolean;
  /** Names of members match in any case (Go): `Model` is a second `model` there. Nothing assumed means that it may. */
  readonly foldsNames: boolean;
  /** The engine's completion ids are empty or come again, so the gateway gives its own. */
  readonly repeatsIds: boolean;
  /** Its own responses say `completed` although the output limit ended them. */
  readonly hidesLimit: boolean;
};

const NOTHING_ASSUMED: EngineQuirks = {
  runningCounts: null,
  reasoningIn: null,
  truncatesSilently: false,
  omittedTextLimit: null,
  stopIsList: false,
  countsPerTask: false,
  singleChoice: false,
  foldsNames: false,
  repeatsIds: false,
  hidesLimit: false,
};

/** The quirks of every engine the catalog can name. */
export const ENGINE_QUIRKS: Readonly<Record<Engine, EngineQuirks>> = {
  vllm: {
    ...NOTHING_ASSUMED,
    runningCounts: 'continuous_usage_stats',
    reasoningIn: 'reasoning',
    omittedTextLimit: 'null',
  },
  sglang: {
    ...NOTHING_ASSUMED,
    runningCounts: 'continuous_usage_stats',
    reasoningIn: 'reasoning_content',
    omittedTextLimit: 'rest',
  },
  llamacpp: {
    ...NOTHING_ASSUMED,
    runningCounts: 'timings_per_token',
    reasoningIn: 'reasoning_content',
    truncatesSilently: true,
    countsPerTask: true,
    hidesLimit: true,
  },
  ollama: {
    ...NOTHING_ASSUMED,
    reasoningIn: 'reasoning',
    truncatesSilently: true,
    singleChoice: true,
    foldsNames: true,
    repeatsIds: true,
  },
  tgi: { ...NOTHING_ASSUMED, stopIsList: true, singleChoice: true, repeatsIds: true },
  openai: { ...NOTHING_ASSUMED, foldsNames: true },
};

/**
 * Fields that belong to the operator of an engine, not to its callers: removed without an answer and named in the log
 * (SPEC §4, WIRE §4b). The one departure from passing unknown fields unchanged.
 */
export const GATEWAY_OWNED_FIELDS: ReadonlySet<string> = new Set([
  'add_generation_prompt',
  'best_of',
  'bootstrap_host',
  'bootstrap_port',
  'bootstrap_room',
  'cache_prompt',
  'cache_salt',
  'chat_template',
  'continue_final_message',
  'custom_logit_processor',
  'data_parallel_rank',
  'grammar',
  'id_slot',
  'ignore_eos',
  'keep_alive',
  'kv_transfer_params',
  'logits_processors',
  'lora',
  'lora_path',
  'max_new_tokens',
  'min_tokens',
  'mm_processor_kwargs',
  'n_cmpl',
  'n_predict',
  'n_probs',
  'options',
  'priority',
  'prompt_logprobs',
  'request_id',
  'return_token_ids',
  'return_tokens_as_token_ids',
  'rid',
  'session_params',
  'slot',
  'slot_id',
  'sse_ping_interval',
  'timings_per_token',
  'truncate_prompt_tokens',
  'use_beam_search',
  'vllm_xargs',
]);
