// Closes a request's account once it has ended: one settle (or release) at the ledger, tried again with back-off, and
// one line in the log. Runs after the answer has left (SPEC §5).

import { sleep } from './deadline.ts';
import { type Ports } from './ports.ts';
import { buildClosedReservation, type Run, type RunEnd } from './run.ts';

const FIRST_RETRY_MS = 200;
const RETRY_MS_MAX = 5000;
/** The runtime gives work behind an answer 30 s. */
const RETRYING_MS = 25_000;

/** Settles or releases, until it is durable or time is up; then the whole receipt goes to the log. Never rejects. */
export async function closeAccount(ports: Ports, run: Run, end: RunEnd): Promise<void> {
  if (end.type === 'refused') return;
  const { receipt } = run.reservation;
  if (end.type === 'release') {
    await retry(() => ports.ledger.release(receipt.workspace, receipt.id), ports.now);
    return;
  }
  const closed = buildClosedReservation(run, end, ports.now());
  ports.log({
    event: 'request',
    request_id: receipt.id,
    workspace: receipt.workspace,
    key: receipt.key,
    endpoint: receipt.endpoint,
    model: receipt.requested_model,
    stream: receipt.stream,
    status: closed.receipt.status,
    http_status: closed.receipt.http_status,
    error_code: closed.receipt.error_code,
    detail: end.type === 'failed' ? end.detail : null,
    dropped_fields: run.droppedFields,
    backend: closed.receipt.backend,
    attempts: closed.receipt.attempts,
    input_tokens: closed.receipt.usage.input_tokens,
    output_tokens: closed.receipt.usage.output_tokens,
    usage_source: closed.receipt.usage_source,
    first_token_ms: run.firstTokenAtMs === null ? null : run.firstTokenAtMs - Date.parse(receipt.created_at),
    duration_ms: ports.now() - Date.parse(receipt.created_at),
  });
  const settled = await retry(() => ports.ledger.settle(closed), ports.now);
  if (!settled) ports.log({ event: 'receipt_unsettled', receipt: closed.receipt });
}

async function retry(attempt: () => Promise<boolean>, now: () => number): Promise<boolean> {
  const untilMs = now() + RETRYING_MS;
  for (let waitMs = FIRST_RETRY_MS; ; waitMs = Math.min(waitMs * 2, RETRY_MS_MAX)) {
    if (await attempt()) return true;
    if (now() + waitMs > untilMs) return false;
    await sleep(waitMs);
  }
}
