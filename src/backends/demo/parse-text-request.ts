// Reads a text completion request: what the engine acts on is checked, everything else is let pass and ignored.

import * as z from 'zod';
import { parseBody, type ParseFault } from './parse-body.ts';

const choicesMax = 128;
/** vLLM's default; an explicit null lifts it. */
const maxTokensDefault = 16;

const stopSchema = z.string().min(1);
const textRequestSchema = z.looseObject({
  model: z.string().default('turnpike-demo'),
  prompt: z.union([z.string(), z.array(z.string()).min(1)]),
  stream: z.boolean().nullish(),
  stream_options: z
    .looseObject({ include_usage: z.boolean().nullable().default(true), continuous_usage_stats: z.boolean().nullish() })
    .nullish(),
  max_tokens: z.int().min(1).nullish(),
  stop: z.union([stopSchema, z.array(stopSchema)]).nullish(),
  n: z.int().min(1).max(choicesMax).nullish(),
  // Not z.int(): that one refuses what is beyond 2^53, and a seed may be of any size.
  seed: z.number().refine(Number.isInteger, 'Must be an integer').nullish(),
  ignore_eos: z.boolean().nullish(),
  echo: z.boolean().nullish(),
  logprobs: z.int().min(0).max(20).nullish(),
});

/** A text completion request as the engine works with it; `maxTokens` is null where the limit was lifted. */
export interface TextRequest {
  readonly model: string;
  readonly prompts: readonly string[];
  readonly stream: boolean;
  readonly includeUsage: boolean;
  readonly continuousUsage: boolean;
  readonly maxTokens: number | null;
  readonly stops: readonly string[];
  readonly choicesPerPrompt: number;
  readonly seed: number | null;
  readonly ignoreEos: boolean;
  readonly echo: boolean;
  readonly topLogprobs: number | null;
}

/** Parses the text of a body. */
export function parseTextRequest(text: string): { readonly ok: true; readonly request: TextRequest } | ParseFault {
  const parsed = parseBody(textRequestSchema, text);
  if (!parsed.ok) return parsed;
  const { body } = parsed;
  const includeUsage = body.stream_options?.include_usage === true;
  return {
    ok: true,
    request: {
      model: body.model,
      prompts: typeof body.prompt === 'string' ? [body.prompt] : body.prompt,
      stream: body.stream === true,
      includeUsage,
      continuousUsage: includeUsage && body.stream_options?.continuous_usage_stats === true,
      maxTokens: body.max_tokens === undefined ? maxTokensDefault : body.max_tokens,
      stops: typeof body.stop === 'string' ? [body.stop] : (body.stop ?? []),
      choicesPerPrompt: body.n ?? 1,
      seed: body.seed ?? null,
      ignoreEos: body.ignore_eos === true,
      echo: body.echo === true,
      topLogprobs: body.logprobs ?? null,
    },
  };
}
