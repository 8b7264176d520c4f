// `turnpike workspaces …`: the tenants, their limits and how they pay (SPEC §2).

import { type Workspace, workspaceSchema } from '../core/api-key.ts';
import { firstIssue } from '../core/first-issue.ts';
import { type JsonObject, parseJsonObject } from '../core/json-read.ts';
import { type CommandResult, type LimitOptions, pickLimits, toTable, writeLimits } from './command-result.ts';
import type { OperatorStore } from './operator-store.ts';
import { StartError } from './start-error.ts';

const PREFIX = 'workspace:';
const ID = /^[A-Za-z0-9._-]{1,64}$/;

export type PutWorkspaceOptions = LimitOptions & {
  readonly name?: string;
  readonly billing?: string;
  readonly location?: string;
  readonly disable?: boolean;
  readonly enable?: boolean;
};

/** Makes a workspace, or changes what is named of one; the rest of its entry stays. */
export async function putWorkspace(
  store: OperatorStore,
  id: string,
  options: PutWorkspaceOptions,
): Promise<CommandResult> {
  if (!ID.test(id)) throw new StartError(`'${id}' is no workspace id: 1 to 64 of A-Z, a-z, 0-9, '.', '_' and '-'`, 2);
  if (options.disable === true && options.enable === true) throw new StartError('--disable or --enable, not both', 2);
  const text = await store.readEntry('KEYS', PREFIX + id);
  const before = text === null ? {} : parseJsonObject(text);
  if (before === null) throw new StartError(`the entry of ${id} is no JSON object: mend it first`);
  const known = workspaceSchema.safeParse(before);
  const limits = { ...(known.success ? known.data.limits : undefined), ...pickLimits(options) };
  const entry: JsonObject = {
    ...before,
    ...(options.name === undefined ? {} : { name: options.name }),
    ...(Object.keys(limits).length === 0 ? {} : { limits }),
    ...(options.billing === undefined ? {} : { billing: options.billing }),
    ...(options.location === undefined ? {} : { location: options.location }),
    ...(options.disable === true ? { disabled: true } : options.enable === true ? { disabled: false } : {}),
  };
  const parsed = workspaceSchema.safeParse(entry);
  if (!parsed.success) throw new StartError(firstIssue(parsed.error, '(entry)'), 2);
  await store.writeEntry('KEYS', PREFIX + id, JSON.stringify(entry, null, 2));
  const what = text === null ? 'made' : 'changed';
  return { data: { id, entry }, text: `${id} is ${what}.\n${JSON.stringify(entry, null, 2)}` };
}

/** All workspaces. */
export async function listWorkspaces(store: OperatorStore): Promise<CommandResult> {
  const entries = await store.readEntries('KEYS', PREFIX);
  const found = [...entries].map(([name, text]) => ({ id: name.slice(PREFIX.length), ...readWorkspace(text) }));
  const rows = found.map(({ id, workspace, fault }) => [
    id,
    workspace === null ? `damaged: ${fault}` : workspace.disabled === true ? 'disabled' : 'active',
    workspace?.name ?? '',
    workspace?.billing ?? 'postpaid',
    writeLimits(workspace?.limits),
    workspace?.location ?? '',
  ]);
  const head = ['WORKSPACE', 'STATE', 'NAME', 'BILLING', 'LIMITS', 'LOCATION'];
  const data = found.map(({ id, workspace, fault }) => ({ id, fault, entry: workspace }));
  return { data, text: rows.length === 0 ? 'no workspaces' : toTable(head, rows) };
}

/** One workspace's entry. */
export async function showWorkspace(store: OperatorStore, id: string): Promise<CommandResult> {
  const text = await store.readEntry('KEYS', PREFIX + id);
  if (text === null) throw new StartError(`there is no workspace ${id}`);
  const { workspace, fault } = readWorkspace(text);
  const entry = parseJsonObject(text);
  const state = fault === null ? '' : `damaged: ${fault}\n`;
  return {
    data: { id, fault, entry: workspace ?? entry },
    text: state + (entry === null ? text : JSON.stringify(entry, null, 2)),
  };
}

/** Reads an entry of KEYS that should be a workspace. */
export function readWorkspace(text: string | null): {
  readonly workspace: Workspace | null;
  readonly fault: string | null;
} {
  const object = parseJsonObject(text ?? '');
  if (object === null) return { workspace: null, fault: 'not a JSON object' };
  const parsed = workspaceSchema.safeParse(object);
  if (parsed.success) return { workspace: parsed.data, fault: null };
  return { workspace: null, fault: firstIssue(parsed.error, '(entry)') };
}
