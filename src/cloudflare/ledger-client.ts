// The ledgers as the gateway calls them: the workspace's object by name, a deadline on every call, and every failure
// turned into an answer. Nothing here decides.

import { type GatewayError } from '../core/errors.ts';
import { type LedgerCommand, type LedgerDecision } from '../core/ledger-types.ts';
import { err, ok } from '../core/result.ts';
import { withDeadline } from '../gateway/deadline.ts';
import { type Ledger, type LogEntry } from '../gateway/ports.ts';
import { LEDGER_CALL_VERSION, type LedgerRpc } from './ledger-call.ts';

const UNAVAILABLE: GatewayError = { kind: 'limiter_unavailable' };
const LOCATIONS: Readonly<Record<string, DurableObjectLocationHint>> = {
  wnam: 'wnam',
  enam: 'enam',
  sam: 'sam',
  weur: 'weur',
  eeur: 'eeur',
  apac: 'apac',
  oc: 'oc',
  afr: 'afr',
  me: 'me',
};

/** The ledger port over a Durable Object namespace: one object per workspace. */
export function createLedgerClient(
  namespace: DurableObjectNamespace<LedgerRpc>,
  deadlineMs: number,
  log: (entry: LogEntry) => void,
): Ledger {
  const open = (workspace: string, location: string | null): DurableObjectStub<LedgerRpc> => {
    const hint = location === null ? undefined : LOCATIONS[location];
    return namespace.getByName(workspace, hint === undefined ? {} : { locationHint: hint });
  };

  /** The decision; null when the object did not answer, or not in time. */
  async function call(
    workspace: string,
    location: string | null,
    command: LedgerCommand,
  ): Promise<LedgerDecision | null> {
    try {
      const calling = open(workspace, location).call({ v: LEDGER_CALL_VERSION, command });
      const reply = await withDeadline(calling, deadlineMs, () => undefined);
      if (reply !== 'deadline') return reply.decision;
      log({ event: 'ledger_unreachable', workspace, command: command.type, fault: 'no answer in time' });
    } catch (error) {
      log({ event: 'ledger_unreachable', workspace, command: command.type, fault: String(error) });
    }
    return null;
  }

  return {
    async reserve(reservation, location) {
      const decision = await call(reservation.receipt.workspace, location, { type: 'reserve', reservation });
      if (decision?.type === 'admitted') return ok(decision.rates);
      if (decision?.type === 'refused') return err({ error: decision.error, rates: decision.rates });
      return err({ error: UNAVAILABLE, rates: null });
    },
    async renew(reservation) {
      const decision = await call(reservation.receipt.workspace, null, { type: 'renew', reservation });
      if (decision?.type !== 'renewed') return 'unreachable';
      return decision.go ? 'go' : 'stop';
    },
    async settle(reservation) {
      const decision = await call(reservation.receipt.workspace, null, { type: 'settle', reservation });
      return decision?.type === 'settled';
    },
    async release(workspace, id) {
      const decision = await call(workspace, null, { type: 'release', id });
      return decision?.type === 'released';
    },
    async findReceipt(workspace, id) {
      try {
        const found = await withDeadline(open(workspace, null).findReceipt(id), deadlineMs, () => undefined);
        return found === 'deadline' ? err(UNAVAILABLE) : ok(found);
      } catch (error) {
        log({ event: 'ledger_unreachable', workspace, command: 'findReceipt', fault: String(error) });
        return err(UNAVAILABLE);
      }
    },
    async listReceipts(query, rows, location) {
      const { workspace } = query;
      try {
        const listing = open(workspace, location).listReceipts({ v: LEDGER_CALL_VERSION, query, rows });
        const reply = await withDeadline(listing, deadlineMs, () => undefined);
        return reply === 'deadline' ? err(UNAVAILABLE) : ok(reply.scan);
      } catch (error) {
        log({ event: 'ledger_unreachable', workspace, command: 'listReceipts', fault: String(error) });
        return err(UNAVAILABLE);
      }
    },
  };
}
