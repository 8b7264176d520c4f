// GET /v1/credits: what the workspace has left, holds and has spent, and what is left of its limits (SPEC §9). The ledger
// knows; nothing is counted here.

import { type Caller, readLimits } from '../core/api-key.ts';
import { type GatewayError } from '../core/errors.ts';
import { toCreditsObject } from '../core/ledger-account.ts';
import { ok, type Result } from '../core/result.ts';
import { type Ports } from './ports.ts';

/** The account of the caller's workspace. */
export async function readCredits(ports: Ports, caller: Caller): Promise<Result<unknown, GatewayError>> {
  const account = await ports.ledger.readAccount({
    workspace: caller.workspaceId,
    key: caller.keyId,
    ...readLimits(caller, ports.settings.defaultLimits),
  });
  return account.ok ? ok(toCreditsObject(account.value, caller.billing)) : account;
}
