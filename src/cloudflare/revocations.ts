// Which of a workspace's keys are revoked, as the D1 table `revoked_keys` has it: read again when older than 5 s, and
// the call that finds it old waits for it, for a moment (SPEC §5). While D1 does not answer, what was known
// holds, and nobody waits for it again for as long.

import { withDeadline } from '../gateway/deadline.ts';
import { type LogEntry } from '../gateway/ports.ts';

/** Tells whether a key is revoked. Never rejects. */
export type Revocations = { readonly isRevoked: (keyId: string) => Promise<boolean> };

const FRESH_MS = 5000;
const WAIT_MS = 500;
const READ_DEADLINE_MS = 5000;
/** Keys not seen for so long are no longer asked about. */
const SEEN_MS = 10 * 60_000;

/** Creates the reader of one workspace. */
export function createRevocations(db: D1Database, now: () => number, log: (entry: LogEntry) => void): Revocations {
  const seenAtMs = new Map<string, number>();
  let revoked: ReadonlySet<string> = new Set();
  let asked: ReadonlySet<string> = new Set();
  let readAtMs = -Infinity;
  let failedAtMs = -Infinity;
  let reading: Promise<void> | null = null;

  async function read(): Promise<void> {
    const startMs = now();
    for (const [id, atMs] of seenAtMs) if (startMs - atMs > SEEN_MS) seenAtMs.delete(id);
    const ids = [...seenAtMs.keys()];
    try {
      const query = 'SELECT key_id FROM revoked_keys WHERE key_id IN (SELECT value FROM json_each(?1))';
      const querying = db.prepare(query).bind(JSON.stringify(ids)).all<{ key_id: string }>();
      const answer = await withDeadline(querying, READ_DEADLINE_MS, () => undefined);
      if (answer === 'deadline') throw new Error('D1 did not answer in time');
      revoked = new Set(answer.results.map((row) => row.key_id));
      asked = new Set(ids);
      readAtMs = startMs;
    } catch (error) {
      failedAtMs = now();
      log({ event: 'revocations_unreadable', fault: String(error) });
    } finally {
      reading = null;
    }
  }

  return {
    async isRevoked(keyId) {
      seenAtMs.set(keyId, now());
      const isFresh = now() - readAtMs < FRESH_MS && asked.has(keyId);
      if (!isFresh && now() - failedAtMs >= FRESH_MS) {
        reading ??= read();
        await withDeadline(reading, WAIT_MS, () => undefined);
      }
      return revoked.has(keyId);
    },
  };
}
