// The way of one inference request, from its key to its answer: identify, parse, admit, forward, relay. Cheapest
// refusal first, each step a Result (DESIGN of the pipeline: SPEC §3's order, §5's admission, §6's forwarding).

import { type Caller, readLimits } from '../core/api-key.ts';
import { type GatewayError } from '../core/errors.ts';
import { type JsonBody, parseJsonBody } from '../core/json-body.ts';
import { type Reservation } from '../core/ledger-types.ts';
import { resolveModel, type ResolvedModel } from '../core/model-catalog.ts';
import { toPriceVersion } from '../core/price-version.ts';
import { buildOpenReceipt } from '../core/receipt.ts';
import { err, ok, type Result } from '../core/result.ts';
import { type RateSnapshot } from '../core/retry-hints.ts';
import { type Endpoint, type InferenceRequest } from '../openai/endpoint.ts';
import { buildCreditTerms, limitOutput } from '../openai/output-bounds.ts';
import { listOwnedFields } from '../openai/upstream-body.ts';
import { parameterError } from '../openai/parameter-error.ts';
import { type HeldBytes } from './byte-budget.ts';
import { closeAccount } from './close-account.ts';
import { forward } from './forward.ts';
import { type Credentials, identifyCaller } from './identify-caller.ts';
import { type Isolate } from './isolate.ts';
import { type Ports, type Refusal } from './ports.ts';
import { createHalt } from './halt.ts';
import { createRun, type Run, type RunEnd } from './run.ts';

/** A request as it came in. */
export type Inbound = {
  readonly requestId: string;
  readonly receivedAtMs: number;
  readonly credentials: Credentials;
  readonly clientRequestId: string | null;
  /** Bytes of the body as announced; null when not announced. */
  readonly contentLength: number | null;
  /** What the request holds of the isolate's bytes. */
  readonly held: HeldBytes;
  /** Checks type, encoding and size, and reads the body. Never rejects; call once. */
  readonly readBody: () => Promise<Result<Uint8Array, GatewayError>>;
  /** Aborts when the client leaves. */
  readonly signal: AbortSignal;
  /** Keeps the runtime alive behind the answer. */
  readonly waitUntil: (work: Promise<void>) => void;
};

/** What goes back: a stream or a JSON text, with the limits as they stand. */
export type InferenceAnswer = {
  readonly rates: RateSnapshot;
  readonly body: ReadableStream<Uint8Array> | string;
  readonly stream: boolean;
};

/** A refusal; `admitted` says whether a receipt tells of it. */
export type InferenceRefusal = Refusal & { readonly admitted: boolean };

/** Bodies up to this size are read while the key is looked up. */
const EARLY_BODY_BYTES_MAX = 64 * 1024;

/** Handles one request to one inference endpoint. Rejects only for a bug; the account is closed in every case. */
export async function handleInference(
  ports: Ports,
  isolate: Isolate,
  endpoint: Endpoint,
  inbound: Inbound,
): Promise<Result<InferenceAnswer, InferenceRefusal>> {
  const answer = await checkAndForward(ports, isolate, endpoint, inbound);
  if (!answer.ok && !answer.error.admitted) inbound.held.free();
  return answer;
}

async function checkAndForward(
  ports: Ports,
  isolate: Isolate,
  endpoint: Endpoint,
  inbound: Inbound,
): Promise<Result<InferenceAnswer, InferenceRefusal>> {
  const early = (inbound.contentLength ?? Infinity) <= EARLY_BODY_BYTES_MAX ? inbound.readBody() : null;
  const caller = await identifyCaller(ports, inbound.credentials, 'inference:write');
  if (!caller.ok) return refuse(caller.error);
  if (isolate.budget.isSpent()) return refuse({ kind: 'upstream', failure: 'server_is_overloaded' });
  const bytes = await (early ?? inbound.readBody());
  if (!bytes.ok) return refuse(bytes.error);
  const body = parseJsonBody(bytes.value);
  if (!body.ok) return refuse(body.error);
  const resolved = await findModel(ports, endpoint, body.value, caller.value);
  if (!resolved.ok) return refuse(resolved.error);
  const request = endpoint.parseRequest(body.value, resolved.value);
  if (!request.ok) return refuse(request.error);
  return admitAndForward(ports, isolate, endpoint, inbound, caller.value, request.value);
}

/** The model that the body names, if the caller may call it on this endpoint. */
async function findModel(
  ports: Ports,
  endpoint: Endpoint,
  body: JsonBody,
  caller: Caller,
): Promise<Result<ResolvedModel, GatewayError>> {
  const name = body.value['model'];
  if (name === undefined || name === null) {
    return err(parameterError('missing_required_parameter', 'model', "Missing required parameter: 'model'."));
  }
  if (typeof name !== 'string') {
    return err(parameterError('invalid_type', 'model', "Invalid type for 'model': expected a string."));
  }
  const catalog = await ports.catalog.read();
  if (!catalog.ok) return catalog;
  const resolved = resolveModel(catalog.value, name, caller);
  if (!resolved.ok || resolved.value.model.endpoints.includes(endpoint.path)) return resolved;
  return err(parameterError('unsupported_value', 'model', `This model does not support ${endpoint.path}.`));
}

