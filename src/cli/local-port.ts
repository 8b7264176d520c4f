// Whether a port on the loopback address is free. It does not hold the port: the caller binds soon after.

import { createServer } from 'node:net';

import { StartError } from './start-error.ts';

export const LOOPBACK = '127.0.0.1';

/** Tries to listen on the port for a moment. */
export function isPortFree(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const probe = createServer();
    probe.once('error', () => resolve(false));
    probe.listen(port, LOOPBACK, () => probe.close(() => resolve(true)));
  });
}

/** @throws StartError when something listens there already, or nobody may. */
export async function checkPort(port: number): Promise<void> {
  if (!(await isPortFree(port))) throw new StartError(`port ${port} is taken: free it or choose another with --port`);
}
