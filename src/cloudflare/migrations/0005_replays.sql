-- A row asks a ledger to carry to D1 once more what it keeps of the last seven days: after D1 was restored to an earlier
-- time (SPEC §9). The Worker looks every five minutes and fills in the rest.
CREATE TABLE replays (
  seq INTEGER PRIMARY KEY AUTOINCREMENT,
  workspace TEXT NOT NULL,
  since TEXT NOT NULL,
  requested_at TEXT NOT NULL DEFAULT CURRENT_TIMESTAMP,
  receipts INTEGER,
  fault TEXT,
  done_at TEXT
);
