// Checks the fields of a text completion request (SPEC §4) and reads out what the pipeline needs.

import * as z from 'zod';
import { type GatewayError } from '../core/errors.ts';
import { type JsonBody } from '../core/json-body.ts';
import { type Model, type ResolvedModel } from '../core/model-catalog.ts';
import { err, ok, type Result } from '../core/result.ts';
import { commonShape } from './chat-fields.ts';
import { findChoiceFault, findContextFault, findLimitFault, findUnknownField } from './common-rules.ts';
import { type InferenceRequest } from './endpoint.ts';
import { estimateTextPrompts } from './estimate-prompt.ts';
import { parameterError, toParameterError, unsupportedParameter } from './parameter-error.ts';

const PROMPTS_MAX = 128;
const LOGPROBS_MAX = 20;

const textShape = {
  ...commonShape,
  prompt: z.union([z.string(), z.array(z.string()).min(1).max(PROMPTS_MAX)]),
  logprobs: z.union([z.boolean(), z.int().min(0).max(LOGPROBS_MAX)]).nullish(),
  top_logprobs: z.int().min(0).max(LOGPROBS_MAX).nullish(),
  logit_bias: z.record(z.string(), z.number()).nullish(),
  echo: z.boolean().nullish(),
  suffix: z.string().nullish(),
};
/** What is checked of a text completion request. */
export const textSchema = z.looseObject(textShape);

/** Every field of a text completion request that the gateway knows. */
export const TEXT_FIELDS: ReadonlySet<string> = new Set([...Object.keys(textShape), 'model']);

type TextFields = z.infer<typeof textSchema>;

/** Parses and checks a text completion request. */
export function parseTextRequest(body: JsonBody, resolved: ResolvedModel): Result<InferenceRequest, GatewayError> {
  const { model } = resolved;
  const parsed = textSchema.safeParse(body.value);
  if (!parsed.success) return err(toParameterError(parsed.error, body.value));
  const fields = parsed.data;
  const prompts = typeof fields.prompt === 'string' ? [fields.prompt] : fields.prompt;
  const size = estimateTextPrompts(prompts);
  const fault =
    findUnknownField(body, TEXT_FIELDS, model) ??
    findChoiceFault(fields, model) ??
    findCapabilityFault(fields, model) ??
    findLimitFault(fields, model, 'prompt') ??
    findContextFault(size, fields, model, 'prompt');
  if (fault !== null) return err(fault);
  const stream = fields.stream === true;
  const n = fields.n ?? 1;
  return ok({
    body,
    resolved,
    stream,
    usageRequested: stream && fields.stream_options?.include_usage === true,
    choices: n * prompts.length,
    choicesPerPrompt: n,
    promptTokens: size.promptTokens,
    promptTokensMax: size.promptTokensMax,
    inputTokensMax: size.inputTokensMax,
    outputLimit: fields.max_completion_tokens ?? fields.max_tokens ?? model.maxOutputTokens,
    effort: null,
    endUser: fields.user ?? null,
    echo: null,
  });
}

/** What is needed and absent; values that ask for nothing need nothing. */
function findCapabilityFault(fields: TextFields, { capabilities }: Model): GatewayError | null {
  if (fields.echo === true && !capabilities.echo) return unsupportedParameter('echo');
  if ((fields.suffix ?? '') !== '' && !capabilities.suffix) return unsupportedParameter('suffix');
  const logprobs = fields.logprobs ?? false;
  if (logprobs !== false && !capabilities.logprobs) return unsupportedParameter('logprobs');
  if ((fields.top_logprobs ?? 0) === 0 || logprobs !== false) return null;
  return parameterError('invalid_value', 'top_logprobs', "Invalid value for 'top_logprobs': it needs 'logprobs'.");
}
