// Where the wrangler of this repository is: its own program, not the launcher that npm puts on the path, which starts another
// process that a signal would not reach.

import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';

/** The program that Node runs as wrangler. */
export const WRANGLER_PATH = join(
  dirname(createRequire(import.meta.url).resolve('wrangler/package.json')),
  'wrangler-dist/cli.js',
);
