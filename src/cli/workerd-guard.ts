// Sees to it that workerd never outlives this process. Miniflare ends it on every orderly way out; after SIGKILL, or a
// crash of Node, nobody would. So beside each workerd waits a shell that reads from a pipe of ours: the kernel closes the
// pipe when we are gone, and the shell kills workerd. It also tells workerd's process id, which Miniflare keeps to itself.

import { ChildProcess, spawn } from 'node:child_process';
import { subscribe, unsubscribe } from 'node:diagnostics_channel';
import { basename } from 'node:path';

// Node's channel for every child process that is started here.
const CHANNEL = 'child_process';

export type WorkerdGuard = {
  /** The process id of the workerd that was started last. */
  readonly pid: () => number | undefined;
  /** Stops looking for new ones; those that run stay guarded. */
  readonly release: () => void;
};

/** Guards each workerd started from now on, also those that Miniflare starts in place of a crashed one. */
export function guardWorkerd(): WorkerdGuard {
  let pid: number | undefined;
  const watch = (message: unknown): void => {
    const child = readChild(message);
    // The channel reports the object before the command is known to it.
    child?.once('spawn', () => {
      if (child.pid === undefined || basename(child.spawnfile) !== 'workerd') return;
      pid = child.pid;
      guard(child, child.pid);
    });
  };
  subscribe(CHANNEL, watch);
  return { pid: () => pid, release: () => void unsubscribe(CHANNEL, watch) };
}

function readChild(message: unknown): ChildProcess | null {
  const isReport = typeof message === 'object' && message !== null && 'process' in message;
  return isReport && message.process instanceof ChildProcess ? message.process : null;
}

function guard(workerd: ChildProcess, pid: number): void {
  // A session of its own: Ctrl-C reaches the whole group of the terminal, and the guard has to outlive us.
  const shell = spawn('/bin/sh', ['-c', `read -r _; kill -KILL ${pid}`], {
    stdio: ['pipe', 'ignore', 'ignore'],
    detached: true,
  });
  // Without /bin/sh (Windows) there is no guard, and all else works.
  shell.once('error', () => undefined);
  shell.unref();
  workerd.once('exit', () => shell.kill('SIGKILL'));
}
