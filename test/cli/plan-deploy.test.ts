// What `npm run deploy` does, in which order, and what wrangler.toml may say: no account's ids, no demo engine, every
// binding explained (SPEC §11).

import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { experimental_readRawConfig as readRawConfig, unstable_readConfig as readConfig } from 'wrangler';
import { describe, expect, test } from 'vitest';
import * as z from 'zod';
import { planDeploy } from '../../src/cli/plan-deploy.ts';
import { REPLAY_CRON } from '../../src/core/crons.ts';

const ROOT = join(import.meta.dirname, '../..');
/** What an environment must not lack. */
const configSchema = z.looseObject({
  name: z.string(),
  kv_namespaces: z.array(z.looseObject({ binding: z.string() })).min(2),
  d1_databases: z.array(z.looseObject({ binding: z.string() })).length(1),
  durable_objects: z.looseObject({ bindings: z.array(z.looseObject({ name: z.string() })).length(1) }),
  services: z.array(z.looseObject({ binding: z.string() })).min(1),
  vars: z.record(z.string(), z.unknown()),
  limits: z.unknown(),
  triggers: z.unknown(),
  migrations: z.unknown(),
});
const MIGRATE = ['d1', 'migrations', 'apply', 'DB', '--remote'];

test.each([
  [[], [MIGRATE, ['deploy']]],
  [['--dry-run'], [['deploy', '--dry-run']]],
  [['--dry-run', '--env', 'staging'], [['deploy', '--dry-run', '--env', 'staging']]],
  [
    ['--env', 'staging', '--keep-vars'],
    [
      [...MIGRATE, '--env', 'staging'],
      ['deploy', '--env', 'staging', '--keep-vars'],
    ],
  ],
  [
    ['--env=staging'],
    [
      [...MIGRATE, '--env=staging'],
      ['deploy', '--env=staging'],
    ],
  ],
  [
    ['-e', 'staging'],
    [
      [...MIGRATE, '-e', 'staging'],
      ['deploy', '-e', 'staging'],
    ],
  ],
])('§11 npm run deploy -- %j: migrations first, then the gateway; a dry run touches nothing', (options, plan) => {
  expect(planDeploy(options)).toEqual(plan);
});

describe('§11 wrangler.toml', () => {
  const text = readFileSync(join(ROOT, 'wrangler.toml'), 'utf8');
  const { rawConfig } = readRawConfig({ config: join(ROOT, 'wrangler.toml') });

  test('§11 no ids of an account, no secrets, and the demo engine is not bound', () => {
    expect(text).not.toMatch(/\b[0-9a-f]{32}\b|\b[0-9a-f]{8}-[0-9a-f]{4}-/i);
    expect(rawConfig).not.toHaveProperty('account_id');
    expect(rawConfig.kv_namespaces).toEqual([{ binding: 'KEYS' }, { binding: 'CATALOG' }]);
    expect((rawConfig.d1_databases ?? []).map((database: object) => Object.keys(database))).toEqual([
      ['binding', 'database_name', 'migrations_dir'],
    ]);
    expect(rawConfig.services).toEqual([{ binding: 'UPSTREAM_1', service: 'turnpike-bridge', entrypoint: 'Bridge' }]);
    expect(Object.keys(rawConfig.vars ?? {})).toEqual(['DEFAULT_LIMITS']);
    expect(text).not.toMatch(/TURNPIKE_LOCAL|"DEMO"/);
  });

  test('§11 CPU for a stream of ten minutes, the daily run and the replays, both signal flags, nothing public but workers.dev', () => {
    expect(rawConfig.limits).toEqual({ cpu_ms: 300_000 });
    expect(rawConfig.triggers?.crons).toEqual(['17 3 * * *', REPLAY_CRON]);
    expect(rawConfig.compatibility_flags).toEqual(['enable_request_signal', 'request_signal_passthrough']);
    expect(rawConfig.preview_urls).toBe(false);
    expect(rawConfig.migrations).toEqual([{ tag: 'v1', new_sqlite_classes: ['Ledger'] }]);
  });

  test('§12 what is commented out is right once it is not: the archive and the damper of bad keys', () => {
    const dir = mkdtempSync(join(tmpdir(), 'turnpike-optional-'));
    const path = join(dir, 'wrangler.toml');
    writeFileSync(path, text.replaceAll(/^# (\[\[|\w+ = )/gm, '$1'));
    const { rawConfig: whole } = readRawConfig({ config: path });
    rmSync(dir, { recursive: true });
    expect(whole.r2_buckets).toEqual([{ binding: 'ARCHIVE', bucket_name: 'turnpike-receipts' }]);
    expect(whole.ratelimits).toMatchObject([{ name: 'FAILED_KEYS', simple: { period: 60 } }]);
    expect(whole.d1_databases).toEqual(rawConfig.d1_databases);
  });

  test('§11 every table of it is explained', () => {
    const lines = text.split('\n');
    const unexplained = lines.filter((line, at) => {
      if (!line.startsWith('[')) return false;
      const before = lines[at - 1] ?? '';
      const within = lines[at + 1] ?? '';
      // What follows from the table before it, without a blank line of explanation of its own.
      const follows = line === '[[migrations]]' || line === '[observability]';
      return !before.startsWith('#') && !within.startsWith('#') && !follows;
    });
    expect(unexplained).toEqual([]);
  });

  test('§11 the README’s second environment has every binding of the first, and stores of its own', () => {
    const readme = readFileSync(join(ROOT, 'README.md'), 'utf8');
    const block = /^```toml staging\n([^]*?)^```$/m.exec(readme)?.[1] ?? '';
    const dir = mkdtempSync(join(tmpdir(), 'turnpike-env-'));
    const path = join(dir, 'wrangler.toml');
    writeFileSync(path, `${text}\n${block}`);
    const [first, second] = [{}, { env: 'staging' }].map((environment) => {
      return configSchema.parse(readConfig({ config: path, ...environment }, { hideWarnings: true }));
    });
    rmSync(dir, { recursive: true });
    expect(second?.name).toBe('turnpike-staging');
    expect(second?.d1_databases).toEqual([{ ...first?.d1_databases[0], database_name: 'turnpike-staging' }]);
    expect(second?.services).toEqual([{ ...first?.services[0], service: 'turnpike-bridge-staging' }]);
    expect(Object.keys(second?.vars ?? {})).toEqual(Object.keys(first?.vars ?? {}));
    const { kv_namespaces: kv, durable_objects: objects, limits, triggers, migrations } = second ?? {};
    expect(first).toMatchObject({ kv_namespaces: kv, durable_objects: objects, limits, triggers, migrations });
  });

  test('§11 D1 migrations only add', () => {
    const dir = join(ROOT, 'src/cloudflare/migrations');
    const names = readdirSync(dir);
    expect(names.length).toBeGreaterThan(3);
    for (const name of names) {
      const sql = readFileSync(join(dir, name), 'utf8').replaceAll(/--.*$/gm, '');
      expect(sql, name).not.toMatch(/\b(DROP|RENAME|ALTER\s+TABLE\s+\w+\s+(?!ADD))\b/i);
    }
  });
});
