// What an operator's commands need of the stores: entries of two KV namespaces and the rows of D1, wherever they are. Types,
// and how values get into SQL that takes none.

import * as z from 'zod';

/** A KV namespace of the gateway. */
export type Namespace = 'KEYS' | 'CATALOG';

const valueSchema = z.union([z.string(), z.number(), z.null()]);
export type SqlValue = z.infer<typeof valueSchema>;

/** Rows as D1 hands them out; no column here holds bytes. */
export const rowsSchema = z.array(z.record(z.string(), valueSchema));
export type Row = Readonly<Record<string, SqlValue>>;

/** The stores of one deployment, or of one local state. */
export type OperatorStore = {
  /** The text of an entry; null when there is none. */
  readonly readEntry: (namespace: Namespace, name: string) => Promise<string | null>;
  readonly writeEntry: (namespace: Namespace, name: string, text: string) => Promise<void>;
  /** Names of the entries that begin with a prefix, sorted. */
  readonly listEntries: (namespace: Namespace, prefix: string) => Promise<readonly string[]>;
  /** The entries that begin with a prefix, by name. */
  readonly readEntries: (namespace: Namespace, prefix: string) => Promise<ReadonlyMap<string, string>>;
  /** Runs one statement of D1, `?1` and on bound to `values`. */
  readonly query: (sql: string, ...values: readonly SqlValue[]) => Promise<readonly Row[]>;
  readonly close: () => Promise<void>;
};

/**
 * The statement with its values in it, for `wrangler d1 execute`, which binds none. The statement must have no question
 * mark in a text of its own.
 */
export function fillStatement(sql: string, values: readonly SqlValue[]): string {
  return sql.replace(/\?(\d+)/g, (_, at: string) => toLiteral(values[Number(at) - 1] ?? null));
}

/** A value as SQLite reads it. A NUL would end the statement, so a text with one goes as its bytes. */
function toLiteral(value: SqlValue): string {
  if (value === null) return 'NULL';
  if (typeof value === 'number') return String(value);
  if (value.includes('\0')) return `CAST(x'${Buffer.from(value, 'utf8').toString('hex')}' AS TEXT)`;
  return `'${value.replaceAll("'", "''")}'`;
}
