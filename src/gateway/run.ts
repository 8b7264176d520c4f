// One admitted request while it runs: what is known of it, how it may end, and the receipt that follows from both.
// Pure bookkeeping; the relay fills it in, the account is closed with it.

import { type GatewayError, type UpstreamFailure } from '../core/errors.ts';
import { toOpenAIError } from '../core/openai-error.ts';
import { type Reservation } from '../core/ledger-types.ts';
import { buildReceipt, type Receipt, type ReceiptStatus } from '../core/receipt.ts';
import { NO_USAGE } from '../core/usage.ts';
import { type Progress } from '../openai/endpoint.ts';

/** How a request ended. `release`: nothing went up and nothing is owed. */
export type RunEnd =
  | { readonly type: 'refused' }
  | { readonly type: 'release' }
  | { readonly type: 'finished' }
  | { readonly type: 'failed'; readonly error: GatewayError; readonly detail: string }
  | { readonly type: 'client_gone' };

/** The end of a request whose engine failed it. `detail` is for the log. */
export function buildUpstreamEnd(failure: UpstreamFailure, detail: string): RunEnd {
  return { type: 'failed', error: { kind: 'upstream', failure }, detail };
}

/** A cut is told to a client that has seen nothing as the engine's failure (SPEC §3: other codes are for streams). */
export function toAnswerableEnd(end: RunEnd): RunEnd {
  const cut: GatewayError = { kind: 'upstream', failure: 'upstream_error' };
  const isCut = end.type === 'failed' && end.error.kind === 'upstream' && end.error.failure === 'upstream_disconnected';
  return isCut ? { type: 'failed', error: cut, detail: end.detail } : end;
}

/** What is known so far. */
export type Run = {
  /** Replaced once, when the ledger admits less than was asked for. */
  reservation: Reservation;
  /** Gateway-owned fields that the client sent and the engine did not get; named in the log. */
  readonly droppedFields: readonly string[];
  backend: string | null;
  upstreamModel: string;
  attempts: number;
  firstTokenAtMs: number | null;
  /** Whether a 200 has been sent. */
  committed: boolean;
  /** The answer's progress; replaced with each attempt. */
  progress: () => Progress;
};

const NO_PROGRESS: Progress = {
  usage: NO_USAGE,
  usageSource: 'none',
  finishReason: null,
  completionId: null,
  servedModel: null,
  started: false,
};

/** A run about which nothing is known but its reservation. */
export function createRun(reservation: Reservation, droppedFields: readonly string[]): Run {
  return {
    reservation,
    droppedFields,
    backend: null,
    upstreamModel: reservation.receipt.upstream_model,
    attempts: 0,
    firstTokenAtMs: null,
    committed: false,
    progress: () => NO_PROGRESS,
  };
}

/** The reservation with its receipt as it stands: counts so far, in progress. */
export function buildRunningReservation(run: Run): Reservation {
  return withReceipt(run, { status: 'in_progress', httpStatus: null, errorCode: null, endedAtMs: null });
}

/** The reservation with its closed receipt. */
export function buildClosedReservation(run: Run, end: RunEnd, nowMs: number): Reservation {
  return withReceipt(run, { ...readEnd(run, end), endedAtMs: nowMs });
}

type End = { readonly status: ReceiptStatus; readonly httpStatus: number | null; readonly errorCode: string | null };

function readEnd(run: Run, end: RunEnd): End {
  switch (end.type) {
    case 'finished': {
      const reason = run.progress().finishReason;
      const cutShort = reason === 'length' || reason === 'content_filter';
      return { status: cutShort ? 'incomplete' : 'completed', httpStatus: 200, errorCode: null };
    }
    case 'client_gone':
      return { status: 'interrupted', httpStatus: run.committed ? 200 : 499, errorCode: null };
    case 'failed': {
      const { status, body } = toOpenAIError(end.error);
      return { status: 'failed', httpStatus: run.committed ? 200 : status, errorCode: body.error.code };
    }
    case 'refused':
    case 'release':
      return { status: 'failed', httpStatus: null, errorCode: null };
  }
}

function withReceipt(run: Run, end: End & { readonly endedAtMs: number | null }): Reservation {
  const progress = run.progress();
  const receipt: Receipt = buildReceipt(run.reservation.receipt, {
    served_model: progress.servedModel,
    upstream_model: run.upstreamModel,
    backend: run.backend,
    attempts: run.attempts,
    status: end.status,
    http_status: end.httpStatus,
    error_code: end.errorCode,
    finish_reason: progress.finishReason,
    usage: progress.usage,
    usage_source: progress.usageSource,
    first_token_at: toIso(run.firstTokenAtMs),
    ended_at: toIso(end.endedAtMs),
    completion_id: progress.completionId,
  });
  return { ...run.reservation, receipt };
}

function toIso(timeMs: number | null): string | null {
  return timeMs === null ? null : new Date(timeMs).toISOString();
}
