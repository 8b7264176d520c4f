// GET /v1/models and /v1/models/{id}: what this key may call, aliases included (SPEC §2).

import { type Caller } from '../core/api-key.ts';
import { type GatewayError } from '../core/errors.ts';
import { listCallableModels, type Model, resolveModel } from '../core/model-catalog.ts';
import { ok, type Result } from '../core/result.ts';
import { readMaxN } from '../openai/common-rules.ts';
import { hasThinkingToggle } from '../openai/reasoning.ts';
import { SERVED_ENDPOINTS } from '../openai/served-endpoints.ts';
import { type Ports } from './ports.ts';

/** The list of callable models in OpenAI's shape. */
export async function listModels(ports: Ports, caller: Caller): Promise<Result<unknown, GatewayError>> {
  const catalog = await ports.catalog.read();
  if (!catalog.ok) return catalog;
  return ok({ object: 'list', data: listCallableModels(catalog.value, caller).map(toModelObject) });
}

/** One model by id, alias or `id@revision`. */
export async function readModel(ports: Ports, caller: Caller, id: string): Promise<Result<unknown, GatewayError>> {
  const catalog = await ports.catalog.read();
  if (!catalog.ok) return catalog;
  const resolved = resolveModel(catalog.value, id, caller);
  return resolved.ok ? ok(toModelObject(resolved.value.model)) : resolved;
}

/** OpenAI's four fields, and what SPEC §2 adds to them. */
function toModelObject(model: Model): Record<string, unknown> {
  const { capabilities } = model;
  const endpoints = model.endpoints.filter((path) => SERVED_ENDPOINTS.some((endpoint) => endpoint.path === path));
  return {
    id: model.id,
    object: 'model',
    created: model.created,
    owned_by: model.ownedBy,
    aliases: model.aliases,
    context_length: model.contextLength,
    max_output_tokens: model.maxOutputTokens,
    supported_endpoints: endpoints,
    tool_calling: {
      supported: capabilities.tools,
      required: capabilities.tool_choice_required,
      named: capabilities.tools,
      parallel: capabilities.parallel_tool_calls,
      strict: capabilities.strict_tools,
    },
    response_formats: Object.fromEntries(
      endpoints.filter((path) => path !== '/v1/completions').map((path) => [path, capabilities.response_formats]),
    ),
    thinking_toggle: hasThinkingToggle(model),
    reasoning_levels: model.reasoning === null || model.reasoning.control === 'none' ? [] : model.reasoning.levels,
    images: capabilities.images,
    max_n: readMaxN(model),
    revisions: Object.keys(model.revisions),
    pricing: model.priced ? model.rates : null,
  };
}
