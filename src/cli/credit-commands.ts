// `turnpike credits …`: what workspaces are granted. Rows are only ever added; a correction is a negative one (SPEC §5).

import { parseUsd, toUsd } from '../core/money.ts';
import { type CommandResult, toTable } from './command-result.ts';
import type { OperatorStore, Row } from './operator-store.ts';
import { StartError } from './start-error.ts';
import { readWorkspace } from './workspace-commands.ts';

/** Grants an amount; a ledger knows of it within seconds. */
export async function grantCredits(
  store: OperatorStore,
  workspace: string,
  amountUsd: string,
  note: string | undefined,
): Promise<CommandResult> {
  const nanoUsd = parseUsd(amountUsd);
  if (nanoUsd === null || nanoUsd === 0) {
    throw new StartError(
      `'${amountUsd}' is no amount in USD: a decimal such as 25 or 12.50, with at most nine decimals`,
      2,
    );
  }
  if (nanoUsd < 0 && note === undefined)
    throw new StartError('a correction needs a --note that says what it corrects', 2);
  const entry = await store.readEntry('KEYS', `workspace:${workspace}`);
  if (entry === null) throw new StartError(`there is no workspace ${workspace}`);
  const insert = 'INSERT INTO credit_grants (workspace, amount_usd, note) VALUES (?1, ?2, ?3)';
  await store.query(insert, workspace, toUsd(nanoUsd), note ?? null);
  const granted = (await listGrants(store, workspace)).reduce((sum, { nanoUsd: one }) => sum + (one ?? 0), 0);
  const isPrepaid = readWorkspace(entry).workspace?.billing === 'prepaid';
  const warning = isPrepaid ? '' : `\n${workspace} is postpaid: credits bind nothing until its billing is prepaid.`;
  const text = `${workspace} is granted ${toUsd(nanoUsd)} USD; ${toUsd(granted)} in all.${warning}`;
  return {
    data: {
      workspace,
      amount_usd: toUsd(nanoUsd),
      granted_usd: toUsd(granted),
      billing: isPrepaid ? 'prepaid' : 'postpaid',
    },
    text,
  };
}

/** Every grant of a workspace, or of all. */
export async function listCredits(store: OperatorStore, workspace: string | undefined): Promise<CommandResult> {
  const grants = await listGrants(store, workspace);
  const rows = grants.map(({ row, nanoUsd }) => [
    String(row['created_at']),
    String(row['workspace']),
    nanoUsd === null ? `malformed, skipped: ${String(row['amount_usd'])}` : toUsd(nanoUsd),
    row['note'] === null ? '' : String(row['note']),
  ]);
  const text = rows.length === 0 ? 'no grants' : toTable(['CREATED', 'WORKSPACE', 'USD', 'NOTE'], rows);
  return { data: grants.map(({ row, nanoUsd }) => ({ ...row, malformed: nanoUsd === null })), text };
}

async function listGrants(
  store: OperatorStore,
  workspace: string | undefined,
): Promise<readonly { readonly row: Row; readonly nanoUsd: number | null }[]> {
  const columns = 'SELECT seq, id, workspace, amount_usd, note, created_at FROM credit_grants';
  const rows =
    workspace === undefined
      ? await store.query(`${columns} ORDER BY seq`)
      : await store.query(`${columns} WHERE workspace = ?1 ORDER BY seq`, workspace);
  return rows.map((row) => ({ row, nanoUsd: parseUsd(String(row['amount_usd'])) }));
}
