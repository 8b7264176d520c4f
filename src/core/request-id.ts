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
  let tail = '';
  for (const byte of random.subarray(0, 16)) tail += ALPHABET.charAt(byte & 31);
  return toLowestId(nowMs) + tail;
}

/**
 * What every id of that millisecond begins with. It sorts before all of them and after those of earlier milliseconds,
 * so that a span of time is a range of ids.
 *
 * @param timeMs Unix time in milliseconds; what lies before 1970 counts as 1970.
 */
export function toLowestId(timeMs: number): string {
  let time = '';
  for (let rest = Math.max(0, Math.ceil(timeMs)), digit = 0; digit < TIME_DIGITS; digit += 1) {
    time = ALPHABET.charAt(rest % 32) + time;
    rest = Math.floor(rest / 32);
  }
  return `req_${time}`;
}

/** Sorts after every id that can be minted: `z` is the last letter of the alphabet. */
export const BEYOND_IDS = 'req_~';
