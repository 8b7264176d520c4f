// Most events of a stream differ from the one before in one string and in counts. From such an event a template is
// made: what stands around the string, in the engine's text and in the client's. Events that fit are translated by
// copying their string; all others go the long way. What fits is translated to the letter as the long way would.

import { isObject, type JsonObject, parseJsonObject } from '../core/json-read.ts';

/** A kind of event. */
export type DeltaTemplate = {
  /** The choice it belongs to. */
  readonly index: number;
  /** The engine's text up to the string, its opening quote included. */
  readonly before: string;
  /** From the closing quote to the counts, or to the end of the event where there are none. */
  readonly after: string;
  /** What stands around the digits of the counts, which is all that may differ in others. */
  readonly counts: { readonly name: CountsName; readonly pattern: readonly string[] } | null;
  /** From the counts to the end of the event; '' where there are none. */
  readonly close: string;
  /** The client's text around the string, which comes between each two of them: at least one part. */
  readonly parts: readonly string[];
  /** Whether the string is part of the answer's text, as reasoning is not. */
  readonly isText: boolean;
};

/** An event that fits: its string as it is spelled, its counts as text, and where it ends. */
export type Alike = { readonly literal: string; readonly counts: string | null; readonly end: number };

const COUNTS_NAMES = ['usage', 'timings'] as const;
export type CountsName = (typeof COUNTS_NAMES)[number];

const DATA = 'data: ';
/** Stands for the string while a template is made; no engine's string is like it. */
export const PLACEHOLDER = 'turnpike template placeholder';
const TEXT_FIELDS = ['content', 'text', 'reasoning', 'reasoning_content', 'refusal'] as const;

// A string's inside, up to what ends it. The escapes are those that JSON.stringify writes, so that a string is spelled
// the same whichever way it goes.
// oxlint-disable-next-line no-control-regex -- JSON allows none in a string
const plainText = /[^"\\\u0000-\u001f]*/y;
// oxlint-disable-next-line no-control-regex -- likewise
const escapedText = /(?:[^"\\\u0000-\u001f]|\\["\\bfnrt])*/y;

/** Where an event's one string is, or null when it has none or several. */
type Found = Pick<DeltaTemplate, 'before' | 'after' | 'counts' | 'close'> & { readonly sample: JsonObject };

/**
 * Splits an event around its string.
 *
 * @param data The data of an event, as it came.
 * @param chunk The same, parsed.
 * @returns Also a chunk in which the placeholder stands for the string.
 */
export function findString(data: string, chunk: JsonObject): Found | null {
  const string = findField(chunk);
  if (string === null || data.includes('\n')) return null;
  const spelled = JSON.stringify(string.value);
  const at = findValue(data, string.name, spelled);
  if (at === -1) return null;
  const before = DATA + data.slice(0, at + 1);
  const rest = data.slice(at + spelled.length - 1);
  const sample = parseJsonObject(before.slice(DATA.length) + PLACEHOLDER + rest);
  // Proof that the string that was found is the one that is meant.
  if (sample === null || findField(sample)?.value !== PLACEHOLDER) return null;
  const names = COUNTS_NAMES.filter((name) => isObject(chunk[name]));
  const [name] = names;
  if (name === undefined) return { before, after: `${rest}\n\n`, counts: null, close: '', sample };
  const text = names.length === 1 ? findCounts(rest, name, chunk[name]) : null;
  if (text === null) return null;
  const [after, close] = [rest.slice(0, text.at), rest.slice(text.at + text.length)] as const;
  return {
    before,
    after,
    counts: { name, pattern: rest.slice(text.at, text.at + text.length).split(/\d+/) },
    close: `${close}\n\n`,
    sample,
  };
}

/** Matches the event that begins at `from`; null when it is of another kind. */
export function matchTemplate(template: DeltaTemplate, text: string, from: number): Alike | null {
  const { before, after, counts, close } = template;
  if (!text.startsWith(before, from)) return null;
  const literalAt = from + before.length;
  const literalEnd = findStringEnd(text, literalAt);
  // An empty string is no delta.
  if (literalEnd === literalAt || !text.startsWith(after, literalEnd)) return null;
  const literal = text.slice(literalAt, literalEnd);
  const countsAt = literalEnd + after.length;
  if (counts === null) return { literal, counts: null, end: countsAt };
  const countsEnd = matchCounts(text, countsAt, counts.pattern);
  if (countsEnd === -1 || !text.startsWith(close, countsEnd)) return null;
  return { literal, counts: text.slice(countsAt, countsEnd), end: countsEnd + close.length };
}

function findStringEnd(text: string, from: number): number {
  plainText.lastIndex = from;
  plainText.test(text);
  if (text.charCodeAt(plainText.lastIndex) !== 0x5c) return plainText.lastIndex;
  escapedText.lastIndex = from;
  escapedText.test(text);
  return escapedText.lastIndex;
}

/** Where the counts that begin at `from` end, if they are like `pattern` in all but the digits of whole numbers; else -1. */
function matchCounts(text: string, from: number, pattern: readonly string[]): number {
  let at = from;
  for (let next = 0; next < pattern.length; next += 1) {
    const fixed = pattern[next] ?? '';
    if (!text.startsWith(fixed, at)) return -1;
    at += fixed.length;
    if (next === pattern.length - 1) return at;
    const start = at;
    while (isDigit(text.charCodeAt(at))) at += 1;
    // JSON has no number without digits, and none that begins with a needless zero; behind a point zeros are free.
    if (at === start) return -1;
    if (at - start > 1 && text.charCodeAt(start) === 0x30 && text.charCodeAt(start - 1) !== 0x2e) return -1;
  }
  return at;
}

function isDigit(code: number): boolean {
  return code >= 0x30 && code <= 0x39;
}

/** The one string with text in a chunk's only choice; neither log probabilities nor tool calls may come with it. */
function findField(chunk: JsonObject): { readonly name: string; readonly value: string } | null {
  const choices = chunk['choices'];
  const choice: unknown = Array.isArray(choices) && choices.length === 1 ? choices[0] : null;
  if (!isObject(choice) || isObject(choice['logprobs'])) return null;
  const holder = isObject(choice['delta']) ? choice['delta'] : choice;
  const calls = holder['tool_calls'];
  if (Array.isArray(calls) && calls.length > 0) return null;
  const found = TEXT_FIELDS.flatMap((name) => {
    const value = holder[name];
    return typeof value === 'string' && value !== '' ? [{ name, value }] : [];
  });
  return found.length === 1 ? (found[0] ?? null) : null;
}

/** Where the value of a field begins that is spelled so; -1 when it is spelled otherwise. */
function findValue(data: string, name: string, spelled: string): number {
  const field = `"${name}":`;
  for (let at = data.indexOf(field); at !== -1; at = data.indexOf(field, at + 1)) {
    const valueAt = at + field.length + (data.charCodeAt(at + field.length) === 0x20 ? 1 : 0);
    if (data.startsWith(spelled, valueAt)) return valueAt;
  }
  return -1;
}

function findCounts(
  rest: string,
  name: string,
  value: unknown,
): { readonly at: number; readonly length: number } | null {
  const at = findValue(rest, name, '{');
  if (at === -1) return null;
  for (let end = rest.indexOf('}', at); end !== -1; end = rest.indexOf('}', end + 1)) {
    const counts = parseJsonObject(rest.slice(at, end + 1));
    if (counts === null) continue;
    return JSON.stringify(counts) === JSON.stringify(value) ? { at, length: end + 1 - at } : null;
  }
  return null;
}
