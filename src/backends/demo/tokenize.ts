// The engine's tokenizer: a word with the space before it, a sign with the space before it, or one white space.
// Lossless: the tokens joined are the text, whatever it holds, lone surrogates included.
// No model's tokenizer: the counts are exact for this engine and mean nothing for another.

// Long words break into pieces, so that a block of base64 does not count as one token.
const tokenPattern = / ?[\p{L}\p{M}\p{N}'’_]{1,12}| ?[^\s\p{L}\p{M}\p{N}'’_]|\s/gu;

/** Splits a text into its tokens. */
export function tokenize(text: string): readonly string[] {
  return text.match(tokenPattern) ?? [];
}
