// Erases workspaces that a row in `erasures` names (SPEC §12): what identifies people is blanked in the ledger object, in
// D1 and in the archive, and every sum stays. Each step may be repeated; where a run ended is in the row.

import * as z from 'zod';
import { type DailyWork } from './daily-work.ts';
import { COUNTED_COLUMNS } from './usage-columns.ts';
import { ERASED_COLUMNS, ERASED_KEY } from './receipt-row.ts';

/** What a run erased. */
export type ErasedWorkspaces = { readonly workspaces: readonly string[]; readonly finished: boolean };

/** Requests that ran when the erasure was asked for have ended by then. */
const WAIT_MS = 3_600_000;
const PAGE_ROWS = 5000;
const PAGE_OBJECTS = 20;

const DUE = `SELECT workspace, receipts_to, objects_to FROM erasures
  WHERE done_at IS NULL AND COALESCE(datetime(requested_at) <= datetime(?1), 1) ORDER BY requested_at, workspace`;
const FIND_PAGE_END = `SELECT id FROM receipts WHERE workspace = ?1 AND id > ?2 ORDER BY id LIMIT 1 OFFSET ${PAGE_ROWS - 1}`;
const ERASE_PAGE = `UPDATE receipts SET key = '${ERASED_KEY}', ${ERASED_COLUMNS.map((name) => `${name} = NULL`).join(', ')}
  WHERE workspace = ?1 AND id > ?2 AND id <= ?3
  AND (key <> '${ERASED_KEY}' OR ${ERASED_COLUMNS.map((name) => `${name} IS NOT NULL`).join(' OR ')})`;
const MARK_RECEIPTS = 'UPDATE erasures SET receipts_to = ?2 WHERE workspace = ?1';
const MARK_OBJECTS = 'UPDATE erasures SET objects_to = ?2 WHERE workspace = ?1';
const MARK_DONE = 'UPDATE erasures SET done_at = ?2 WHERE workspace = ?1';
/** Sorts after every id. */
const ALL = '~';

const dueSchema = z.array(z.object({ workspace: z.string(), receipts_to: z.string(), objects_to: z.string() }));
const lineSchema = z.looseObject({});

/** Erases, as far as the budget goes; the next run begins where this one ended. */
export async function eraseWorkspaces(work: DailyWork): Promise<ErasedWorkspaces> {
  const erased: string[] = [];
  const query = work.db.prepare(DUE).bind(new Date(work.nowMs - WAIT_MS).toISOString());
  for (const erasure of dueSchema.parse((await query.all()).results)) {
    const { workspace } = erasure;
    try {
      // The ledger first: what it still has to carry to D1 comes blank then.
      await work.ledgers.getByName(workspace).eraseIdentities();
      if (!(await eraseReceipts(work, workspace, erasure.receipts_to))) return { workspaces: erased, finished: false };
      if (!(await eraseObjects(work, workspace, erasure.objects_to))) return { workspaces: erased, finished: false };
      const atTime = new Date(work.nowMs).toISOString();
      await work.db.batch([
        ...eraseSums(work.db, 'usage_daily', workspace),
        ...eraseSums(work.db, 'usage_moved', workspace),
        work.db.prepare(MARK_DONE).bind(workspace, atTime),
      ]);
      erased.push(workspace);
    } catch (error) {
      work.log({ event: 'workspace_not_erased', workspace, fault: String(error) });
    }
  }
  return { workspaces: erased, finished: true };
}

/** Whether all receipts in D1 are blank now. Their rev stays: a ledger's older form never comes back over it. */
async function eraseReceipts({ db, budget }: DailyWork, workspace: string, from: string): Promise<boolean> {
  for (let done = from; done !== ALL;) {
    if (!budget.take(3)) return false;
    const end = await db.prepare(FIND_PAGE_END).bind(workspace, done).first('id');
    const endId = typeof end === 'string' ? end : ALL;
    await db.batch([
      db.prepare(ERASE_PAGE).bind(workspace, done, endId),
      db.prepare(MARK_RECEIPTS).bind(workspace, endId),
    ]);
    done = endId;
  }
  return true;
}

/**
 * Whether all receipts in the archive are blank now.
 *
 * @throws Error when receipts were moved to a bucket that is not bound any more.
 */
async function eraseObjects({ db, archive, budget }: DailyWork, workspace: string, from: string): Promise<boolean> {
  if (archive === null) {
    const moved = await db.prepare('SELECT 1 FROM usage_moved WHERE workspace = ?1 LIMIT 1').bind(workspace).first();
    if (moved === null) return true;
    throw new Error('receipts of it are in R2, but no bucket is bound as ARCHIVE');
  }
  for (let done = from; ;) {
    if (!budget.take(1 + 2 * PAGE_OBJECTS)) return false;
    const startAfter = done === '' ? {} : { startAfter: done };
    const page = await archive.list({ prefix: `receipts/${workspace}/`, limit: PAGE_OBJECTS, ...startAfter });
    for (const { key } of page.objects) await eraseObject(archive, key);
    const last = page.objects.at(-1);
    if (last === undefined) return true;
    done = last.key;
    await db.prepare(MARK_OBJECTS).bind(workspace, done).run();
  }
}

async function eraseObject(archive: R2Bucket, key: string): Promise<void> {
  const object = await archive.get(key);
  if (object === null) return;
  const blank = Object.fromEntries(ERASED_COLUMNS.map((name) => [name, null]));
  const lines = (await object.text()).split('\n').filter((line) => line !== '');
  const erased = lines.map((line) => {
    const row = lineSchema.parse(JSON.parse(line));
    return `${JSON.stringify({ ...row, key: ERASED_KEY, ...blank })}\n`;
  });
  await archive.put(
    key,
    erased.join(''),
    object.httpMetadata === undefined ? {} : { httpMetadata: object.httpMetadata },
  );
}

/** Puts the sums of all keys together under one name. */
function eraseSums(db: D1Database, table: 'usage_daily' | 'usage_moved', workspace: string): D1PreparedStatement[] {
  const counts = ['requests', ...COUNTED_COLUMNS];
  const merge = `INSERT INTO ${table} (workspace, day, model, key, ${counts.join(', ')})
    SELECT workspace, day, model, '${ERASED_KEY}', ${counts.map((column) => `sum(${column})`).join(', ')}
    FROM ${table} WHERE workspace = ?1 AND key <> '${ERASED_KEY}' GROUP BY workspace, day, model
    ON CONFLICT (workspace, day, model, key) DO UPDATE SET
      ${counts.map((column) => `${column} = ${column} + excluded.${column}`).join(', ')}`;
  const clear = `DELETE FROM ${table} WHERE workspace = ?1 AND key <> '${ERASED_KEY}'`;
  return [db.prepare(merge).bind(workspace), db.prepare(clear).bind(workspace)];
}
