// `npm run deploy`: migrates D1 and deploys the gateway with the wrangler of this repository. `-- --dry-run` needs neither
// an account nor the internet. What is run is decided in plan-deploy.ts.

import { spawn } from 'node:child_process';
import { resolve } from 'node:path';

import { planDeploy } from './plan-deploy.ts';
import { WRANGLER_PATH } from './wrangler-path.ts';

const ROOT = resolve(import.meta.dirname, '../..');

/** Runs wrangler on this terminal; resolves to its exit code. */
function runWrangler(args: readonly string[]): Promise<number> {
  const env = { WRANGLER_SEND_METRICS: 'false', WRANGLER_HIDE_BANNER: 'true', ...process.env };
  return new Promise((resolveCode, reject) => {
    const child = spawn(process.execPath, ['--no-warnings', WRANGLER_PATH, ...args], {
      cwd: ROOT,
      env,
      stdio: 'inherit',
    });
    child.once('error', reject);
    child.once('close', (code) => resolveCode(code ?? 1));
  });
}

for (const args of planDeploy(process.argv.slice(2))) {
  console.log(`deploy: wrangler ${args.join(' ')}`);
  const code = await runWrangler(args);
  if (code !== 0) {
    console.error(`deploy: wrangler ended with ${code}; nothing after this step was done`);
    process.exit(code);
  }
}
