-- Prepaid credits: what each workspace was granted, in USD as a decimal text with at most nine decimals (SPEC §5). Rows
-- are only ever added; a correction is a negative row. Ledgers read what was added since they last looked, so numbers
-- only go up.
CREATE TABLE credit_grants (
  seq INTEGER PRIMARY KEY AUTOINCREMENT,
  id TEXT UNIQUE DEFAULT (lower(hex(randomblob(16)))),
  workspace TEXT,
  amount_usd TEXT,
  note TEXT,
  created_at TEXT DEFAULT CURRENT_TIMESTAMP
);
CREATE INDEX credit_grants_by_workspace ON credit_grants (workspace, seq);
CREATE TRIGGER credit_grants_no_update BEFORE UPDATE ON credit_grants
BEGIN
  SELECT RAISE(ABORT, 'credit_grants is append-only: add a row with a negative amount instead');
END;
CREATE TRIGGER credit_grants_no_delete BEFORE DELETE ON credit_grants
BEGIN
  SELECT RAISE(ABORT, 'credit_grants is append-only: add a row with a negative amount instead');
END;
-- INSERT OR REPLACE deletes without the trigger above.
CREATE TRIGGER credit_grants_no_replace BEFORE INSERT ON credit_grants
WHEN EXISTS (SELECT 1 FROM credit_grants WHERE seq = NEW.seq OR id = NEW.id)
BEGIN
  SELECT RAISE(ABORT, 'credit_grants is append-only: this seq or id is taken');
END;
CREATE TRIGGER credit_grants_in_order AFTER INSERT ON credit_grants
WHEN NEW.seq < 1 OR NEW.seq < (SELECT MAX(seq) FROM credit_grants)
BEGIN
  SELECT RAISE(ABORT, 'credit_grants is append-only: leave seq out');
END;
