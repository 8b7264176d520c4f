// What `npm run deploy` asks of wrangler, in order: D1 migrations, then the gateway. Bridges come before it and have
// values of their own, so they are deployed one by one (README); wrangler refuses a gateway whose bridges are missing.

/** The gateway's D1 binding in wrangler.toml. */
const DATABASE = 'DB';

/**
 * Wrangler's arguments, command by command; each runs only when the one before went well. Options are passed on as they
 * are. A dry run builds the bundle and says its size, and changes nothing anywhere.
 */
export function planDeploy(options: readonly string[]): readonly (readonly string[])[] {
  const deploy = ['deploy', ...options];
  if (options.includes('--dry-run')) return [deploy];
  return [['d1', 'migrations', 'apply', DATABASE, '--remote', ...pickEnvironment(options)], deploy];
}

/** `--env NAME`, `-e NAME` or `--env=NAME`: migrations go to the database of the same environment. */
function pickEnvironment(options: readonly string[]): readonly string[] {
  const at = options.findIndex((option) => /^(--env|-e)(=|$)/.test(option));
  if (at === -1) return [];
  const isOne = (options[at] ?? '').includes('=');
  return options.slice(at, isOne ? at + 1 : at + 2);
}
