// Rules on what a request may ask for that hold for chat and text completions alike: choices, stop sequences, output
// tokens, unknown fields (SPEC §4).

import { type GatewayError } from '../core/errors.ts';
import { type JsonBody } from '../core/json-body.ts';
import { type Model } from '../core/model-catalog.ts';
import { ENGINE_QUIRKS, GATEWAY_OWNED_FIELDS } from './engine-quirks.ts';
import { type PromptSize } from './estimate-prompt.ts';
import { parameterError } from './parameter-error.ts';

/** An unknown field under a policy that rejects them; null otherwise. Gateway-owned ones are removed instead. */
export function findUnknownField(body: JsonBody, known: ReadonlySet<string>, model: Model): GatewayError | null {
  if (model.policy.unknown_fields !== 'reject') return null;
  const unknown = body.pieces.find(({ key }) => {
    return !known.has(key) && !GATEWAY_OWNED_FIELDS.has(key) && body.value[key] !== null;
  });
  if (unknown === undefined) return null;
  const param = unknown.key.slice(0, 64);
  return parameterError('unknown_parameter', param, `Unknown parameter: '${param}'.`);
}

/** The fields these rules read. */
export type LimitFields = {
  readonly n?: number | null | undefined;
  readonly stop?: string | readonly string[] | null | undefined;
  readonly max_tokens?: number | null | undefined;
  readonly max_completion_tokens?: number | null | undefined;
};

/** The largest `n` of a model: its policy's, but 1 where an engine makes one choice whatever it is asked. */
export function readMaxN(model: Model): number {
  const single = model.backends.some(({ engine }) => ENGINE_QUIRKS[engine].singleChoice);
  return single ? 1 : model.policy.max_n;
}

/** The first fault in `n` or `stop`; null when there is none. */
export function findChoiceFault({ n, stop }: LimitFields, model: Model): GatewayError | null {
  const maxN = readMaxN(model);
  if (n !== null && n !== undefined && n > maxN) {
    return parameterError('unsupported_value', 'n', `Unsupported value: 'n' must be at most ${maxN} for this model.`);
  }
  const maxStop = model.policy.max_stop;
  if (Array.isArray(stop) && maxStop !== null && stop.length > maxStop) {
    const message = `Invalid 'stop': array too long. Expected at most ${maxStop} elements.`;
    return parameterError('array_above_max_length', 'stop', message);
  }
  return null;
}

/**
 * The first fault in the output limit; null when there is none.
 *
 * @param promptParam The field a context overflow is blamed on.
 */
export function findLimitFault(fields: LimitFields, model: Model, promptParam: string): GatewayError | null {
  const param = (fields.max_completion_tokens ?? null) === null ? 'max_tokens' : 'max_completion_tokens';
  const limit = fields[param] ?? null;
  if (limit === null) return null;
  if (model.maxOutputTokens !== null && limit > model.maxOutputTokens) {
    const message =
      `Invalid '${param}': integer above maximum value. ` +
      `Expected a value <= ${model.maxOutputTokens}, but got ${limit} instead.`;
    return parameterError('integer_above_max_value', param, message);
  }
  if (model.contextLength !== null && limit > model.contextLength) {
    const message =
      `This model's maximum context length is ${model.contextLength} tokens. ` +
      `However, you requested ${limit} tokens in the completion alone.`;
    return parameterError('context_length_exceeded', promptParam, message);
  }
  return null;
}

/**
 * A prompt that surely does not fit, on a model with an engine that would cut it without a word; null otherwise. Other
 * engines count exactly and refuse it themselves.
 */
export function findContextFault(
  { promptTokensMin }: PromptSize,
  fields: LimitFields,
  model: Model,
  promptParam: string,
): GatewayError | null {
  const truncates = model.backends.some(({ engine }) => ENGINE_QUIRKS[engine].truncatesSilently);
  const limit = fields.max_completion_tokens ?? fields.max_tokens ?? 0;
  if (!truncates || model.contextLength === null || promptTokensMin + limit <= model.contextLength) return null;
  const message =
    `This model's maximum context length is ${model.contextLength} tokens. However, you requested at least ` +
    `${promptTokensMin + limit} tokens (${promptTokensMin} in the ${promptParam}, ${limit} in the completion).`;
  return parameterError('context_length_exceeded', promptParam, message);
}
