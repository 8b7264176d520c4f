-- A row here stops a key at the ledger within ten seconds, streams under way included (SPEC §2). Its entry in KV may
-- stay; taking the row out again lets the key back in.
CREATE TABLE revoked_keys (
  key_id TEXT NOT NULL PRIMARY KEY,
  revoked_at TEXT NOT NULL DEFAULT CURRENT_TIMESTAMP
) WITHOUT ROWID;
