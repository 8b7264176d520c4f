// The upstream body of a chat request: the common edits, and those of reasoning, tools, formats and messages (SPEC §4).

import { editListField, editObjectField, type JsonBody } from '../core/json-body.ts';
import { applyJsonEdits, editMembers, type JsonEdit, type JsonPiece, readJsonPieces } from '../core/json-edit.ts';
import { type Backend } from '../core/model-catalog.ts';
import { CHAT_FIELDS } from './chat-fields.ts';
import { type InferenceRequest } from './endpoint.ts';
import { ENGINE_QUIRKS, type EngineQuirks } from './engine-quirks.ts';
import { toEngineReasoning } from './reasoning.ts';
import { applyFieldChanges, buildCommonChanges, type FieldChanges, removeOtherSpellings } from './upstream-body.ts';

/** Optional members one level down: null means absent there too. A message's content is not among them. */
const OPTIONAL_IN_MESSAGE = ['name', 'tool_calls', 'tool_call_id', 'reasoning', 'reasoning_content'];
const IN_MESSAGE = new Set(['role', 'content', ...OPTIONAL_IN_MESSAGE]);
const OPTIONAL_IN_FUNCTION = new Set(['description', 'parameters', 'strict']);
const OPTIONAL_IN_FORMAT = new Set(['json_schema']);
const OPTIONAL_IN_SCHEMA = new Set(['schema', 'strict']);

/** The upstream body of a chat request for one backend. */
export function toChatUpstreamBody(request: InferenceRequest, backend: Backend): string {
  const changes = buildCommonChanges(request, backend, '/v1/chat/completions', CHAT_FIELDS);
  changeReasoning(changes, request);
  changeTools(changes, request);
  changeFormat(changes, request);
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
    // The caller's own keys stay to the letter.
    const kwarg = new Map([[reasoning.name, String(reasoning.on)]]);
    changes.set('chat_template_kwargs', editObjectField(body, 'chat_template_kwargs', kwarg));
  }
}

/** Roles and reasoning on messages, named as the engine reads them; null when nothing changes. */
function editMessages(body: JsonBody, backend: Backend, quirks: EngineQuirks): string | null {
  return editListField(body, 'messages', (message, text, at) => {
    const changes = readMessageChanges(message, backend, quirks, (name) => {
      const piece = readJsonPieces(text, at).findLast(({ key }) => key === name);
      return piece === undefined ? null : text.slice(piece.valueStart, piece.valueEnd);
    });
    return changes === null ? [] : editMembers(text, at, readJsonPieces(text, at), changes);
  });
}

/**
 * Tools without nulls, without `strict` where the model has no strict tools (SPEC §4), and no tool fields at all where the list is
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
  const edited = editListField(body, 'tools', (_tool, text, at) => {
    const inner = readJsonPieces(text, at).filter(({ key }) => key === 'function');
    return inner.flatMap(({ valueStart }) =>
      removeMembers(text, valueStart, (member) => {
        return (member.key === 'strict' && !capabilities.strict_tools) || isNull(text, member, OPTIONAL_IN_FUNCTION);
      }),
    );
  });
  if (edited !== null) changes.set('tools', edited);
}

/** A response format without the nulls in it and in its schema. */
function changeFormat(changes: FieldChanges, { body, resolved }: InferenceRequest): void {
  const format = findPiece(body.pieces, 'response_format');
  if (format === undefined || resolved.model.policy.checked_fields === 'listed') return;
  const text = body.text.slice(format.valueStart, format.valueEnd);
  const outer = removeMembers(text, 0, (member) => isNull(text, member, OPTIONAL_IN_FORMAT));
  const schema = outer.length > 0 ? undefined : findPiece(readJsonPieces(text, 0), 'json_schema');
  const inner =
    schema === undefined
      ? []
      : removeMembers(text, schema.valueStart, (member) => isNull(text, member, OPTIONAL_IN_SCHEMA));
  const edits = [...outer, ...inner];
  if (edits.length > 0) changes.set('response_format', applyJsonEdits(text, edits));
}

function isNull(text: string, { key, valueStart }: JsonPiece, optional: ReadonlySet<string>): boolean {
  return optional.has(key) && text.startsWith('null', valueStart);
}

/** The edits that remove those members of the object at `at` that a rule picks. */
function removeMembers(text: string, at: number, isGone: (member: JsonPiece) => boolean): readonly JsonEdit[] {
  const members = readJsonPieces(text, at);
  const gone = members.filter(isGone);
  return gone.length === 0 ? [] : editMembers(text, at, members, new Map(gone.map(({ key }) => [key, null])));
}

/** @param readText The text of a member as it was spelled. */
function readMessageChanges(
  message: unknown,
  backend: Backend,
  quirks: EngineQuirks,
  readText: (name: string) => string | null,
): FieldChanges | null {
  if (typeof message !== 'object' || message === null || !('role' in message)) return null;
  const changes: FieldChanges = new Map();
  for (const name of OPTIONAL_IN_MESSAGE) if (Reflect.get(message, name) === null) changes.set(name, null);
  removeOtherSpellings(changes, message, quirks, (name) => IN_MESSAGE.has(name));
  if (message.role === 'developer' && backend.developer_role === 'system') changes.set('role', '"system"');
  if (message.role === 'assistant' && quirks.reasoningIn !== null) {
    const spare = quirks.reasoningIn === 'reasoning' ? 'reasoning_content' : 'reasoning';
    if (Reflect.has(message, spare)) {
      changes.set(spare, null);
      const own: unknown = Reflect.get(message, quirks.reasoningIn) ?? null;
      const moves = own === null && typeof Reflect.get(message, spare) === 'string';
      if (moves) changes.set(quirks.reasoningIn, readText(spare));
    }
  }
  return changes.size === 0 ? null : changes;
}

function findPiece(pieces: readonly JsonPiece[], key: string): JsonPiece | undefined {
  return pieces.find((piece) => piece.key === key);
}
