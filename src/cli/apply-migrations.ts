// Brings the local D1 database to the newest migration, with wrangler's own file order and bookkeeping, so that
// `wrangler d1 migrations apply --local` later finds nothing to do. Through Miniflare that is a matter of milliseconds;
// the command itself takes six seconds.

import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';

import { StartError, toReason } from './start-error.ts';

export type Migration = { readonly name: string; readonly sql: string };

/** The part of D1 that migrations need. */
export type MigrationDatabase<Statement> = {
  prepare(sql: string): Statement & {
    bind(...values: unknown[]): Statement;
    all(): Promise<{ readonly results: readonly Record<string, unknown>[] }>;
    run(): Promise<unknown>;
  };
  batch(statements: Statement[]): Promise<unknown>;
};

/** Reads the migrations of a folder in the order in which wrangler applies them: by leading number, then by name. */
export function readMigrations(dir: string): Migration[] {
  return listSqlFiles(dir)
    .map((name) => ({ name, sql: readFileSync(join(dir, name), 'utf8') }))
    .toSorted((a, b) => leadingNumber(a.name) - leadingNumber(b.name) || (a.name < b.name ? -1 : 1));
}

/**
 * Applies what is not yet in the bookkeeping table, each migration and its entry in one transaction.
 *
 * @param splitSql wrangler's splitter, which knows that a trigger's body has semicolons of its own
 * @throws StartError naming the migration that failed; those before it stay applied.
 */
export async function applyMigrations<Statement>(
  db: MigrationDatabase<Statement>,
  table: string,
  migrations: readonly Migration[],
  splitSql: (sql: string) => string[],
): Promise<void> {
  const quoted = `"${table.replaceAll('"', '""')}"`;
  // The same statement as wrangler's.
  await db
    .prepare(
      `CREATE TABLE IF NOT EXISTS ${quoted}(
        id INTEGER PRIMARY KEY AUTOINCREMENT, name TEXT UNIQUE,
        applied_at TIMESTAMP DEFAULT CURRENT_TIMESTAMP NOT NULL)`,
    )
    .run();
  const { results } = await db.prepare(`SELECT name FROM ${quoted}`).all();
  const applied = new Set(results.map((row) => row['name']));
  for (const { name, sql } of migrations) {
    if (applied.has(name)) continue;
    const statements = splitSql(sql).map((statement) => db.prepare(statement));
    const entry = db.prepare(`INSERT INTO ${quoted} (name) VALUES (?1)`).bind(name);
    try {
      await db.batch([...statements, entry]);
    } catch (error) {
      throw new StartError(`migration ${name} failed: ${toReason(error)}`);
    }
  }
}

function listSqlFiles(dir: string): string[] {
  try {
    return readdirSync(dir).filter((name) => name.endsWith('.sql'));
  } catch (error) {
    throw new StartError(`cannot read the D1 migrations in ${dir} (${toReason(error)})`);
  }
}

function leadingNumber(name: string): number {
  const number = Number.parseInt(name, 10);
  return Number.isNaN(number) ? Number.POSITIVE_INFINITY : number;
}
