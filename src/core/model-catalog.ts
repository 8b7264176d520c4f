// The catalog: which models there are, what they can do, what they cost and which backends serve them (SPEC §2).
// One bad model is set aside with its fault; the others serve. Reading the document from KV is the adapter's business.

import * as z from 'zod';
import { type Caller } from './api-key.ts';
import { type GatewayError } from './errors.ts';
import { FREE_RATES, parseRate, type Rates } from './money.ts';
import { type Policy, policySchema, resolvePolicy } from './policy.ts';
import { err, ok, type Result } from './result.ts';

/** The inference paths a model may list. */
export const INFERENCE_ENDPOINTS = ['/v1/chat/completions', '/v1/completions', '/v1/responses'] as const;
export type InferencePath = (typeof INFERENCE_ENDPOINTS)[number];

/** The engines whose quirks the gateway knows; `openai` assumes nothing. */
export const ENGINES = ['vllm', 'sglang', 'llamacpp', 'ollama', 'tgi', 'openai'] as const;
export type Engine = (typeof ENGINES)[number];

const priceSchema = z.string().refine((text) => parseRate(text) !== null, 'expected a decimal with at most 6 decimals');
const backendSchema = z.object({
  binding: z.string().min(1),
  upstream_model: z.string().min(1),
  engine: z.enum(ENGINES),
  weight: z.number().positive().default(1),
  developer_role: z.enum(['system', 'pass']).default('system'),
});
const backendsSchema = z.tuple([backendSchema], backendSchema);
/** One backend of a model. */
export type Backend = Readonly<z.infer<typeof backendSchema>>;
/** A model's backends: at least one. */
export type Backends = readonly [Backend, ...Backend[]];

const capabilitiesSchema = z.object({
  tools: z.boolean().default(false),
  tool_choice_required: z.boolean().default(false),
  parallel_tool_calls: z.boolean().default(false),
  strict_tools: z.boolean().default(false),
  response_formats: z.array(z.enum(['text', 'json_object', 'json_schema'])).default(['text']),
  logprobs: z.boolean().default(false),
  images: z.boolean().default(false),
  echo: z.boolean().default(false),
  suffix: z.boolean().default(false),
});
/** What a model can do; absent is false. */
export type Capabilities = Readonly<z.infer<typeof capabilitiesSchema>>;

const reasoningSchema = z.object({
  control: z.enum(['chat_template_kwargs', 'reasoning_effort', 'none']),
  kwarg: z.string().min(1).default('enable_thinking'),
  levels: z.array(z.enum(['none', 'low', 'medium', 'high'])).default(['none', 'low', 'medium', 'high']),
});

const modelSchema = z.object({
  owned_by: z.string().default('turnpike'),
  created: z.int().min(0).default(0),
  visibility: z.union([z.literal('public'), z.array(z.string())]).default('public'),
  aliases: z.array(z.string().min(1)).default([]),
  preset: z.enum(['boardwalk', 'springboards', 'boole']).optional(),
  policy: policySchema.default({}),
  endpoints: z.array(z.enum(INFERENCE_ENDPOINTS)).default([...INFERENCE_ENDPOINTS]),
  context_length: z.int().positive().optional(),
  max_output_tokens: z.int().positive().optional(),
  capabilities: capabilitiesSchema.prefault({}),
  reasoning: reasoningSchema.optional(),
  running_counts: z.boolean().default(true),
  pricing: z
    .object({
      input: priceSchema,
      cached_input: priceSchema.optional(),
      cache_write: priceSchema.optional(),
      output: priceSchema,
    })
    .optional(),
  backends: backendsSchema,
  revisions: z.record(z.string(), z.object({ backends: backendsSchema })).default({}),
});

/** A model as the gateway uses it. */
export type Model = {
  readonly id: string;
  readonly ownedBy: string;
  readonly created: number;
  readonly visibility: 'public' | readonly string[];
  readonly aliases: readonly string[];
  readonly policy: Policy;
  readonly endpoints: readonly InferencePath[];
  readonly contextLength: number | null;
  readonly maxOutputTokens: number | null;
  readonly capabilities: Capabilities;
  readonly reasoning: z.infer<typeof reasoningSchema> | null;
  readonly runningCounts: boolean;
  readonly rates: Rates;
  readonly priced: boolean;
  readonly backends: Backends;
  readonly revisions: Readonly<Record<string, Backends>>;
};

/** A parsed catalog. `faulty` maps ids and aliases to what is wrong with their entry. */
export type ModelCatalog = {
  readonly models: readonly Model[];
  readonly byName: ReadonlyMap<string, Model>;
  readonly byFoldedName: ReadonlyMap<string, Model>;
  readonly faulty: ReadonlyMap<string, string>;
};

/** A model as one request named it. */
export type ResolvedModel = {
  readonly model: Model;
  /** As the client sent it: alias, case and `@revision` included. */
  readonly requestedModel: string;
  readonly revision: string | null;
  readonly backends: Backends;
};

const documentSchema = z.object({ version: z.literal(1), models: z.record(z.string(), z.unknown()) });

/**
 * Parses a catalog document.
 *
 * @param bindings Names of the service bindings that exist; a model naming another one is faulty.
 * @returns an error text when the document as a whole is unusable: not JSON, or another version.
 */
