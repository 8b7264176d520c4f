// Which keys are revoked, for reads, which ask no ledger for leave: a look into D1 that an isolate remembers for seconds
// (SPEC §2). Inference does not come by here: its ledger knows.

import { withDeadline } from '../gateway/deadline.ts';
import { type LogEntry, type Revocations } from '../gateway/ports.ts';
import { REVOKED } from './facts-query.ts';

const KNOWN_MS = 5000;
const KNOWN_MAX = 1000;
const READ_DEADLINE_MS = 3000;

/** The revocations of a D1 database. */
export function createD1Revocations(db: D1Database, now: () => number, log: (entry: LogEntry) => void): Revocations {
  const known = new Map<string, { readonly revoked: boolean; readonly atMs: number }>();
  return {
    async has(keyId) {
      const before = known.get(keyId);
      if (before !== undefined && now() - before.atMs < KNOWN_MS) return before.revoked;
      try {
        const reading = db
          .prepare(REVOKED)
          .bind(JSON.stringify([keyId]))
          .first();
        const row = await withDeadline(reading, READ_DEADLINE_MS, () => undefined);
        if (row === 'deadline') throw new Error('D1 did not answer in time');
        if (known.size >= KNOWN_MAX) known.clear();
        known.set(keyId, { revoked: row !== null, atMs: now() });
        return row !== null;
      } catch (error) {
        log({ event: 'revocations_unreadable', key: keyId, fault: String(error) });
        return before?.revoked ?? false;
      }
    },
  };
}
