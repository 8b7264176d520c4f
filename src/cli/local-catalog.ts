// The model catalog that `npm start` generates, and the rule when it may replace what is stored. Pure: what the upstreams
// answered comes in, a document goes out.

import type { UpstreamModel } from './upstream-models.ts';

export type Upstream = { readonly binding: string; readonly models: readonly UpstreamModel[] };

type CatalogBackend = { readonly binding: string; readonly upstream_model: string; readonly engine: string };
type CatalogEntry = { readonly backends: CatalogBackend[]; readonly [field: string]: unknown };
export type GeneratedCatalog = { readonly version: 1; readonly models: Record<string, CatalogEntry> };

export const DEMO_BINDING = 'DEMO';
export const DEMO_MODEL = 'turnpike-demo';
const DEMO_ALIAS = 'demo';

// 2026-12-01, for models whose server gives no date: the same text at each start, so a catalog does not seem edited.
const CREATED_UNKNOWN = 1_796_083_200;

/**
 * Builds the catalog of the demo engine and everything the upstreams serve. The same id on several upstreams becomes one
 * entry with several backends; an upstream's id wins over the demo's id and alias.
 */
export function buildCatalog(upstreams: readonly Upstream[], demo: boolean): GeneratedCatalog {
  const entries = new Map<string, CatalogEntry>();
  for (const { binding, models } of upstreams) {
    for (const model of models) {
      const entry = entries.get(model.id) ?? buildUpstreamEntry(model);
      entries.set(model.id, entry);
      // A server that lists an id twice still is one backend for it.
      if (entry.backends.some((backend) => backend.binding === binding)) continue;
      entry.backends.push({ binding, upstream_model: model.id, engine: model.engine });
    }
  }
  // Ids also match regardless of case, so a clash is judged that way.
  const taken = new Set([...entries.keys()].map((id) => id.toLowerCase()));
  if (demo && !taken.has(DEMO_MODEL))
    entries.set(DEMO_MODEL, buildDemoEntry(taken.has(DEMO_ALIAS) ? [] : [DEMO_ALIAS]));
  return { version: 1, models: Object.fromEntries(entries) };
}

/**
 * Whether a newly generated catalog may be stored. What an operator edited is never overwritten: the stored text must be
 * the one generated last time.
 */
export function mayReplaceCatalog(stored: string | null, lastGenerated: string | null, generated: string): boolean {
  return stored === null || stored === lastGenerated || stored === generated;
}

// Nothing is known of a real server's abilities, so every gate is open and the engine itself refuses.
function buildUpstreamEntry(model: UpstreamModel): CatalogEntry {
  return {
    created: model.created ?? CREATED_UNKNOWN,
    endpoints: ['/v1/chat/completions', '/v1/completions', '/v1/responses'],
    ...(model.contextLength === undefined ? {} : { context_length: model.contextLength }),
    capabilities: {
      tools: true,
      tool_choice_required: true,
      parallel_tool_calls: true,
      strict_tools: true,
      response_formats: ['text', 'json_object', 'json_schema'],
      logprobs: true,
      images: false,
      echo: true,
      suffix: true,
    },
    backends: [],
  };
}

function buildDemoEntry(aliases: readonly string[]): CatalogEntry {
  return {
    owned_by: 'turnpike-demo (no GPU, a seeded text generator)',
    created: CREATED_UNKNOWN,
    aliases,
    endpoints: ['/v1/chat/completions', '/v1/completions', '/v1/responses'],
    context_length: 8192,
    max_output_tokens: 2048,
    capabilities: {
      tools: true,
      tool_choice_required: true,
      parallel_tool_calls: true,
      strict_tools: true,
      response_formats: ['text', 'json_object', 'json_schema'],
      logprobs: true,
      images: false,
      echo: true,
    },
    reasoning: { control: 'chat_template_kwargs', kwarg: 'enable_thinking' },
    pricing: { input: '0.15', cached_input: '0.075', output: '0.60' },
    backends: [{ binding: DEMO_BINDING, upstream_model: DEMO_MODEL, engine: 'vllm' }],
  };
}