export function parseModelCatalog(text: string, bindings: ReadonlySet<string>): Result<ModelCatalog, string> {
  const json = parseJson(text);
  if (json === undefined) return err('the catalog is not JSON');
  const document = documentSchema.safeParse(json);
  if (!document.success) return err(`the catalog is unusable: ${firstIssue(document.error)}`);
  const models: Model[] = [];
  const faulty = new Map<string, string>();
  for (const [id, entry] of Object.entries(document.data.models)) {
    const model = parseModel(id, entry, bindings);
    if (model.ok) models.push(model.value);
    else faulty.set(id, model.error);
  }
  return ok(indexModels(models, faulty));
}

/**
 * Finds the model a request names: whole and exact, then case-insensitively, then with the part after the last `@` as
 * revision. Unknown, not visible and not allowed to this key are one and the same 404 (SPEC §2).
 */
export function resolveModel(
  catalog: ModelCatalog,
  requestedModel: string,
  caller: Caller,
): Result<ResolvedModel, GatewayError> {
  const notFound = err<GatewayError>({ kind: 'model_not_found', model: requestedModel });
  const at = requestedModel.lastIndexOf('@');
  const whole = findByName(catalog, requestedModel);
  const model = whole ?? (at > 0 ? findByName(catalog, requestedModel.slice(0, at)) : undefined);
  const revision = whole === undefined && at > 0 ? requestedModel.slice(at + 1) : null;
  if (model === undefined) {
    const faulty = catalog.faulty.has(requestedModel) || (at > 0 && catalog.faulty.has(requestedModel.slice(0, at)));
    return faulty ? err({ kind: 'catalog_unavailable' }) : notFound;
  }
  if (!isCallable(model, caller)) return notFound;
  const pinned = revision === null ? undefined : Object.entries(model.revisions).find(([name]) => name === revision);
  if (revision !== null && pinned === undefined) return notFound;
  return ok({ model, requestedModel, revision, backends: pinned?.[1] ?? model.backends });
}

/** The models a key may call, in the order of the catalog. */
export function listCallableModels(catalog: ModelCatalog, caller: Caller): readonly Model[] {
  return catalog.models.filter((model) => isCallable(model, caller));
}

function isCallable(model: Model, caller: Caller): boolean {
  const visible = model.visibility === 'public' || model.visibility.includes(caller.workspaceId);
  return visible && (caller.models.includes('*') || caller.models.includes(model.id));
}

function findByName(catalog: ModelCatalog, name: string): Model | undefined {
  return catalog.byName.get(name) ?? catalog.byFoldedName.get(name.toLowerCase());
}

function parseModel(id: string, entry: unknown, bindings: ReadonlySet<string>): Result<Model, string> {
  const parsed = modelSchema.safeParse(entry);
  if (!parsed.success) return err(firstIssue(parsed.error));
  const data = parsed.data;
  const revisions = Object.fromEntries(Object.entries(data.revisions).map(([name, value]) => [name, value.backends]));
  const absent = [...data.backends, ...Object.values(revisions).flat()].find(({ binding }) => !bindings.has(binding));
  if (absent !== undefined) return err(`there is no binding ${absent.binding}`);
  if (data.pricing !== undefined && data.context_length === undefined)
    return err('a priced model needs context_length');
  const pricing = data.pricing;
  return ok({
    id,
    ownedBy: data.owned_by,
    created: data.created,
    visibility: data.visibility,
    aliases: data.aliases,
    policy: resolvePolicy(data.preset, data.policy),
    endpoints: data.endpoints,
    contextLength: data.context_length ?? null,
    maxOutputTokens: data.max_output_tokens ?? null,
    capabilities: data.capabilities,
    reasoning: data.reasoning ?? null,
    runningCounts: data.running_counts,
    rates:
      pricing === undefined
        ? FREE_RATES
        : {
            input: pricing.input,
            cached_input: pricing.cached_input ?? pricing.input,
            cache_write: pricing.cache_write ?? pricing.input,
            output: pricing.output,
          },
    priced: pricing !== undefined,
    backends: data.backends,
    revisions,
  });
}

/** Names → models. A name that two models claim makes both faulty: to guess would bill the wrong one. */
function indexModels(models: readonly Model[], faulty: Map<string, string>): ModelCatalog {
  const owners = new Map<string, Model[]>();
  for (const model of models) {
    for (const name of new Set([model.id, ...model.aliases])) owners.set(name, [...(owners.get(name) ?? []), model]);
  }
  const clashing = new Set<Model>();
  for (const [name, claimed] of owners) {
    if (claimed.length < 2) continue;
    for (const model of claimed) {
      clashing.add(model);
      faulty.set(model.id, `the name ${name} is claimed by ${claimed.map(({ id }) => id).join(' and ')}`);
    }
  }
  const sound = models.filter((model) => !clashing.has(model));
  const byName = new Map<string, Model>();
  const byFoldedName = new Map<string, Model>();
  for (const model of sound) {
    for (const name of [model.id, ...model.aliases]) {
      byName.set(name, model);
      if (!byFoldedName.has(name.toLowerCase())) byFoldedName.set(name.toLowerCase(), model);
    }
  }
  return { models: sound, byName, byFoldedName, faulty };
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

function firstIssue(error: z.ZodError): string {
  const issue = error.issues[0];
  return issue === undefined ? 'invalid' : `${issue.path.join('.') || '(document)'}: ${issue.message}`;
}
