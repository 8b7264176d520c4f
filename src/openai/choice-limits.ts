// Rules on how much a request may ask for: choices, stop sequences and output tokens (SPEC §4). The same for chat and
// text completions.

import { type GatewayError } from '../core/errors.ts';
import { type Model } from '../core/model-catalog.ts';
import { ENGINE_QUIRKS } from './engine-quirks.ts';
import { parameterError } from './parameter-error.ts';

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
