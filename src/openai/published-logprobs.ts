// Log probabilities in the shapes OpenAI publishes, one for chat and one for text completions, whatever an engine puts in
// or leaves out: token ids go, what must be there comes. Which of them may be shown is not decided here.

import { isObject, type JsonObject, readCount, readText } from '../core/json-read.ts';

/** OpenAI's number for a token that is very unlikely; engines mean minus infinity, which JSON spells null. */
const UNLIKELY = -9999;

/** Those of chat, {content, refusal}; null when there are none. */
export function toChatLogprobs(value: unknown): JsonObject | null {
  if (!isObject(value)) return null;
  const content = toTokens(value['content']);
  const refusal = toTokens(value['refusal']);
  return content === null && refusal === null ? null : { content, refusal };
}

/**
 * Those of text completions, {tokens, token_logprobs, top_logprobs, text_offset}; those of chat, which llama.cpp sends
 * here too, are turned.
 *
 * @param textOffset Characters of text before these tokens.
 */
export function toTextLogprobs(value: unknown, textOffset: number): JsonObject | null {
  if (!isObject(value)) return null;
  const content = value['content'];
  const { tokens, token_logprobs, top_logprobs, text_offset } = Array.isArray(content) ? turn(content) : value;
  if (!Array.isArray(tokens)) return null;
  const logprobs: readonly unknown[] = Array.isArray(token_logprobs) ? token_logprobs : [];
  return {
    tokens: tokens.map(readText),
    token_logprobs: tokens.map((_, at) => (typeof logprobs[at] === 'number' ? logprobs[at] : null)),
    ...(Array.isArray(top_logprobs) ? { top_logprobs: top_logprobs.map(toTop) } : {}),
    // SGLang sends -1 for each.
    text_offset: isOffsets(text_offset) ? text_offset : countOffsets(tokens, textOffset),
  };
}

function toTokens(value: unknown): readonly JsonObject[] | null {
  if (!Array.isArray(value)) return null;
  return value.filter(isObject).map((entry) => {
    const top = entry['top_logprobs'];
    return { ...toToken(entry), top_logprobs: Array.isArray(top) ? top.filter(isObject).map(toToken) : [] };
  });
}

function toToken(entry: JsonObject): JsonObject {
  const bytes = entry['bytes'];
  return {
    token: readText(entry['token']),
    logprob: readLogprob(entry['logprob']),
    bytes: isBytes(bytes) ? bytes : null,
  };
}

function readLogprob(value: unknown): number {
  return typeof value === 'number' ? value : UNLIKELY;
}

/** The alternatives of one token; a prompt's first has none. */
function toTop(value: unknown): JsonObject | null {
  if (!isObject(value)) return null;
  return Object.fromEntries(Object.entries(value).map(([token, logprob]) => [token, readLogprob(logprob)]));
}

function isBytes(value: unknown): boolean {
  return Array.isArray(value) && value.every((byte) => (readCount(byte) ?? 256) < 256);
}

/** Those of chat as those of text completions. */
function turn(content: readonly unknown[]): JsonObject {
  const entries = content.filter(isObject);
  return {
    tokens: entries.map((entry) => readText(entry['token'])),
    token_logprobs: entries.map((entry) => readLogprob(entry['logprob'])),
    top_logprobs: entries.map(({ top_logprobs: top }) => {
      const others = Array.isArray(top) ? top.filter(isObject) : [];
      return Object.fromEntries(others.map((other) => [readText(other['token']), readLogprob(other['logprob'])]));
    }),
  };
}

function isOffsets(value: unknown): boolean {
  return Array.isArray(value) && value.every((offset) => readCount(offset) !== null);
}

function countOffsets(tokens: readonly unknown[], textOffset: number): readonly number[] {
  let next = textOffset;
  return tokens.map((token) => {
    const offset = next;
    next += readText(token).length;
    return offset;
  });
}
