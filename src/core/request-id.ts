// Request ids: `req_` and a time-sortable tail. The clock and the randomness are arguments; nothing is read here.

const ALPHABET = '0123456789abcdefghjkmnpqrstvwxyz';
const TIME_DIGITS = 10;

/**
 * Builds a request id: 48 bits of milliseconds, then 80 random bits, both in Crockford's base 32 (the layout of a ULID,
 * in lower case), so that ids sort by time.
 *
 * @param nowMs Unix time in milliseconds.
 * @param random At least 16 random bytes; five bits of each are used.
 */
export function buildRequestId(nowMs: number, random: Uint8Array): string {
  let time = '';
  for (let rest = Math.max(0, Math.floor(nowMs)), digit = 0; digit < TIME_DIGITS; digit += 1) {
    time = ALPHABET.charAt(rest % 32) + time;
    rest = Math.floor(rest / 32);
  }
  let tail = '';
  for (const byte of random.subarray(0, 16)) tail += ALPHABET.charAt(byte & 31);
  return `req_${time}${tail}`;
}
