// What the upstream bodies of chat and text completions have in common: the client's own text with single fields set or
// removed (SPEC §4). What is not named leaves as it came.

import { editObjectField } from '../core/json-body.ts';
import { applyJsonEdits, editMembers } from '../core/json-edit.ts';
import { readObject } from '../core/json-read.ts';
import { type InferencePath, type Backend } from '../core/model-catalog.ts';
import { type InferenceRequest } from './endpoint.ts';
import { passesUnchanged } from './native-form.ts';
import { ENGINE_QUIRKS, type EngineQuirks, GATEWAY_OWNED_FIELDS } from './engine-quirks.ts';

/** Per field its new value as JSON text, or null to remove it. */
export type FieldChanges = Map<string, string | null>;

/**
 * The changes every request needs: model, nulls, owned fields, unknown fields by policy, usage in the stream, the limit,
 * sampling by policy.
 *
 * @param known The fields of this endpoint; under `unknown_fields: drop` no other goes up.
 */
export function buildCommonChanges(
  request: InferenceRequest,
  backend: Backend,
  path: InferencePath,
  known: ReadonlySet<string>,
): FieldChanges {
  const { body } = request;
  const quirks = ENGINE_QUIRKS[backend.engine];
  const changes: FieldChanges = new Map();
  const drop = request.resolved.model.policy.unknown_fields === 'drop';
  for (const { key } of body.pieces) {
    const dropped = drop && !known.has(key);
    if (body.value[key] === null || GATEWAY_OWNED_FIELDS.has(key) || dropped) changes.set(key, null);
  }
  removeOtherSpellings(changes, body.value, quirks, (name) => known.has(name) || GATEWAY_OWNED_FIELDS.has(name));
  changes.set('model', JSON.stringify(backend.upstream_model));
  changeStream(changes, request, backend);
  changeLimit(changes, request, quirks, path);
  changeStop(changes, request, quirks);
  changeSampling(changes, request);
  return changes;
}

/**
 * Removes members that an engine without regard to case would read as one the gateway has checked: what was checked is
 * what counts.
 */
export function removeOtherSpellings(
  changes: FieldChanges,
  members: object,
  quirks: EngineQuirks,
  isKnown: (name: string) => boolean,
): void {
  if (!quirks.foldsNames) return;
  for (const key of Object.keys(members)) {
    const folded = foldName(key);
    if (folded !== key && isKnown(folded)) changes.set(key, null);
  }
}

/** A name without regard to case. Up and down again: ſ and the Kelvin sign fold to s and k, as they do for Go. */
function foldName(name: string): string {
  return name.toUpperCase().toLowerCase();
}

/** The client's text with the changes made. */
export function applyFieldChanges({ body }: InferenceRequest, changes: FieldChanges): string {
  return applyJsonEdits(body.text, editMembers(body.text, body.open, body.pieces, changes));
}

/** The gateway-owned fields a request carries, for the log. */
export function listOwnedFields({ body }: InferenceRequest): readonly string[] {
  return body.pieces.map(({ key }) => key).filter((key) => GATEWAY_OWNED_FIELDS.has(foldName(key)));
}

/** Usage is always asked for, and on each chunk where the engine can; what the client did not ask for is removed later. */
function changeStream(changes: FieldChanges, request: InferenceRequest, backend: Backend): void {
  const quirks = ENGINE_QUIRKS[backend.engine];
  if (!request.stream) {
    changes.set('stream_options', null);
    return;
  }
  // A client that does not stream is none of the engine's business where the gateway puts the answer together.
  if (request.body.value['stream'] !== true) changes.set('stream', 'true');
  // What the client would see goes up only where it is taken out again.
  const counted = request.resolved.model.runningCounts && !passesUnchanged(request, backend);
  const running = counted ? quirks.runningCounts : null;
  const counts = running === 'continuous_usage_stats' ? 'true' : null;
  const options: FieldChanges = new Map([
    ['include_usage', 'true'],
    ['continuous_usage_stats', counts],
  ]);
  removeOtherSpellings(options, readObject(request.body.value['stream_options']), quirks, (name) => options.has(name));
  changes.set('stream_options', editObjectField(request.body, 'stream_options', options));
  if (running === 'timings_per_token') changes.set('timings_per_token', 'true');
}

/**
 * One limit, under the one name every engine knows; the newer name is removed. Without a limit the rest of the context
 * is asked for, in the way the engine knows.
 */
function changeLimit(
  changes: FieldChanges,
  request: InferenceRequest,
  quirks: EngineQuirks,
  path: InferencePath,
): void {
  changes.set('max_completion_tokens', null);
  changes.set('max_tokens', request.outputLimit === null ? null : String(request.outputLimit));
  if (request.outputLimit !== null || path !== '/v1/completions') return;
  if (quirks.omittedTextLimit === 'null') changes.set('max_tokens', 'null');
  const { contextLength } = request.resolved.model;
  if (quirks.omittedTextLimit === 'rest' && contextLength !== null) {
    changes.set('max_tokens', String(Math.max(1, contextLength - request.promptTokensMax)));
  }
}

/** A single stop sequence as a list of one, where the engine knows lists only. */
function changeStop(changes: FieldChanges, { body }: InferenceRequest, quirks: EngineQuirks): void {
  const { stop } = body.value;
  if (!quirks.stopIsList || typeof stop !== 'string') return;
  const piece = body.pieces.find(({ key }) => key === 'stop');
  if (piece !== undefined) changes.set('stop', `[${body.text.slice(piece.valueStart, piece.valueEnd)}]`);
}

/** A policy may say that what is omitted is 1, whatever the engine would take. */
export function changeSampling(changes: FieldChanges, { body, resolved }: InferenceRequest): void {
  if (resolved.model.policy.omitted_sampling !== 'one') return;
  for (const field of ['temperature', 'top_p']) {
    if ((body.value[field] ?? null) === null) changes.set(field, '1');
  }
}
