// The log: one JSON object a line, which Workers Logs indexes by field.

import { type LogEntry } from '../gateway/ports.ts';

/** Writes one entry. */
export function log(entry: LogEntry): void {
  // oxlint-disable-next-line no-console -- the platform's log is the console
  console.log(JSON.stringify(entry));
}
