// What the doctor says of the stores: migrations, catalog, keys and their workspaces, grants, what waits for the daily run.
// It reads them through the operator's store, so it finds the same faults locally and in a deployment.

import { parseModelCatalog } from '../core/model-catalog.ts';
import { parseUsd } from '../core/money.ts';
import { listFaults } from './catalog-commands.ts';
import { writeCount } from './command-result.ts';
import { faultOf, type Finding, wellAs } from './doctor.ts';
import { readKey } from './key-commands.ts';
import type { OperatorStore } from './operator-store.ts';
import { readWorkspace } from './workspace-commands.ts';

/** Whether D1 has every migration of the folder. */
export async function checkMigrations(
  store: OperatorStore,
  names: readonly string[],
  table: string,
  command: string,
): Promise<readonly Finding[]> {
  const known = await store.query('SELECT name FROM sqlite_master WHERE name = ?1', table);
  const rows = known.length === 0 ? [] : await store.query(`SELECT name FROM "${table.replaceAll('"', '""')}"`);
  const applied = new Set(rows.map((row) => String(row['name'])));
  const missing = names.filter((name) => !applied.has(name));
  if (missing.length === 0) return [wellAs('D1', `${writeCount(names.length, 'migration')} applied, none missing`)];
  return [faultOf('D1', `not applied: ${missing.join(', ')}`, command)];
}

/** Whether the catalog serves, model by model, and whether there is one to fall back to. */
export async function checkStoredCatalog(
  store: OperatorStore,
  bindings: ReadonlySet<string>,
): Promise<readonly Finding[]> {
  const text = await store.readEntry('CATALOG', 'catalog');
  if (text === null) return [faultOf('catalog', 'there is none', 'store one: catalog put FILE')];
  const catalog = parseModelCatalog(text, bindings);
  if (!catalog.ok) return [faultOf('catalog', catalog.error, 'mend it and store it: catalog put FILE')];
  const faults = listFaults(catalog.value).map(({ model, fault }) =>
    faultOf(`catalog, model ${model}`, fault, 'mend the entry, or bind what it names: callers get 503 until then'),
  );
  const last = await store.readEntry('CATALOG', 'catalog:last-good');
  const lastGood = last === null ? null : parseModelCatalog(last, bindings);
  if (lastGood?.ok === false) {
    faults.push(faultOf('catalog:last-good', lastGood.error, 'store a sound catalog: catalog put FILE writes both'));
  }
  const spare = last === null ? '; none to fall back on (catalog put FILE writes one)' : '';
  return [wellAs('catalog', `${writeCount(catalog.value.models.length, 'model')} in service${spare}`), ...faults];
}

/** Every key and the workspace it belongs to. */
export async function checkKeys(store: OperatorStore, isRemote: boolean): Promise<readonly Finding[]> {
  const workspaces = await readWorkspaces(store);
  const findings: Finding[] = [];
  for (const [id, { fault }] of workspaces) {
    if (fault !== null) {
      findings.push(faultOf(`workspace ${id}`, fault, 'mend its entry in KEYS: all of its keys get 503 until then'));
    }
  }
  const keys = [...(await store.readEntries('KEYS', 'key:'))].map(([name, text]) => {
    const id = name.slice('key:'.length);
    return { id, ...readKey(id, text) };
  });
  for (const { id, key, fault } of keys) {
    if (id === 'demo' && isRemote) {
      findings.push(faultOf('key demo', 'the key of npm start is in a deployment', 'delete the entry key:demo'));
    } else if (key === null) {
      findings.push(faultOf(`key ${id}`, fault ?? 'unreadable', `mend its entry key:${id}: it gets 503 until then`));
    } else if (!workspaces.has(key.workspace)) {
      const fix = `make it: workspaces put ${key.workspace}, or delete the key`;
      findings.push(faultOf(`key ${id}`, `its workspace ${key.workspace} is missing`, fix));
    }
  }
  const sound = keys.length - findings.filter(({ what }) => what.startsWith('key ')).length;
  return [
    wellAs('keys', `${sound} of ${keys.length} are sound, in ${writeCount(workspaces.size, 'workspace')}`),
    ...findings,
  ];
}

/** What an operator asked the Worker's crons for and they have not done. */
export async function checkCrons(store: OperatorStore): Promise<readonly Finding[]> {
  const late = async (table: string, span: string): Promise<number> => {
    const query = `SELECT count(*) AS n FROM ${table} WHERE done_at IS NULL AND datetime(requested_at) < datetime('now', ?1)`;
    return Number((await store.query(query, span))[0]?.['n']);
  };
  const [replays, erasures] = [await late('replays', '-15 minutes'), await late('erasures', '-2 days')];
  const fix = 'are the crons of wrangler.toml deployed? The log says replay_failed and workspace_not_erased';
  return [
    ...(replays === 0 ? [] : [faultOf('replays', `${writeCount(replays, 'ledger')} not asked yet`, fix)]),
    ...(erasures === 0 ? [] : [faultOf('erasures', `${writeCount(erasures, 'workspace')} not erased yet`, fix)]),
    ...(replays + erasures === 0 ? [wellAs('crons', 'no replay and no erasure is overdue')] : []),
  ];
}

/** Grants that ledgers skip, and prepaid workspaces that were never granted anything. */
export async function checkMoney(store: OperatorStore): Promise<readonly Finding[]> {
  const grants = await store.query('SELECT seq, workspace, amount_usd FROM credit_grants');
  const malformed = grants.filter((row) => parseUsd(String(row['amount_usd'])) === null);
  const faults = malformed.map((row) =>
    faultOf(
      `grant ${String(row['seq'])}`,
      `'${String(row['amount_usd'])}' is no amount: it is skipped`,
      `grant the right one: credits grant ${String(row['workspace'])} AMOUNT`,
    ),
  );
  const granted = new Set(grants.map((row) => String(row['workspace'])));
  for (const [id, { workspace }] of await readWorkspaces(store)) {
    if (workspace?.billing !== 'prepaid' || granted.has(id)) continue;
    faults.push(
      faultOf(`workspace ${id}`, 'it is prepaid and was never granted anything', `credits grant ${id} AMOUNT`),
    );
  }
  return [wellAs('credits', writeCount(grants.length - malformed.length, 'grant')), ...faults];
}

const SPENT = `SELECT (SELECT COALESCE(SUM(cost_nano_usd), 0) FROM receipts WHERE workspace = ?1)
  + (SELECT COALESCE(SUM(cost_nano_usd), 0) FROM usage_moved WHERE workspace = ?1) AS spent`;

/** What D1 says a workspace spent, in nano-USD. */
export async function readSpent(store: OperatorStore, workspace: string): Promise<number> {
  return Number((await store.query(SPENT, workspace))[0]?.['spent']);
}

type FoundWorkspaces = ReadonlyMap<string, ReturnType<typeof readWorkspace>>;

async function readWorkspaces(store: OperatorStore): Promise<FoundWorkspaces> {
  const entries = await store.readEntries('KEYS', 'workspace:');
  return new Map([...entries].map(([name, text]) => [name.slice('workspace:'.length), readWorkspace(text)]));
}
