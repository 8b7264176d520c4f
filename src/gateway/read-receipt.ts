// GET /v1/receipts/{request_id}: the ledger's row first, which is there from the moment the id was returned, then the
// record in D1 (SPEC §9). Another key's receipt needs receipts:read; another workspace's does not exist.

import { type Caller } from '../core/api-key.ts';
import { type GatewayError } from '../core/errors.ts';
import { toReceiptObject } from '../core/receipt.ts';
import { err, ok, type Result } from '../core/result.ts';
import { type Ports } from './ports.ts';

const REQUEST_ID = /^req_[0-9a-z]{1,64}$/;

/** One receipt of the caller's. */
export async function readReceipt(ports: Ports, caller: Caller, id: string): Promise<Result<unknown, GatewayError>> {
  const notFound = err<GatewayError>({ kind: 'receipt_not_found' });
  if (!REQUEST_ID.test(id)) return notFound;
  const held = await ports.ledger.findReceipt(caller.workspaceId, id);
  const found = held.ok && held.value !== null ? held : await ports.receipts.find(caller.workspaceId, id);
  if (!found.ok) return found;
  // The record alone cannot say that there is no such receipt while the ledger is out of reach.
  if (found.value === null) return held.ok ? notFound : held;
  const own = found.value.key === caller.keyId || caller.scopes.includes('receipts:read');
  return own ? ok(toReceiptObject(found.value)) : notFound;
}
