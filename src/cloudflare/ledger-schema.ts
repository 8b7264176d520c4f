// The tables of a ledger object and their steps forward: the row in `ledger` says which version they are, and each later
// version adds a step from the one before (SPEC §11). Steps only add, so that older code goes on working after a step back.

const SCHEMA_VERSION = 2;

/** Steps the tables forward to this code's version; tables of a later version are left as they are. */
export function migrateLedger(storage: DurableObjectStorage): void {
  const { sql } = storage;
  storage.transactionSync(() => {
    sql.exec('CREATE TABLE IF NOT EXISTS ledger (schema_version INTEGER NOT NULL, flushed_seq INTEGER NOT NULL)');
    const [row] = sql.exec('SELECT schema_version FROM ledger').toArray();
    const version = row === undefined ? 0 : Number(row['schema_version']);
    if (version < 1) createTables(sql);
    if (version < 2) {
      sql.exec('ALTER TABLE ledger ADD COLUMN spent_nano_usd INTEGER');
      sql.exec('ALTER TABLE ledger ADD COLUMN spent_seq INTEGER NOT NULL DEFAULT 0');
    }
    if (version < SCHEMA_VERSION) sql.exec('UPDATE ledger SET schema_version = ?', SCHEMA_VERSION);
  });
}

function createTables(sql: SqlStorage): void {
  sql.exec('INSERT INTO ledger VALUES (1, 0)');
  sql.exec(`CREATE TABLE scopes (name TEXT PRIMARY KEY, requests_units INTEGER NOT NULL, requests_at_ms INTEGER NOT NULL,
      tokens_units INTEGER NOT NULL, tokens_at_ms INTEGER NOT NULL) WITHOUT ROWID`);
  sql.exec('CREATE TABLE reservations (id TEXT PRIMARY KEY, body TEXT NOT NULL) WITHOUT ROWID');
  sql.exec(`CREATE TABLE receipts (seq INTEGER PRIMARY KEY AUTOINCREMENT, id TEXT NOT NULL UNIQUE, rev INTEGER NOT NULL,
      closed_at_ms INTEGER NOT NULL, body TEXT NOT NULL)`);
}
