// Starts the Worker of workers/ledger.js on the production bundle and real stores, and gives it orders. It measures nothing.

import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

import * as z from 'zod';

import { readBundle } from '../../src/cli/bundle-workers.ts';
import { readLocalConfig } from '../../src/cli/local-config.ts';
import { fillStore } from '../../src/cli/local-store.ts';
import { startMiniflare } from '../../src/cli/miniflare-host.ts';
import { toStorePath } from '../../src/cli/state-folder.ts';
import { guardWorkerd } from '../../src/cli/workerd-guard.ts';
import type { Reservation } from '../../src/core/ledger-types.ts';
import { bundleOnce, findFreePort, ROOT } from '../process/serve.ts';

export type LedgerOrder =
  | {
      readonly kind: 'calls';
      /** `carrying`: the object that does nothing is given an admission's arguments, and answers as much. */
      readonly target: 'empty' | 'carrying' | 'ledger';
      readonly calls: number;
      readonly parallel: number;
      /** Admissions alone are timed, and settled when all are done; else each is settled before the next begins. */
      readonly settleAfter: boolean;
      readonly reservation: Reservation;
    }
  | {
      readonly kind: 'statements';
      readonly sql: readonly string[];
      readonly times: number;
      /** What is bound to each statement. */
      readonly values?: readonly (readonly unknown[])[];
      /** Receipts for the one statement, as rows; each gets an id of its own. */
      readonly rows?: readonly unknown[];
    };

const resultSchema = z.object({ timesMs: z.array(z.number()), wallMs: z.number(), faults: z.array(z.string()) });
export type LedgerResult = z.infer<typeof resultSchema>;

export type LedgerWorker = {
  readonly run: (order: LedgerOrder) => Promise<LedgerResult>;
  readonly stop: () => Promise<void>;
};

/** Starts it on stores that end with it. */
export async function startLedgerWorker(): Promise<LedgerWorker> {
  const config = await readLocalConfig(ROOT);
  const { root, modules } = readBundle(await bundleOnce(), 'gateway');
  const port = await findFreePort();
  const stateDir = mkdtempSync(join(tmpdir(), 'turnpike-ledger-'));
  await fillStore(config, toStorePath(stateDir), { keys: {}, catalog: undefined }, () => undefined);
  const guard = guardWorkerd();
  const path = join(root, 'ledger-bench.js');
  const contents = readFileSync(join(import.meta.dirname, 'workers/ledger.js'), 'utf8');
  const miniflare = await startMiniflare(
    [
      {
        ...config.gateway.options,
        name: config.gateway.name,
        modulesRoot: root,
        modules: [{ type: 'ESModule', path, contents }, ...modules],
        bindings: config.gateway.vars,
        durableObjects: {
          LEDGER: { className: 'Ledger', useSQLite: true },
          EMPTY: { className: 'Empty', useSQLite: true },
        },
        serviceBindings: {},
        unsafeDirectSockets: [{ host: '127.0.0.1', port }],
      },
    ],
    toStorePath(stateDir),
    () => undefined,
  );
  return {
    async run(order) {
      const answer = await fetch(`http://127.0.0.1:${port}/`, { method: 'POST', body: JSON.stringify(order) });
      const text = await answer.text();
      if (!answer.ok) throw new Error(`the bench's Worker: ${answer.status} ${text}`);
      return resultSchema.parse(JSON.parse(text));
    },
    async stop() {
      await miniflare.dispose();
      guard.release();
      rmSync(stateDir, { recursive: true, force: true });
    },
  };
}
