// What a ledger asks D1 every few seconds, as text: it holds no results. Reading them is workspace-facts.ts.

/** Which of some keys, given as a JSON list, are revoked. */
export const REVOKED = 'SELECT key_id FROM revoked_keys WHERE key_id IN (SELECT value FROM json_each(?1))';

/** A workspace's grants behind the one read last. */
export const GRANTS = 'SELECT seq, amount_usd FROM credit_grants WHERE workspace = ?1 AND seq > ?2 ORDER BY seq';
