// The ledgers as the gateway calls them: the workspace's object by name, a deadline on every call, and every failure
// turned into an answer. Nothing here decides.

import { type GatewayError } from '../core/errors.ts';
import { type LedgerCommand } from '../core/ledger-types.ts';
import { type Receipt } from '../core/receipt.ts';
import { err, ok } from '../core/result.ts';
import { withDeadline } from '../gateway/deadline.ts';
import { type Ledger, type LogEntry } from '../gateway/ports.ts';
import {
  type AccountCall,
  type AccountReply,
  CREDITS_VERSION,
  LEDGER_CALL_VERSION,
  type LedgerCall,
  type LedgerListCall,
  type LedgerListReply,
  type LedgerReply,
} from './ledger-call.ts';

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

/** What is used of an object's stub. */
type LedgerStub = {
  readonly call: (call: LedgerCall) => Promise<LedgerReply>;
  readonly findReceipt: (id: string) => Promise<Receipt | null>;
  readonly readAccount: (call: AccountCall) => Promise<AccountReply>;
  readonly listReceipts: (call: LedgerListCall) => Promise<LedgerListReply>;
};

/** What is used of the namespace of ledger objects. */
export type LedgerNamespace = {
  readonly getByName: (name: string, options: { readonly locationHint?: DurableObjectLocationHint }) => LedgerStub;
};

/** The ledger port over a Durable Object namespace: one object per workspace. */
export function createLedgerClient(
  namespace: LedgerNamespace,
  deadlineMs: number,
  log: (entry: LogEntry) => void,
): Ledger {
  const open = (workspace: string, location: string | null): LedgerStub => {
    const hint = location === null ? undefined : LOCATIONS[location];
    return namespace.getByName(workspace, hint === undefined ? {} : { locationHint: hint });
  };

  /** The reply; null when the object did not answer, or not in time. */
  async function call(workspace: string, location: string | null, command: LedgerCommand): Promise<LedgerReply | null> {
    try {
      const calling = open(workspace, location).call({ v: LEDGER_CALL_VERSION, command });
      const reply = await withDeadline(calling, deadlineMs, () => undefined);
      if (reply !== 'deadline') return reply;
      log({ event: 'ledger_unreachable', workspace, command: command.type, fault: 'no answer in time' });
    } catch (error) {
      log({ event: 'ledger_unreachable', workspace, command: command.type, fault: String(error) });
    }
    return null;
  }

  return {
    async reserve(reservation, location) {
      const { receipt, credit } = reservation;
      const reply = await call(receipt.workspace, location, { type: 'reserve', reservation });
      const decision = reply?.decision;
      const isOutdated = reply !== null && reply.v < CREDITS_VERSION && credit !== undefined;
      if (isOutdated) log({ event: 'ledger_outdated', workspace: receipt.workspace, version: reply.v });
      else if (decision?.type === 'admitted') {
        return ok({ rates: decision.rates, outputLimit: decision.outputLimit ?? null });
      }
      if (decision?.type === 'refused') return err({ error: decision.error, rates: decision.rates });
      return err({ error: UNAVAILABLE, rates: null });
    },
    async renew(reservation) {
      const reply = await call(reservation.receipt.workspace, null, { type: 'renew', reservation });
      if (reply?.decision.type !== 'renewed') return 'unreachable';
      return reply.decision.go ? 'go' : 'stop';
    },
    async settle(reservation) {
      const reply = await call(reservation.receipt.workspace, null, { type: 'settle', reservation });
      return reply?.decision.type === 'settled';
    },
    async release(workspace, id) {
      const reply = await call(workspace, null, { type: 'release', id });
      return reply?.decision.type === 'released';
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
    async readAccount(query) {
      try {
        const asking = open(query.workspace, null).readAccount({ v: LEDGER_CALL_VERSION, query });
        const reply = await withDeadline(asking, deadlineMs, () => undefined);
        return reply === 'deadline' || reply.account === null ? err(UNAVAILABLE) : ok(reply.account);
      } catch (error) {
        log({ event: 'ledger_unreachable', workspace: query.workspace, command: 'readAccount', fault: String(error) });
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
