// The upstream body of a Responses request for an engine that has the endpoint itself (SPEC §8): the client's own text with
// single fields set or removed, as for chat.

import { editListField, editObjectField } from '../core/json-body.ts';
import { editMembers, readJsonPieces } from '../core/json-edit.ts';
import { readObject } from '../core/json-read.ts';
import { type Backend } from '../core/model-catalog.ts';
import { type InferenceRequest } from './endpoint.ts';
import { ENGINE_QUIRKS, GATEWAY_OWNED_FIELDS } from './engine-quirks.ts';
import { toEngineReasoning } from './reasoning.ts';
import { isAbsent, RESPONSES_FIELDS, UNSERVED_FIELDS } from './responses-fields.ts';
import { applyFieldChanges, changeSampling, type FieldChanges, removeOtherSpellings } from './upstream-body.ts';

/** Fields that are for the gateway and its callers only. */
const WITHOUT_EFFECT = [
  'background',
  'metadata',
  'prompt_cache_key',
  'safety_identifier',
  'service_tier',
  'stream_options',
  'top_logprobs',
  'truncation',
  'user',
];
const KNOWN: ReadonlySet<string> = new Set([...RESPONSES_FIELDS, ...UNSERVED_FIELDS.keys()]);
const isKnown = (name: string): boolean => KNOWN.has(name) || GATEWAY_OWNED_FIELDS.has(name);

/** The upstream body of a Responses request for one backend. */
export function toNativeUpstreamBody(request: InferenceRequest, backend: Backend): string {
  const { body, resolved, outputLimit } = request;
  const changes: FieldChanges = new Map();
  const drop = resolved.model.policy.unknown_fields === 'drop';
  for (const { key } of body.pieces) {
    const value = body.value[key];
    const empty = RESPONSES_FIELDS.has(key) ? isAbsent(value) : value === null;
    const gone = empty || GATEWAY_OWNED_FIELDS.has(key) || UNSERVED_FIELDS.has(key);
    if (gone || (drop && !KNOWN.has(key))) changes.set(key, null);
  }
  removeOtherSpellings(changes, body.value, ENGINE_QUIRKS[backend.engine], isKnown);
  for (const field of WITHOUT_EFFECT) changes.set(field, null);
  changes.set('model', JSON.stringify(backend.upstream_model));
  changes.set('store', 'false');
  if (request.stream && body.value['stream'] !== true) changes.set('stream', 'true');
  changes.set('max_output_tokens', outputLimit === null ? null : String(outputLimit));
  changeSampling(changes, request);
  changeReasoning(changes, request);
  changeTools(changes, request);
  if (backend.developer_role === 'system') changeRoles(changes, request);
  return applyFieldChanges(request, changes);
}

function changeReasoning(changes: FieldChanges, { body, resolved, effort }: InferenceRequest): void {
  const reasoning = toEngineReasoning(body.value, resolved.model, effort);
  changes.set('reasoning', reasoning.form === 'field' ? JSON.stringify({ effort: reasoning.effort }) : null);
  if (reasoning.form !== 'kwarg') return;
  const kwarg = new Map([[reasoning.name, String(reasoning.on)]]);
  changes.set('chat_template_kwargs', editObjectField(body, 'chat_template_kwargs', kwarg));
}

/** Function tools only, as the client spelled them; no tool fields at all where there are none. */
function changeTools(changes: FieldChanges, { body }: InferenceRequest): void {
  const tools: unknown = body.value['tools'];
  const piece = body.pieces.find(({ key }) => key === 'tools');
  const kept =
    piece === undefined || !Array.isArray(tools)
      ? []
      : readJsonPieces(body.text, piece.valueStart).filter((_, at) => readObject(tools[at])['type'] === 'function');
  if (kept.length === 0) for (const field of ['tools', 'tool_choice', 'parallel_tool_calls']) changes.set(field, null);
  else if (Array.isArray(tools) && kept.length < tools.length) {
    changes.set(
      'tools',
      `[${kept.map(({ valueStart, valueEnd }) => body.text.slice(valueStart, valueEnd)).join(',')}]`,
    );
  }
}

function changeRoles(changes: FieldChanges, { body }: InferenceRequest): void {
  const input = editListField(body, 'input', (item, text, at) => {
    const isDeveloper = readObject(item)['role'] === 'developer';
    return isDeveloper ? editMembers(text, at, readJsonPieces(text, at), new Map([['role', '"system"']])) : [];
  });
  if (input !== null) changes.set('input', input);
}
