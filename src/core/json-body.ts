// A request body as text and value at once: the value is for reading, the text is what goes upstream, edited by field.

import {
  applyJsonEdits,
  checkJsonDepth,
  editMembers,
  findDuplicateKey,
  type JsonEdit,
  type JsonPiece,
  readJsonPieces,
} from './json-edit.ts';
import { type JsonObject, parseJsonObject } from './json-read.ts';
import { type GatewayError } from './errors.ts';
import { err, ok, type Result } from './result.ts';

/** A JSON object with its text. `open` is where its `{` stands; `pieces` are its members. */
export type JsonBody = {
  readonly text: string;
  /** The size it came in. */
  readonly bytes: number;
  readonly value: JsonObject;
  readonly open: number;
  readonly pieces: readonly JsonPiece[];
};

const DEPTH_MAX = 128;
/** Objects one level down in which a doubled key could carry a second meaning past a check. */
const GUARDED_OBJECTS = new Set(['stream_options', 'reasoning', 'chat_template_kwargs']);

/**
 * Parses a request body. Refuses what SPEC §3 calls invalid_json: not UTF-8, not JSON, not an object, nested over 128
 * deep, a key twice at the top level or in an object the gateway edits. A byte order mark is dropped.
 */
export function parseJsonBody(bytes: Uint8Array): Result<JsonBody, GatewayError> {
  const text = decodeUtf8(bytes);
  if (text === null) return refuse('The body of your request is not valid UTF-8.');
  const value = parseJsonObject(text);
  if (value === null) return refuse('We could not parse the JSON body of your request. Send one JSON object.');
  if (!checkJsonDepth(text, DEPTH_MAX))
    return refuse(`The JSON body of your request is nested over ${DEPTH_MAX} deep.`);
  const pieces = readJsonPieces(text, 0);
  const guarded = pieces.filter(({ key, valueStart }) => GUARDED_OBJECTS.has(key) && text[valueStart] === '{');
  for (const members of [pieces, ...guarded.map(({ valueStart }) => readJsonPieces(text, valueStart))]) {
    const twice = findDuplicateKey(members);
    if (twice !== null) return refuse(`The JSON body of your request has the key '${twice.slice(0, 64)}' twice.`);
  }
  return ok({ text, bytes: bytes.byteLength, value, open: text.indexOf('{'), pieces });
}

/**
 * A top-level object with members set or (null) removed, the others to the letter; made anew where the body has none.
 *
 * @returns the object as JSON text.
 */
export function editObjectField(body: JsonBody, key: string, changes: ReadonlyMap<string, string | null>): string {
  const own = body.pieces.find((piece) => piece.key === key);
  const text = own === undefined ? '' : body.text.slice(own.valueStart, own.valueEnd);
  const source = text.startsWith('{') ? text : '{}';
  return applyJsonEdits(source, editMembers(source, 0, readJsonPieces(source, 0), changes));
}

/** The edits of one item of a list: `text` is the whole list's, the item begins at `at`. */
type EditItem = (item: unknown, text: string, at: number) => readonly JsonEdit[];

/** A top-level list with edits made to its items, as JSON text; null when nothing changes. */
export function editListField(body: JsonBody, key: string, edit: EditItem): string | null {
  const list = body.pieces.find((piece) => piece.key === key);
  const items = body.value[key];
  if (list === undefined || !Array.isArray(items)) return null;
  const text = body.text.slice(list.valueStart, list.valueEnd);
  const edits = readJsonPieces(text, 0).flatMap(({ valueStart }, index) => edit(items[index], text, valueStart));
  return edits.length === 0 ? null : applyJsonEdits(text, edits);
}

function decodeUtf8(bytes: Uint8Array): string | null {
  try {
    return new TextDecoder('utf-8', { fatal: true, ignoreBOM: false }).decode(bytes);
  } catch {
    return null;
  }
}

function refuse(reason: string): Result<never, GatewayError> {
  return err({ kind: 'invalid_json', reason });
}
