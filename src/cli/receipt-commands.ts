// `turnpike receipts …`: the record in D1, newest rows as they come, whole or as a file; and carrying to D1 again what
// ledgers keep, after a restore (SPEC §9, §12).

import { open } from 'node:fs/promises';
import type { Writable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { setTimeout as sleep } from 'node:timers/promises';
import { toUsd } from '../core/money.ts';
import { toLowestId } from '../core/request-id.ts';
import { type CommandResult, writeCount } from './command-result.ts';
import type { OperatorStore, Row, SqlValue } from './operator-store.ts';
import { StartError, toReason } from './start-error.ts';

const PAGE_ROWS = 1000;
const FOLLOW_MS = 2000;
const KEPT_MS = 7 * 86_400_000;
const REPLAY_POLL_MS = 2000;
const REPLAY_WAIT_MS = 15 * 60_000;

/** Shows how far a long command is. */
export type Progress = {
  readonly start: (total: number) => void;
  readonly at: (done: number) => void;
  readonly stop: () => void;
};

export type ReceiptRange = { readonly workspace?: string; readonly from?: string; readonly to?: string };
export type ExportOptions = ReceiptRange & { readonly format: 'jsonl' | 'csv'; readonly output?: string };

/** Writes every receipt of a range, workspace by workspace, oldest first. */
export async function exportReceipts(
  store: OperatorStore,
  options: ExportOptions,
  stdout: Writable,
  progress: Progress,
): Promise<CommandResult> {
  const { output } = options;
  const target = output === undefined ? stdout : await createFile(output);
  const workspaces = options.workspace === undefined ? await listWorkspaces(store) : [options.workspace];
  const [fromId, beforeId] = toIds(options);
  const total = await countRows(store, workspaces, fromId, beforeId);
  const pages = readPages(store, workspaces, fromId, beforeId);
  let done = 0;
  async function* writeLines(): AsyncGenerator<string> {
    let columns: readonly string[] | null = null;
    for await (const rows of pages) {
      if (options.format === 'csv' && columns === null) {
        columns = Object.keys(rows[0] ?? {});
        yield toCsvLine(columns);
      }
      const names = columns;
      yield rows
        .map((row) => (names === null ? `${JSON.stringify(row)}\n` : toCsvLine(names.map((name) => row[name]))))
        .join('');
      done += rows.length;
      progress.at(done);
    }
  }
  progress.start(total);
  try {
    await pipeline(writeLines, target, { end: target !== stdout });
  } catch (error) {
    // Whoever read the lines has had enough.
    if (!isCode(error, 'EPIPE')) throw error instanceof StartError ? error : new StartError(toReason(error));
  } finally {
    progress.stop();
  }
  const text = `${writeCount(done, 'receipt')}${output === undefined ? '' : ` in ${output}`}`;
  return { data: { receipts: done, output: output ?? null }, text };
}

/** The rows of a range, page by page. */
async function* readPages(
  store: OperatorStore,
  workspaces: readonly string[],
  fromId: string,
  beforeId: string,
): AsyncGenerator<readonly Row[]> {
  for (const workspace of workspaces) {
    for (let after = fromId; ;) {
      const rows = await readPage(store, workspace, after, beforeId);
      if (rows.length === 0) break;
      yield rows;
      // Sorts behind the id and before every other.
      after = `${String(rows.at(-1)?.['id'])}!`;
    }
  }
}

function isCode(error: unknown, code: string): boolean {
  return error instanceof Error && 'code' in error && error.code === code;
}

/** A new file for a record that tells of people: nobody else may read it. */
async function createFile(path: string): Promise<Writable> {
  try {
    return (await open(path, 'wx', 0o600)).createWriteStream();
  } catch (error) {
    throw new StartError(isCode(error, 'EEXIST') ? `${path} is there already: it is not overwritten` : toReason(error));
  }
}

/**
 * The newest receipts, oldest of them first; `follow` waits for more until the signal, and for changes to the last
 * thousand: a long stream's receipt comes behind younger ones.
 */
export async function tailReceipts(
  store: OperatorStore,
  options: { readonly workspace?: string; readonly lines: number; readonly follow: boolean },
  print: (row: Row) => void,
  signal: AbortSignal,
): Promise<void> {
  let seen: ReadonlyMap<string, SqlValue | undefined> | null = null;
  for (;;) {
    const rows = await readNewest(store, options.workspace, options.follow ? PAGE_ROWS : options.lines);
    const before = seen;
    const fresh =
      before === null ? rows.slice(-options.lines) : rows.filter((row) => before.get(idOf(row)) !== row['rev']);
    for (const row of fresh) print(row);
    seen = new Map(rows.map((row) => [idOf(row), row['rev']]));
    if (!options.follow || signal.aborted) return;
    // An abort ends the wait, and the command with it.
    await sleep(FOLLOW_MS, undefined, { signal }).catch(() => undefined);
    if (signal.aborted) return;
  }
}

function idOf(row: Row): string {
  return String(row['id']);
}

/** A receipt on one line, for people. */
export function writeReceiptLine(row: Row): string {
  const cost = toUsd(Number(row['cost_nano_usd']));
  const tokens = `${String(row['input_tokens'])} in, ${String(row['output_tokens'])} out`;
  const code = row['error_code'] === null ? '' : ` ${String(row['error_code'])}`;
  return [
    row['created_at'],
    row['id'],
    row['workspace'],
    row['key'],
    row['requested_model'],
    `${String(row['status'])}${code}`,
    tokens,
    `${cost} USD`,
  ]
    .map(String)
    .join('  ');
}

export type ReplayOptions = { readonly workspace?: string; readonly since?: string; readonly wait: boolean };

/** Asks ledgers to carry to D1 again what they keep; `wait` waits until all were asked. */
export async function replayReceipts(
  store: OperatorStore,
  { workspace, since, wait }: ReplayOptions,
  nowMs: number,
  progress: Progress,
): Promise<CommandResult> {
  const prefix = 'workspace:';
  const names = (await store.listEntries('KEYS', prefix)).map((name) => name.slice(prefix.length));
  if (workspace !== undefined && !names.includes(workspace)) throw new StartError(`there is no workspace ${workspace}`);
  const asked = workspace === undefined ? names : [workspace];
  const from = since ?? new Date(nowMs - KEPT_MS).toISOString();
  await store.query(
    'INSERT INTO replays (workspace, since) SELECT value, ?2 FROM json_each(?1)',
    JSON.stringify(asked),
    from,
  );
  const hint = 'The Worker looks every five minutes (npm start: every few seconds); `receipts replay --wait` waits.';
  if (!wait)
    return {
      data: { asked, since: from },
      text: `${writeCount(asked.length, 'ledger')} to replay from ${from}.\n${hint}`,
    };
  const untilMs = nowMs + REPLAY_WAIT_MS;
  progress.start(asked.length);
  try {
    for (let timeMs = nowMs; timeMs < untilMs; timeMs += REPLAY_POLL_MS) {
      const due = await store.query('SELECT count(*) AS n FROM replays WHERE since = ?1 AND done_at IS NULL', from);
      const waiting = Number(due[0]?.['n']);
      progress.at(Math.max(0, asked.length - waiting));
      if (waiting === 0) {
        const done = await store.query(
          'SELECT workspace, receipts, fault, done_at FROM replays WHERE since = ?1',
          from,
        );
        const sum = done.reduce((all, row) => all + Number(row['receipts'] ?? 0), 0);
        return {
          data: { asked, since: from, done },
          text: `${writeCount(asked.length, 'ledger')} asked: ${writeCount(sum, 'receipt')} to be carried to D1 again.`,
        };
      }
      await sleep(REPLAY_POLL_MS);
    }
  } finally {
    progress.stop();
  }
  throw new StartError(
    'not all were asked yet: are the crons of wrangler.toml deployed? The log says `replay_failed` where one failed',
  );
}

/** Workspaces with receipts, by name. */
async function listWorkspaces(store: OperatorStore): Promise<readonly string[]> {
  const rows = await store.query(`WITH RECURSIVE names(workspace) AS (SELECT min(workspace) FROM receipts UNION ALL
    SELECT (SELECT min(workspace) FROM receipts WHERE workspace > names.workspace) FROM names
    WHERE names.workspace IS NOT NULL) SELECT workspace FROM names WHERE workspace IS NOT NULL`);
  return rows.map((row) => String(row['workspace']));
}

/** A time as the ids of receipts: they sort by time. */
function toIds({ from, to }: ReceiptRange): readonly [string, string] {
  return [from === undefined ? '' : toLowestId(Date.parse(from)), to === undefined ? '~' : toLowestId(Date.parse(to))];
}

/** One statement whatever the number of workspaces: in a deployment each is a run of wrangler. */
async function countRows(
  store: OperatorStore,
  workspaces: readonly string[],
  fromId: string,
  beforeId: string,
): Promise<number> {
  const query = `SELECT count(*) AS n FROM json_each(?1) AS w CROSS JOIN receipts AS r
    WHERE r.workspace = w.value AND r.id >= ?2 AND r.id < ?3`;
  return Number((await store.query(query, JSON.stringify(workspaces), fromId, beforeId))[0]?.['n']);
}

function readPage(store: OperatorStore, workspace: string, fromId: string, beforeId: string): Promise<readonly Row[]> {
  const query = `SELECT * FROM receipts WHERE workspace = ?1 AND id >= ?2 AND id < ?3 ORDER BY id LIMIT ${PAGE_ROWS}`;
  return store.query(query, workspace, fromId, beforeId);
}

/** The newest rows of all workspaces together, oldest first. */
async function readNewest(store: OperatorStore, workspace: string | undefined, rows: number): Promise<readonly Row[]> {
  const workspaces = workspace === undefined ? await listWorkspaces(store) : [workspace];
  const query = `SELECT r.* FROM json_each(?1) AS w CROSS JOIN receipts AS r WHERE r.workspace = w.value
    AND r.id IN (SELECT id FROM receipts WHERE workspace = w.value ORDER BY id DESC LIMIT ?2)
    ORDER BY r.id DESC LIMIT ?2`;
  return (await store.query(query, JSON.stringify(workspaces), rows)).toReversed();
}

/** One record (RFC 4180). A text that a spreadsheet would take for a formula gets an apostrophe before it. */
function toCsvLine(values: readonly (SqlValue | undefined)[]): string {
  const cells = values.map((value) => {
    if (value === null || value === undefined) return '';
    const text = typeof value === 'string' && /^[=+\-@\t\r]/.test(value) ? `'${value}` : String(value);
    return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
  });
  return `${cells.join(',')}\r\n`;
}
