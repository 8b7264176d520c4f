// Starts the bench's helpers as processes of their own and talks to them over Node's IPC. A helper ends with the bench,
// however that ends: its channel closes.

import { fork } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';

import type { Serializable } from 'node:child_process';

export type Child = {
  /** Sends a message, if any, and waits for the next one that comes back. */
  readonly ask: (message?: Serializable) => Promise<unknown>;
  readonly stop: () => void;
};

/** Starts a file of this folder. */
export function startChild(file: string): Child {
  const child = fork(join(import.meta.dirname, file), { stdio: ['ignore', 'inherit', 'inherit', 'ipc'] });
  const died = once(child, 'exit').then(([code]: unknown[]) => {
    throw new Error(`${file} ended with ${String(code)}`);
  });
  died.catch(() => undefined);
  return {
    async ask(message) {
      const answer = once(child, 'message').then(([received]: unknown[]) => received);
      if (message !== undefined) child.send(message);
      return Promise.race([answer, died]);
    },
    stop: () => void child.kill(),
  };
}
