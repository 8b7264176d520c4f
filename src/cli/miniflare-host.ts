// Starts Miniflare the way this room wants it: quiet, offline, on loopback, its complaints and the Workers' own lines on
// stderr, and without the signal handlers that would end the process before we have put things in order.

import {
  convertV4MiniflareOptions,
  Log,
  LogLevel,
  Miniflare,
  MiniflareCoreError,
  type V4WorkerOptions,
} from 'miniflare';

import { LOOPBACK } from './local-port.ts';
import { StartError } from './start-error.ts';

const SIGNALS = ['SIGINT', 'SIGTERM', 'SIGHUP'] as const;

/**
 * Starts the Workers on the stores under `storePath` and waits until the runtime is up.
 *
 * @param onLog gets each line that a Worker or the runtime logs
 */
export async function startMiniflare(
  workers: V4WorkerOptions[],
  storePath: string,
  onLog: (line: string) => void,
): Promise<Miniflare> {
  const options = convertV4MiniflareOptions({
    cf: false,
    host: LOOPBACK,
    log: createLog(onLog),
    logRequests: false,
    handleStructuredLogs: ({ message }) => onLog(message),
    resourcePersistencePath: storePath,
    workers,
  });
  const miniflare = createWithoutSignalHandlers(options);
  try {
    await miniflare.ready;
  } catch (error) {
    // It cleans up and then throws the same error again.
    await miniflare.dispose().catch(() => undefined);
    throw toStartError(error);
  }
  return miniflare;
}

// Somebody may take the port between our look at it and workerd's bind. For the rest workerd's own lines, which are logged
// as they come, say more than Miniflare's general advice.
function toStartError(error: unknown): unknown {
  if (!(error instanceof MiniflareCoreError)) return error;
  if (error.code === 'ERR_ADDRESS_IN_USE') return new StartError('the port is taken: another program was faster');
  if (error.code === 'ERR_RUNTIME_FAILURE') return new StartError('the Workers do not start: the lines above say why');
  return error;
}

function createLog(onLog: (line: string) => void): Log {
  const log = new Log(LogLevel.WARN);
  // The one method through which all of Miniflare's own messages pass; it writes to stdout, which is for our lines.
  return Object.assign(log, { log: onLog });
}

// Miniflare's handlers call process.exit at once. Its hook on the process's end stays: it kills workerd in any case.
function createWithoutSignalHandlers(options: ConstructorParameters<typeof Miniflare>[0]): Miniflare {
  const before = new Set(SIGNALS.flatMap((signal) => process.listeners(signal)));
  const miniflare = new Miniflare(options);
  for (const signal of SIGNALS) {
    for (const listener of process.listeners(signal)) {
      if (!before.has(listener)) process.removeListener(signal, listener);
    }
  }
  return miniflare;
}
