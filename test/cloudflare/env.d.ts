// Types of the Worker under test: its bindings, and its module as `exports` of cloudflare:workers.

import type { D1Migration } from '@cloudflare/vitest-plugin';
import type * as worker from '../../src/index.ts';
import type { Env } from '../../src/cloudflare/env.ts';

declare global {
  namespace Cloudflare {
    // The global interfaces that cloudflare:workers reads its types from.
    interface Env extends WorkerEnv {
      readonly TEST_MIGRATIONS: D1Migration[];
      readonly UPSTREAM_1: Fetcher;
    }
    interface GlobalProps {
      mainModule: typeof worker;
    }
  }
  type WorkerEnv = Env;
}
