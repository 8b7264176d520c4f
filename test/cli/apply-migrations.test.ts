// The order of migrations and their bookkeeping, against a database that only writes down what it is asked.

import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

import { describe, expect, test } from 'vitest';

import { applyMigrations, readMigrations } from '../../src/cli/apply-migrations.ts';

type Statement = { readonly sql: string; readonly values: readonly unknown[] };

function createDatabase(applied: readonly string[], failing = '') {
  const batches: Statement[][] = [];
  const prepare = (sql: string) => ({
    sql,
    values: [],
    bind: (...values: unknown[]): Statement => ({ sql, values }),
    all: () => Promise.resolve({ results: applied.map((name) => ({ name })) }),
    run: () => Promise.resolve(),
  });
  const batch = (statements: Statement[]) => {
    if (statements.some(({ sql }) => sql === failing)) return Promise.reject(new Error('no such table: x'));
    batches.push(statements.map(({ sql, values }) => ({ sql, values })));
    return Promise.resolve();
  };
  return { db: { prepare, batch }, batches };
}

const split = (sql: string): string[] => sql.split(';');

describe('§11 npm start applies D1 migrations locally', () => {
  test('files in wrangler’s order: by leading number, then by name, unnumbered ones last', () => {
    const dir = mkdtempSync(join(tmpdir(), 'turnpike-test-'));
    for (const name of ['10_c.sql', '0002_b.sql', '0001_b.sql', '1_a.sql', 'z.sql', 'notes.txt']) {
      writeFileSync(join(dir, name), name);
    }
    const names = readMigrations(dir).map(({ name, sql }) => (name === sql ? name : `${name}: ${sql}`));
    rmSync(dir, { recursive: true });
    expect(names).toEqual(['0001_b.sql', '1_a.sql', '0002_b.sql', '10_c.sql', 'z.sql']);
    expect(() => readMigrations(dir)).toThrow(/cannot read the D1 migrations in .*ENOENT/);
  });

  test('only what the bookkeeping lacks, each with its entry in one transaction', async () => {
    const { db, batches } = createDatabase(['1.sql']);
    const migrations = [
      { name: '1.sql', sql: 'a' },
      { name: '2.sql', sql: 'b;c' },
      { name: "it's.sql", sql: 'd' },
    ];
    await applyMigrations(db, 'd1_migrations', migrations, split);
    const entry = 'INSERT INTO "d1_migrations" (name) VALUES (?1)';
    expect(batches).toEqual([
      [
        { sql: 'b', values: [] },
        { sql: 'c', values: [] },
        { sql: entry, values: ['2.sql'] },
      ],
      [
        { sql: 'd', values: [] },
        { sql: entry, values: ["it's.sql"] },
      ],
    ]);
  });

  test('one that fails is named, and those before it stay', async () => {
    const { db, batches } = createDatabase([], 'bad');
    const migrations = ['good', 'bad', 'after'].map((sql) => ({ name: `${sql}.sql`, sql }));
    const applying = applyMigrations(db, 'd1_migrations', migrations, split);
    await expect(applying).rejects.toThrow('migration bad.sql failed: no such table: x');
    expect(batches).toHaveLength(1);
  });
});
