// What a Responses request may not ask for (SPEC §8): nothing is stored, nothing runs in the background, nothing is
// hosted. Under `responses_lenient` what Codex sends beyond the documented fields is dropped instead of refused.

import { type GatewayError } from '../core/errors.ts';
import { type JsonObject } from '../core/json-read.ts';
import { type Model, type ResolvedModel } from '../core/model-catalog.ts';
import { type Effort } from './endpoint.ts';
import { unsupportedParameter, unsupportedValue } from './parameter-error.ts';
import { hasThinkingToggle, isEffort } from './reasoning.ts';
import { isAbsent, type ResponsesFields, UNSERVED_FIELDS } from './responses-fields.ts';

/** The first thing asked for that is not served; null when there is none. */
export function checkResponsesRules(
  body: JsonObject,
  fields: ResponsesFields,
  resolved: ResolvedModel,
): GatewayError | null {
  const { lenient } = resolved.model.responses;
  return (
    findUnserved(body, lenient) ??
    findUnservedValue(fields, lenient) ??
    checkReasoning(fields, resolved.model) ??
    checkParallel(fields, resolved)
  );
}

function findUnserved(body: JsonObject, lenient: boolean): GatewayError | null {
  for (const [name, kind] of UNSERVED_FIELDS) {
    if (asksForNothing(body[name]) || (lenient && kind === 'droppable')) continue;
    return unsupportedParameter(name);
  }
  return null;
}

function asksForNothing(value: unknown): boolean {
  return value === undefined || value === false || isAbsent(value);
}

function findUnservedValue(fields: ResponsesFields, lenient: boolean): GatewayError | null {
  if (fields.store === true) return unsupportedValue('store', true);
  if (fields.background === true) return unsupportedValue('background', true);
  if (fields.truncation === 'auto') return unsupportedValue('truncation', 'auto');
  if (lenient) return null;
  const tier = fields.service_tier ?? 'auto';
  if (tier !== 'auto' && tier !== 'default') return unsupportedValue('service_tier', tier);
  if ((fields.text?.verbosity ?? null) !== null) return unsupportedParameter('text.verbosity');
  if ((fields.top_logprobs ?? 0) > 0) return unsupportedParameter('top_logprobs');
  if (fields.stream_options?.include_obfuscation === true)
    return unsupportedValue('stream_options.include_obfuscation', true);
  return null;
}

/** Only `{effort: "none"}`, and that where thinking can be turned off. */
function checkReasoning({ reasoning = {} }: ResponsesFields, model: Model): GatewayError | null {
  if (model.responses.lenient) return null;
  const other = Object.entries(reasoning).find(([name, value]) => name !== 'effort' && !asksForNothing(value));
  if (other !== undefined) return unsupportedParameter(`reasoning.${other[0].slice(0, 64)}`);
  const effort = reasoning.effort ?? null;
  if (effort === null || (effort === 'none' && hasThinkingToggle(model))) return null;
  return unsupportedValue('reasoning.effort', effort);
}

/** The effort a request asks for; null leaves it to the model. A level that is unknown asks for nothing. */
export function readResponsesEffort({ reasoning }: ResponsesFields, model: Model): Effort | null {
  const effort = reasoning?.effort ?? null;
  if (isEffort(effort)) return effort;
  return model.policy.reasoning_default === 'none' ? 'none' : null;
}

/** vLLM's own /v1/responses cannot keep to one call at a time. */
function checkParallel(fields: ResponsesFields, { model, backends }: ResolvedModel): GatewayError | null {
  if (fields.parallel_tool_calls !== false) return null;
  const isNativeVllm = model.responses.mode === 'native' && backends.some(({ engine }) => engine === 'vllm');
  return isNativeVllm || !model.capabilities.parallel_tool_calls ? unsupportedParameter('parallel_tool_calls') : null;
}
