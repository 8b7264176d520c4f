// `turnpike catalog …`: a catalog file is checked, compared with what is stored, and stored; nothing that is not sound gets
// there (SPEC §2).

import { parseJsonObject, isObject } from '../core/json-read.ts';
import { type ModelCatalog, parseModelCatalog } from '../core/model-catalog.ts';
import type { CommandResult } from './command-result.ts';
import type { OperatorStore } from './operator-store.ts';
import { StartError } from './start-error.ts';

const NAME = 'catalog';
const LAST_GOOD = 'catalog:last-good';

/** Checks a catalog: the document, then model by model. */
export function checkCatalog(text: string, bindings: ReadonlySet<string>): CommandResult {
  const { models, faults } = readCatalog(text, bindings);
  const lines = [...models.map((id) => `✓ ${id}`), ...faults.map(({ model, fault }) => `✗ ${model}: ${fault}`)];
  return { data: { models, faults }, text: lines.join('\n') || 'no models', failed: faults.length > 0 };
}

/** Checks and stores a catalog, as the current one and as the last that was good. */
export async function putCatalog(
  store: OperatorStore,
  text: string,
  bindings: ReadonlySet<string>,
): Promise<CommandResult> {
  const checked = checkCatalog(text, bindings);
  if (checked.failed === true) return { ...checked, text: `${checked.text}\nNothing was stored.` };
  const before = await store.readEntry('CATALOG', NAME);
  await store.writeEntry('CATALOG', LAST_GOOD, text);
  await store.writeEntry('CATALOG', NAME, text);
  const changes = diffCatalogs(before, text);
  const told = changes.length === 0 ? 'Stored; nothing in it is new.' : `Stored:\n${changes.join('\n')}`;
  return { data: { ...toObject(checked.data), changes }, text: told };
}

/** What a file would change. */
export async function diffCatalog(store: OperatorStore, text: string): Promise<CommandResult> {
  if (parseJsonObject(text) === null) throw new StartError('the file is no JSON object');
  const changes = diffCatalogs(await store.readEntry('CATALOG', NAME), text);
  return { data: { changes }, text: changes.length === 0 ? 'no difference' : changes.join('\n') };
}

type Fault = { readonly model: string; readonly fault: string };

function readCatalog(
  text: string,
  bindings: ReadonlySet<string>,
): { readonly models: readonly string[]; readonly faults: readonly Fault[] } {
  const catalog = parseModelCatalog(text, bindings);
  if (!catalog.ok) return { models: [], faults: [{ model: '(document)', fault: catalog.error }] };
  return { models: catalog.value.models.map(({ id }) => id), faults: listFaults(catalog.value) };
}

/** The faulty names of a catalog, aliases included. */
export function listFaults(catalog: ModelCatalog): readonly Fault[] {
  return [...catalog.faulty].map(([model, fault]) => ({ model, fault }));
}

/** One line a difference: `+` is new, `-` is gone, `~` is another value. */
export function diffCatalogs(before: string | null, after: string): readonly string[] {
  const [old, next] = [readModels(before), readModels(after)];
  return [...new Set([...old.keys(), ...next.keys()])].toSorted().flatMap((id) => {
    if (!next.has(id)) return [`- ${id}`];
    if (!old.has(id)) return [`+ ${id}`];
    return diffValues(`~ ${id}`, old.get(id), next.get(id));
  });
}

function readModels(text: string | null): ReadonlyMap<string, unknown> {
  const models = parseJsonObject(text ?? '')?.['models'];
  return new Map(isObject(models) ? Object.entries(models) : []);
}

function diffValues(path: string, before: unknown, after: unknown): readonly string[] {
  if (JSON.stringify(before) === JSON.stringify(after)) return [];
  if (!isObject(before) || !isObject(after)) return [`${path}: ${write(before)} → ${write(after)}`];
  const names = [...new Set([...Object.keys(before), ...Object.keys(after)])];
  return names.flatMap((name) => diffValues(`${path}.${name}`, before[name], after[name]));
}

function write(value: unknown): string {
  return value === undefined ? '(absent)' : JSON.stringify(value);
}

function toObject(data: unknown): object {
  return isObject(data) ? data : {};
}
