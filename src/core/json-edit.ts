// Edits a JSON text by field without rebuilding it: what is not edited leaves as it came, to the byte (number spelling,
// escapes, order, white space). It finds spans only; the text must already have passed JSON.parse.

/** One member of an object or element of an array. `start`…`end` is its piece between commas, white space included. */
export type JsonPiece = {
  /** The decoded key; '' for an array's element. */
  readonly key: string;
  readonly start: number;
  readonly valueStart: number;
  readonly valueEnd: number;
  readonly end: number;
};

/** A replacement of `start`…`end` by `text`. */
export type JsonEdit = { readonly start: number; readonly end: number; readonly text: string };

const QUOTE = 0x22;
const BACKSLASH = 0x5c;
const OPEN_BRACE = 0x7b;
const CLOSE_BRACE = 0x7d;
const OPEN_BRACKET = 0x5b;
const CLOSE_BRACKET = 0x5d;
const COMMA = 0x2c;
const COLON = 0x3a;

/** Whether arrays and objects are nested at most `depthMax` deep. Linear, without recursion. */
export function checkJsonDepth(text: string, depthMax: number): boolean {
  let depth = 0;
  for (let at = 0; at < text.length; at += 1) {
    const code = text.charCodeAt(at);
    if (code === QUOTE) at = findStringEnd(text, at) - 1;
    else if (code === OPEN_BRACE || code === OPEN_BRACKET) {
      depth += 1;
      if (depth > depthMax) return false;
    } else if (code === CLOSE_BRACE || code === CLOSE_BRACKET) depth -= 1;
  }
  return true;
}

/**
 * The members of the object, or elements of the array, that begins at or after `from` in a valid JSON text.
 *
 * @returns none when the value there is neither.
 */
export function readJsonPieces(text: string, from: number): readonly JsonPiece[] {
  const open = skipSpace(text, from);
  const isObject = text.charCodeAt(open) === OPEN_BRACE;
  if (!isObject && text.charCodeAt(open) !== OPEN_BRACKET) return [];
  const pieces: JsonPiece[] = [];
  let start = open + 1;
  for (;;) {
    let at = skipSpace(text, start);
    if (isCloser(text.charCodeAt(at))) return pieces;
    let key = '';
    if (isObject) {
      const keyEnd = findStringEnd(text, at);
      key = decodeString(text.slice(at, keyEnd));
      at = skipSpace(text, skipSpace(text, keyEnd) + 1);
    }
    const valueEnd = findValueEnd(text, at);
    const end = skipSpace(text, valueEnd);
    pieces.push({ key, start, valueStart: at, valueEnd, end });
    if (text.charCodeAt(end) !== COMMA) return pieces;
    start = end + 1;
  }
}

/** A key that an object has twice, once decoded (`"mod\u0065l"` is `model`); null if there is none. */
export function findDuplicateKey(pieces: readonly JsonPiece[]): string | null {
  const seen = new Set<string>();
  for (const { key } of pieces) {
    if (seen.has(key)) return key;
    seen.add(key);
  }
  return null;
}

/**
 * The edits that set and remove members of one object. A key that is there keeps its place, a new one goes to the end.
 *
 * @param pieces All members of the object, as {@link readJsonPieces} gave them.
 * @param changes Per key the new value as JSON text, or null to remove the member.
 * @param open Where the object's `{` stands.
 */
export function editMembers(
  text: string,
  open: number,
  pieces: readonly JsonPiece[],
  changes: ReadonlyMap<string, string | null>,
): readonly JsonEdit[] {
  const kept = pieces.filter((piece) => changes.get(piece.key) !== null);
  const added = [...changes].filter(([key, value]) => value !== null && !pieces.some((piece) => piece.key === key));
  if (kept.length === pieces.length && added.length === 0) {
    return pieces.flatMap((piece) => {
      const value = changes.get(piece.key);
      return typeof value === 'string' ? [{ start: piece.valueStart, end: piece.valueEnd, text: value }] : [];
    });
  }
  const members = kept.map((piece) => {
    const value = changes.get(piece.key);
    return typeof value === 'string'
      ? text.slice(piece.start, piece.valueStart) + value + text.slice(piece.valueEnd, piece.end)
      : text.slice(piece.start, piece.end);
  });
  for (const [key, value] of added) members.push(`${JSON.stringify(key)}:${value}`);
  const inner = text.charCodeAt(open) === OPEN_BRACE ? open + 1 : open;
  return [{ start: inner, end: pieces.at(-1)?.end ?? inner, text: members.join(',') }];
}

/** Applies edits that do not overlap, in any order. */
export function applyJsonEdits(text: string, edits: readonly JsonEdit[]): string {
  let result = '';
  let from = 0;
  for (const edit of edits.toSorted((left, right) => left.start - right.start)) {
    result += text.slice(from, edit.start) + edit.text;
    from = edit.end;
  }
  return result + text.slice(from);
}

/** The index just behind the string whose opening quote is at `at`. Linear however many escapes there are. */
function findStringEnd(text: string, at: number): number {
  for (let close = text.indexOf('"', at + 1); close !== -1; close = text.indexOf('"', close + 1)) {
    let escapes = 0;
    while (text.charCodeAt(close - 1 - escapes) === BACKSLASH) escapes += 1;
    if (escapes % 2 === 0) return close + 1;
  }
  return text.length;
}

function findValueEnd(text: string, from: number): number {
  const first = text.charCodeAt(from);
  if (first === QUOTE) return findStringEnd(text, from);
  const nested = first === OPEN_BRACE || first === OPEN_BRACKET;
  let depth = 0;
  for (let at = from; at < text.length; at += 1) {
    const code = text.charCodeAt(at);
    if (code === QUOTE) at = findStringEnd(text, at) - 1;
    else if (code === OPEN_BRACE || code === OPEN_BRACKET) depth += 1;
    else if (isCloser(code)) {
      if (!nested) return at;
      depth -= 1;
      if (depth === 0) return at + 1;
    } else if (!nested && (code === COMMA || code === COLON || isSpace(code))) return at;
  }
  return text.length;
}

function decodeString(literal: string): string {
  const value: unknown = literal.includes('\\') ? JSON.parse(literal) : literal.slice(1, -1);
  return typeof value === 'string' ? value : '';
}

function skipSpace(text: string, from: number): number {
  let at = from;
  while (isSpace(text.charCodeAt(at))) at += 1;
  return at;
}

function isSpace(code: number): boolean {
  return code === 0x20 || code === 0x0a || code === 0x0d || code === 0x09;
}

function isCloser(code: number): boolean {
  return code === CLOSE_BRACE || code === CLOSE_BRACKET;
}
