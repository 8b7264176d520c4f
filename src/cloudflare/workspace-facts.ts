// What D1 says of a workspace beside its receipts: which of its keys are revoked, and what it was granted (SPEC §5). Both
// are read again, in one batch, when older than 5 s, and the call that finds them old waits for it, for a moment. While
// D1 does not answer, what was known holds, and nobody waits for it again for as long.

import * as z from 'zod';
import { type Funds } from '../core/ledger-credits.ts';
import { parseUsd } from '../core/money.ts';
import { withDeadline } from '../gateway/deadline.ts';
import { type LogEntry } from '../gateway/ports.ts';
import { GRANTS, REVOKED } from './facts-query.ts';

/** The facts about one workspace. */
export type WorkspaceFacts = {
  /** Sees to it that what is known of the key and the grants is at most 5 s old. Waits at most 500 ms; never rejects. */
  readonly refresh: (workspace: string, keyId: string) => Promise<void>;
  /** Whether a key is revoked, as far as is known. */
  readonly isRevoked: (keyId: string) => boolean;
  /** What was granted; null while the grants were never read. */
  readonly readFunds: () => Funds | null;
};

const FRESH_MS = 5000;
const WAIT_MS = 500;
const READ_DEADLINE_MS = 5000;
/** Keys not seen for so long are no longer asked about. */
const SEEN_MS = 10 * 60_000;
/** A read under way may not ask about a key yet; the next one does. */
const READS_MAX = 2;

const revokedSchema = z.array(z.object({ key_id: z.string() }));
const grantsSchema = z.array(z.object({ seq: z.number(), amount_usd: z.unknown() }));
type Grant = z.infer<typeof grantsSchema>[number];

/** Creates the reader of one workspace. */
export function createWorkspaceFacts(
  db: D1Database,
  now: () => number,
  log: (entry: LogEntry) => void,
): WorkspaceFacts {
  const seenAtMs = new Map<string, number>();
  let revoked: ReadonlySet<string> = new Set();
  let asked: ReadonlySet<string> = new Set();
  let grantedNanoUsd = 0;
  let grantSeq = 0;
  let readAtMs = -Infinity;
  let failedAtMs = -Infinity;
  let reading: Promise<void> | null = null;

  async function read(workspace: string): Promise<void> {
    const startMs = now();
    for (const [id, atMs] of seenAtMs) if (startMs - atMs > SEEN_MS) seenAtMs.delete(id);
    const ids = [...seenAtMs.keys()];
    try {
      const batch = db.batch([
        db.prepare(REVOKED).bind(JSON.stringify(ids)),
        db.prepare(GRANTS).bind(workspace, grantSeq),
      ]);
      const answer = await withDeadline(batch, READ_DEADLINE_MS, () => undefined);
      if (answer === 'deadline') throw new Error('D1 did not answer in time');
      revoked = new Set(revokedSchema.parse(answer[0]?.results).map((row) => row.key_id));
      for (const grant of grantsSchema.parse(answer[1]?.results)) addGrant(workspace, grant);
      asked = new Set(ids);
      readAtMs = startMs;
    } catch (error) {
      failedAtMs = now();
      log({ event: 'facts_unreadable', workspace, fault: String(error) });
    } finally {
      reading = null;
    }
  }

  /** Rows are only ever added, so each is read once. */
  function addGrant(workspace: string, { seq, amount_usd: amount }: Grant): void {
    grantSeq = seq;
    const total = grantedNanoUsd + ((typeof amount === 'string' ? parseUsd(amount) : null) ?? NaN);
    if (Number.isSafeInteger(total)) grantedNanoUsd = total;
    else log({ event: 'grant_skipped', workspace, seq, amount_usd: String(amount).slice(0, 64), fault: 'no amount' });
  }

  function isKnown(keyId: string): boolean {
    return now() - readAtMs < FRESH_MS && asked.has(keyId);
  }

  return {
    async refresh(workspace, keyId) {
      const untilMs = now() + WAIT_MS;
      seenAtMs.set(keyId, now());
      for (let reads = 0; reads < READS_MAX; reads += 1) {
        if (isKnown(keyId) || now() - failedAtMs < FRESH_MS) return;
        reading ??= read(workspace);
        await withDeadline(reading, untilMs - now(), () => undefined);
      }
    },
    isRevoked: (keyId) => revoked.has(keyId),
    readFunds() {
      if (readAtMs === -Infinity) return null;
      return { grantedNanoUsd, isCurrent: now() - readAtMs < FRESH_MS };
    },
  };
}
