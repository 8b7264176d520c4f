// Notices, once, that this process should end: Ctrl-C, a signal, or the death of the npm that started it. How to end is
// the caller's business.

import { readFileSync } from 'node:fs';

const STARTERS_PAUSE_MS = 250;

/**
 * Calls `stop` at the first request to end; later ones, such as a second Ctrl-C or the copy that npm passes on, are
 * harmless.
 */
export function onStopRequest(stop: () => void): void {
  let asked = false;
  const ask = (): void => {
    if (asked) return;
    asked = true;
    stop();
  };
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.on(signal, ask);
  // npm passes SIGTERM only to its child, which may be a shell that dies without passing it on; after SIGKILL it passes
  // nothing. Without npm a lost parent means nothing: `node src/cli/start.ts &` may outlive its shell.
  if (process.env['npm_lifecycle_event'] === undefined) return;
  const starters = readStarters();
  setInterval(() => {
    if (readStarters() !== starters) ask();
  }, STARTERS_PAUSE_MS).unref();
}

// The parent, and its parent: some shells (dash) stay between npm and us, others give way to us.
function readStarters(): string {
  return `${process.ppid} ${readParentOf(process.ppid)}`;
}

function readParentOf(pid: number): string {
  try {
    // "pid (command) state parent …", where the command may hold anything.
    const stat = readFileSync(`/proc/${pid}/stat`, 'utf8');
    return stat.slice(stat.lastIndexOf(')')).split(' ')[2] ?? '';
  } catch {
    // Not Linux, or the parent has just gone, which its changed id says as well.
    return '';
  }
}
