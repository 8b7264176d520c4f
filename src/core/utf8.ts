// The length of text in UTF-8, for bounds that are given in bytes. It encodes nothing.

/** Bytes of a string in UTF-8, without encoding it. */
export function countUtf8Bytes(text: string): number {
  let bytes = text.length;
  for (let at = 0; at < text.length; at += 1) {
    const code = text.charCodeAt(at);
    if (code < 0x80) continue;
    if (code < 0x800) bytes += 1;
    else {
      bytes += 2;
      // A pair of surrogates is four bytes; one alone becomes U+FFFD, which is three.
      if (code >= 0xd800 && code < 0xdc00 && (text.charCodeAt(at + 1) & 0xfc00) === 0xdc00) at += 1;
    }
  }
  return bytes;
}
