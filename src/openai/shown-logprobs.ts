// Log probabilities spell out every token of an answer, those of reasoning included, even where an engine keeps the
// reasoning to itself. With effort none only those of what the answer says may leave (SPEC §4).

import { isObject, readObject, readText } from '../core/json-read.ts';

/** What stands for bytes that are no whole character: one character may be several tokens. */
const PARTIAL = '\ufffd';

/**
 * Whether log probabilities are of the answer alone. Reasoning comes before content, so their tokens must begin as the
 * text does, and must not say it again after something else; control tokens and a stop sequence may follow.
 *
 * @param said The text that came with them.
 */
export function spellNothingElse(logprobs: unknown, said: string): boolean {
  if (said === '') return false;
  const tokens = readTokens(logprobs).join('').trimStart();
  const text = said.trimStart();
  if (tokens === '' || text === '') return tokens === text;
  const partial = tokens.indexOf(PARTIAL);
  if (partial === 0) return text.charCodeAt(0) > 0x7f;
  if (partial > 0) return text.startsWith(tokens.slice(0, partial));
  if (!tokens.startsWith(text)) return text.startsWith(tokens);
  const rest = tokens.slice(text.length).replaceAll(/<[^<>]*>/g, '');
  return !rest.includes(text);
}

function readTokens(logprobs: unknown): readonly string[] {
  const content = readObject(logprobs)['content'];
  return Array.isArray(content) ? content.filter(isObject).map((entry) => readText(entry['token'])) : [];
}