/** Reserves, forwards, and sees to it that the account is closed whatever happens. */
async function admitAndForward(
  ports: Ports,
  isolate: Isolate,
  endpoint: Endpoint,
  inbound: Inbound,
  caller: Caller,
  request: InferenceRequest,
): Promise<Result<InferenceAnswer, InferenceRefusal>> {
  const run = createRun(await buildReservation(ports, endpoint, inbound, caller, request), listOwnedFields(request));
  const ended = Promise.withResolvers<RunEnd>();
  // Registered before the first call leaves: a client that goes now must not take the settlement with it.
  const over = ended.promise.then((end) => {
    inbound.held.free();
    return closeRun(ports, isolate, run, end);
  });
  inbound.waitUntil(over);
  const halt = createHalt();
  inbound.signal.addEventListener('abort', () => halt.halt({ type: 'client_gone' }));
  try {
    const admitted = await admit(ports, isolate, run, caller, request);
    if (!admitted.ok) {
      const late = admitted.error.error.kind === 'limiter_unavailable';
      ended.resolve({ type: late ? 'release' : 'refused' });
      return err({ ...admitted.error, admitted: false });
    }
    if (inbound.signal.aborted) {
      ended.resolve({ type: 'release' });
      return refuse({ kind: 'client_closed_request' });
    }
    const { rates, request: limited } = admitted.value;
    const createdSeconds = Math.floor(inbound.receivedAtMs / 1000);
    const context = { request: limited, requestId: inbound.requestId, createdSeconds, now: ports.now };
    const answer = await forward(
      { ports, endpoint, context, run, halt, held: inbound.held, health: isolate.health },
      ended.resolve,
    );
    return answer.ok
      ? ok({ rates, stream: request.stream, body: answer.value })
      : err({ error: answer.error, rates, admitted: true });
  } catch (bug) {
    ended.resolve({ type: 'failed', error: { kind: 'internal_error' }, detail: String(bug) });
    throw bug;
  }
}

/** Reserves. The request that comes back goes up with the output that was admitted: a small balance may buy less. */
async function admit(
  ports: Ports,
  isolate: Isolate,
  run: Run,
  caller: Caller,
  request: InferenceRequest,
): Promise<Result<{ readonly rates: RateSnapshot; readonly request: InferenceRequest }, Refusal>> {
  const { reservation } = run;
  const admission = await isolate.refusals.reserve(reservation, () =>
    ports.ledger.reserve(reservation, caller.location),
  );
  if (!admission.ok) return admission;
  const { rates, outputLimit } = admission.value;
  if (reservation.credit === undefined) return ok({ rates, request });
  // A ledger that forgets the reservation takes it in again with what was admitted, not with what was asked for.
  if (outputLimit !== null) {
    run.reservation = { ...reservation, credit: { ...reservation.credit, outputTokensMax: outputLimit } };
  }
  return ok({ rates, request: limitOutput(request, outputLimit) });
}

async function closeRun(ports: Ports, isolate: Isolate, run: Run, end: RunEnd): Promise<void> {
  await closeAccount(ports, run, end);
  if (end.type !== 'refused') isolate.refusals.noteClosed(run.reservation);
}

async function buildReservation(
  ports: Ports,
  endpoint: Endpoint,
  inbound: Inbound,
  caller: Caller,
  request: InferenceRequest,
): Promise<Reservation> {
  const { model, requestedModel, revision, backends } = request.resolved;
  return {
    receipt: buildOpenReceipt({
      id: inbound.requestId,
      workspace: caller.workspaceId,
      key: caller.keyId,
      endpoint: endpoint.path,
      requested_model: requestedModel,
      upstream_model: backends[0].upstream_model,
      revision,
      stream: request.stream,
      rates: model.rates,
      price_version: await toPriceVersion(model.rates),
      created_at: new Date(inbound.receivedAtMs).toISOString(),
      client_request_id: inbound.clientRequestId,
      end_user: request.endUser,
    }),
    ...readLimits(caller, ports.settings.defaultLimits),
    promptTokens: request.promptTokens,
    outputTokens: request.outputLimit === null ? null : request.outputLimit * request.choices,
    choices: request.choices,
    leaseMs: ports.settings.leaseMs,
    ...(caller.billing === 'prepaid' ? { credit: buildCreditTerms(request) } : {}),
  };
}

function refuse(error: GatewayError): Result<never, InferenceRefusal> {
  return err({ error, rates: null, admitted: false });
}
