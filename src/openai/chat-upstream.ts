// The upstream body of a chat request: the common edits, and those of reasoning, sampling and messages (SPEC §4).

import { type JsonBody } from '../core/json-body.ts';
import { applyJsonEdits, editMembers, type JsonEdit, type JsonPiece, readJsonPieces } from '../core/json-edit.ts';
import { type Backend } from '../core/model-catalog.ts';
import { CHAT_FIELDS } from './chat-fields.ts';
import { type InferenceRequest } from './endpoint.ts';
import { ENGINE_QUIRKS, type EngineQuirks } from './engine-quirks.ts';
import { toEngineReasoning } from './reasoning.ts';
import { applyFieldChanges, buildCommonChanges, type FieldChanges } from './upstream-body.ts';

/** The upstream body of a chat request for one backend. */
export function toChatUpstreamBody(request: InferenceRequest, backend: Backend): string {
  const changes = buildCommonChanges(request, backend, '/v1/chat/completions', CHAT_FIELDS);
  changeReasoning(changes, request);
  changeSampling(changes, request);
  changeTools(changes, request);
  const messages = editMessages(request.body, backend, ENGINE_QUIRKS[backend.engine]);
  if (messages !== null) changes.set('messages', messages);
  return applyFieldChanges(request, changes);
}

function changeReasoning(changes: FieldChanges, request: InferenceRequest): void {
  changes.set('reasoning', null);
  changes.set('reasoning_effort', null);
  const { body, resolved, effort } = request;
  const reasoning = toEngineReasoning(body.value, resolved.model, effort);
  if (reasoning.form === 'field') changes.set('reasoning_effort', JSON.stringify(reasoning.effort));
  if (reasoning.form === 'kwarg') {
    changes.set('chat_template_kwargs', addTemplateKwarg(body, reasoning.name, String(reasoning.on)));
  }
}

function changeSampling(changes: FieldChanges, request: InferenceRequest): void {
  if (request.resolved.model.policy.omitted_sampling !== 'one') return;
  for (const field of ['temperature', 'top_p']) {
    if ((request.body.value[field] ?? null) === null) changes.set(field, '1');
  }
}

/** The caller's chat_template_kwargs, to the letter, with one more key. */
function addTemplateKwarg(body: JsonBody, name: string, value: string): string {
  const own = findPiece(body.pieces, 'chat_template_kwargs');
  const text = own === undefined ? '' : body.text.slice(own.valueStart, own.valueEnd);
  if (!text.startsWith('{')) return `{${JSON.stringify(name)}:${value}}`;
  return applyJsonEdits(text, editMembers(text, 0, readJsonPieces(text, 0), new Map([[name, value]])));
}

/** Roles and reasoning on messages, named as the engine reads them; null when nothing changes. */
function editMessages(body: JsonBody, backend: Backend, quirks: EngineQuirks): string | null {
  return editItems(body, 'messages', (message, text, at) => {
    const changes = readMessageChanges(message, backend, quirks);
    return changes === null ? [] : editMembers(text, at, readJsonPieces(text, at), changes);
  });
}

/**
 * Tools without `strict` where the model has no strict tools (SPEC §4), and no tool fields at all where the list is
 * empty: it asks for nothing, and engines refuse it. Fields the policy does not check are not touched.
 */
function changeTools(changes: FieldChanges, { body, resolved }: InferenceRequest): void {
  const { policy, capabilities } = resolved.model;
  const tools = body.value['tools'];
  if (policy.checked_fields === 'listed') return;
  if (!Array.isArray(tools) || tools.length === 0) {
    for (const field of ['tools', 'tool_choice', 'parallel_tool_calls']) changes.set(field, null);
    return;
  }
  if (capabilities.strict_tools) return;
  const loose = editItems(body, 'tools', (_tool, text, at) => {
    const inner = readJsonPieces(text, at).filter(({ key }) => key === 'function');
    return inner.flatMap(({ valueStart }) => {
      const members = readJsonPieces(text, valueStart);
      const strict = members.some(({ key }) => key === 'strict');
      return strict ? editMembers(text, valueStart, members, new Map([['strict', null]])) : [];
    });
  });
  if (loose !== null) changes.set('tools', loose);
}

type EditItem = (item: unknown, text: string, at: number) => readonly JsonEdit[];

/** A top-level list with edits made to its items, as JSON text; null when nothing changes. */
function editItems(body: JsonBody, key: string, edit: EditItem): string | null {
  const list = findPiece(body.pieces, key);
  const items = body.value[key];
  if (list === undefined || !Array.isArray(items)) return null;
  const text = body.text.slice(list.valueStart, list.valueEnd);
  const edits = readJsonPieces(text, 0).flatMap(({ valueStart }, index) => edit(items[index], text, valueStart));
  return edits.length === 0 ? null : applyJsonEdits(text, edits);
}

function readMessageChanges(message: unknown, backend: Backend, quirks: EngineQuirks): FieldChanges | null {
  if (typeof message !== 'object' || message === null || !('role' in message)) return null;
  const changes: FieldChanges = new Map();
  if (message.role === 'developer' && backend.developer_role === 'system') changes.set('role', '"system"');
  if (message.role === 'assistant' && quirks.reasoningIn !== null) {
    const spare = quirks.reasoningIn === 'reasoning' ? 'reasoning_content' : 'reasoning';
    const wanted: unknown = Reflect.get(message, quirks.reasoningIn) ?? Reflect.get(message, spare);
    if (Reflect.has(message, spare)) {
      changes.set(spare, null);
      if (typeof wanted === 'string') changes.set(quirks.reasoningIn, JSON.stringify(wanted));
    }
  }
  return changes.size === 0 ? null : changes;
}

function findPiece(pieces: readonly JsonPiece[], key: string): JsonPiece | undefined {
  return pieces.find((piece) => piece.key === key);
}
