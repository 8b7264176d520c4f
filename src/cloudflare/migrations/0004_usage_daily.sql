-- Data life (SPEC §12): sums by day, what was moved out of `receipts`, which days are closed, whom to forget.

-- A closed day's receipts, summed: all of them, those moved since included. For bills and reports; GET /v1/usage sums the
-- receipts themselves. model is what the client named (requested_model); day is the UTC day a receipt was created in.
CREATE TABLE usage_daily (
  workspace TEXT NOT NULL,
  day TEXT NOT NULL,
  model TEXT NOT NULL,
  key TEXT NOT NULL,
  requests INTEGER NOT NULL,
  input_tokens INTEGER NOT NULL,
  cached_input_tokens INTEGER NOT NULL,
  cache_write_tokens INTEGER NOT NULL,
  output_tokens INTEGER NOT NULL,
  reasoning_tokens INTEGER NOT NULL,
  cost_nano_usd INTEGER NOT NULL,
  PRIMARY KEY (workspace, day, model, key)
) WITHOUT ROWID;

-- What left `receipts` for R2, summed in the transaction that deleted it: `receipts` and this are at any moment the whole.
CREATE TABLE usage_moved (
  workspace TEXT NOT NULL,
  day TEXT NOT NULL,
  model TEXT NOT NULL,
  key TEXT NOT NULL,
  requests INTEGER NOT NULL,
  input_tokens INTEGER NOT NULL,
  cached_input_tokens INTEGER NOT NULL,
  cache_write_tokens INTEGER NOT NULL,
  output_tokens INTEGER NOT NULL,
  reasoning_tokens INTEGER NOT NULL,
  cost_nano_usd INTEGER NOT NULL,
  PRIMARY KEY (workspace, day, model, key)
) WITHOUT ROWID;

-- final_at: summed once more when no ledger can change the day any longer. compared_to: the workspace up to which ledgers
-- were compared with `receipts`; '~' when all were.
CREATE TABLE closed_days (
  day TEXT NOT NULL PRIMARY KEY,
  closed_at TEXT NOT NULL,
  final_at TEXT,
  compared_to TEXT NOT NULL DEFAULT ''
) WITHOUT ROWID;

-- A row asks the daily run to blank what identifies people in a workspace. The run fills in the rest.
CREATE TABLE erasures (
  workspace TEXT NOT NULL PRIMARY KEY,
  requested_at TEXT NOT NULL DEFAULT CURRENT_TIMESTAMP,
  receipts_to TEXT NOT NULL DEFAULT '',
  objects_to TEXT NOT NULL DEFAULT '',
  done_at TEXT
) WITHOUT ROWID;
