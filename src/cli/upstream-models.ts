// What an inference server says about itself in GET /models: which models, which engine, how much context. It asks once,
// at the start, and assumes nothing that the answer does not say.

import * as z from 'zod';

import { StartError, toReason } from './start-error.ts';

export type UpstreamEngine = 'vllm' | 'sglang' | 'llamacpp' | 'ollama' | 'openai';

export type UpstreamModel = {
  readonly id: string;
  readonly engine: UpstreamEngine;
  readonly contextLength: number | undefined;
  readonly created: number | undefined;
};

const ANSWER_DEADLINE_MS = 5_000;

// `owned_by` is the one field by which the engines tell themselves apart; Ollama writes the model's namespace there.
const ENGINE_OF_OWNER: ReadonlyMap<string, UpstreamEngine> = new Map([
  ['vllm', 'vllm'],
  ['sglang', 'sglang'],
  ['llamacpp', 'llamacpp'],
  ['library', 'ollama'],
]);

// A field of another type than expected is treated as not there: a strange extra must not cost the operator the start.
const countSchema = z.int().positive().optional().catch(undefined);
const modelSchema = z.object({
  id: z.string().min(1),
  owned_by: z.string().optional().catch(undefined),
  created: countSchema,
  max_model_len: countSchema,
  context_length: countSchema,
  context_window: countSchema,
  meta: z.object({ n_ctx: countSchema, n_ctx_train: countSchema }).optional().catch(undefined),
});
const modelListSchema = z.object({ data: z.array(modelSchema) });

/** Reads the models out of a /models answer; null when it is not one. */
export function parseModelList(text: string): UpstreamModel[] | null {
  const parsed = modelListSchema.safeParse(parseJson(text));
  if (!parsed.success) return null;
  return parsed.data.data.map((model) => ({
    id: model.id,
    engine: ENGINE_OF_OWNER.get(model.owned_by ?? '') ?? 'openai',
    // llama.cpp: what the server runs with, where it says so, else what the model was trained for.
    contextLength:
      model.max_model_len ??
      model.context_length ??
      model.context_window ??
      model.meta?.n_ctx ??
      model.meta?.n_ctx_train,
    created: model.created,
  }));
}

/**
 * Asks the server at `baseUrl` for its models.
 *
 * @throws StartError in one line when it cannot be read or has none.
 */
export async function fetchUpstreamModels(baseUrl: string): Promise<UpstreamModel[]> {
  const url = `${baseUrl}/models`;
  let text: string;
  try {
    const response = await fetch(url, { signal: AbortSignal.timeout(ANSWER_DEADLINE_MS) });
    text = await response.text();
    if (!response.ok) throw new Error(`status ${response.status}`);
  } catch (error) {
    const late = error instanceof Error && error.name === 'TimeoutError';
    const reason = late ? `no answer within ${ANSWER_DEADLINE_MS / 1000} s` : toReason(error);
    throw new StartError(`upstream ${baseUrl}: cannot read ${url} (${reason})`);
  }
  const models = parseModelList(text);
  if (models === null) throw new StartError(`upstream ${baseUrl}: ${url} did not answer with a list of models`);
  if (models.length === 0) throw new StartError(`upstream ${baseUrl}: ${url} lists no models`);
  return models;
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
