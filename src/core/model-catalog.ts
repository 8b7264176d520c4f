// The catalog: which models there are, what they can do, what they cost and which backends serve them (SPEC §2).
// One bad model is set aside with its fault; the others serve. Reading the document from KV is the adapter's business.

import * as z from 'zod';
import { type Caller } from './api-key.ts';
import { type GatewayError } from './errors.ts';
import { readObject } from './json-read.ts';
import { firstIssue } from './first-issue.ts';
import { type Model, parseModel } from './model.ts';
import { type Backends } from './model-entry.ts';
import { err, ok, type Result } from './result.ts';

export { type Model, type ResponsesTerms } from './model.ts';
export {
  type Backend,
  type Backends,
  type Capabilities,
  type Engine,
  ENGINES,
  INFERENCE_ENDPOINTS,
  type InferencePath,
} from './model-entry.ts';

/** What of a model decides who may call it. */
type Owner = Pick<Model, 'id' | 'visibility'>;

/** A parsed catalog. `faulty` maps ids and aliases to what is wrong with their entry. */
export type ModelCatalog = {
  readonly models: readonly Model[];
  readonly byName: ReadonlyMap<string, Model>;
  readonly byFoldedName: ReadonlyMap<string, Model>;
  readonly faulty: ReadonlyMap<string, string>;
  /** The same names in lower case → whose they are: a faulty entry is as private as a sound one. */
  readonly faultyOwners: ReadonlyMap<string, Owner>;
};

/** A model as one request named it. */
export type ResolvedModel = {
  readonly model: Model;
  /** As the client sent it: alias, case and `@revision` included. */
  readonly requestedModel: string;
  readonly revision: string | null;
  readonly backends: Backends;
};

/** How much of an unknown name its error repeats. */
const NAME_LENGTH_MAX = 256;

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
  if (!document.success) return err(`the catalog is unusable: ${firstIssue(document.error, '(document)')}`);
  const models: Model[] = [];
  const faults: Faults = { faulty: new Map(), owners: new Map() };
  for (const [id, entry] of Object.entries(document.data.models)) {
    const model = parseModel(id, entry, bindings);
    if (model.ok) models.push(model.value);
    else noteFault(faults, { id, visibility: readVisibility(entry) }, readAliases(entry), model.error);
  }
  return ok(indexModels(models, faults));
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
  const notFound = err<GatewayError>({ kind: 'model_not_found', model: requestedModel.slice(0, NAME_LENGTH_MAX) });
  const at = requestedModel.lastIndexOf('@');
  const whole = findByName(catalog, requestedModel);
  const model = whole ?? (at > 0 ? findByName(catalog, requestedModel.slice(0, at)) : undefined);
  const revision = whole === undefined && at > 0 ? requestedModel.slice(at + 1) : null;
  if (model === undefined) {
    const owner =
      findFaulty(catalog, requestedModel) ?? (at > 0 ? findFaulty(catalog, requestedModel.slice(0, at)) : undefined);
    return owner !== undefined && isCallable(owner, caller) ? err({ kind: 'catalog_unavailable' }) : notFound;
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

function isCallable(model: Owner, caller: Caller): boolean {
  const visible = model.visibility === 'public' || model.visibility.includes(caller.workspaceId);
  return visible && (caller.models.includes('*') || caller.models.includes(model.id));
}

function findByName(catalog: ModelCatalog, name: string): Model | undefined {
  return catalog.byName.get(name) ?? catalog.byFoldedName.get(name.toLowerCase());
}

function findFaulty(catalog: ModelCatalog, name: string): Owner | undefined {
  return catalog.faultyOwners.get(name.toLowerCase());
}

/** Faults while a document is read; owners by name in lower case. */
type Faults = { readonly faulty: Map<string, string>; readonly owners: Map<string, Owner> };

function noteFault({ faulty, owners }: Faults, owner: Owner, aliases: readonly string[], fault: string): void {
  for (const name of [owner.id, ...aliases]) {
    faulty.set(name, fault);
    owners.set(name.toLowerCase(), owner);
  }
}

/** Who may know that a faulty entry is there; what cannot be read is for nobody. */
function readVisibility(entry: unknown): Owner['visibility'] {
  const visibility = readObject(entry)['visibility'] ?? 'public';
  if (Array.isArray(visibility)) return visibility.filter((workspace) => typeof workspace === 'string');
  return visibility === 'public' ? 'public' : [];
}

/** The aliases of an entry that may be anything. */
function readAliases(entry: unknown): readonly string[] {
  const aliases = readObject(entry)['aliases'];
  return Array.isArray(aliases) ? aliases.filter((alias) => typeof alias === 'string') : [];
}

/** Names → models. A name that two models claim makes both faulty: to guess would bill the wrong one. */
function indexModels(models: readonly Model[], faults: Faults): ModelCatalog {
  const owners = new Map<string, Model[]>();
  for (const model of models) {
    for (const name of new Set([model.id, ...model.aliases])) owners.set(name, [...(owners.get(name) ?? []), model]);
  }
  const clashing = new Set<Model>();
  for (const [name, claimed] of owners) {
    if (claimed.length < 2) continue;
    for (const model of claimed) {
      clashing.add(model);
      const fault = `the name ${name} is claimed by ${claimed.map(({ id }) => id).join(' and ')}`;
      noteFault(faults, model, model.aliases, fault);
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
  return { models: sound, byName, byFoldedName, faulty: faults.faulty, faultyOwners: faults.owners };
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
