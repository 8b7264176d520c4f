// The operator's commands without a store: entries, lists, options, catalogs, findings; and how a command line is read.

import { createHash } from 'node:crypto';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { CommanderError } from 'commander';
import { describe, expect, test, vi } from 'vitest';
import { checkCatalog, diffCatalogs } from '../../src/cli/catalog-commands.ts';
import { listCatalogWarnings } from '../../src/cli/catalog-warnings.ts';
import { checkBindings, checkShared, type Bindings } from '../../src/cli/check-config.ts';
import { parseLimit, parseList, parseSpan, parseTime, toTable } from '../../src/cli/command-result.ts';
import { faultOf, runDoctor, wellAs } from '../../src/cli/doctor.ts';
import { buildKeyEntry, checkKeyId, mintToken, rotateEntry } from '../../src/cli/key-entry.ts';
import { fillStatement, type OperatorStore } from '../../src/cli/operator-store.ts';
import type { Place } from '../../src/cli/program-ports.ts';
import { readEnvironments } from '../../src/cli/read-environments.ts';
import { StartError } from '../../src/cli/start-error.ts';
import { buildProgram } from '../../src/cli/turnpike-program.ts';
import { openWranglerStore } from '../../src/cli/wrangler-operator-store.ts';
import { checkApiKey, parseBearerToken } from '../../src/core/api-key.ts';

const NOW = Date.parse('2026-12-01T10:00:00Z');

describe('keys', () => {
  const { token, hash } = mintToken('prod-web', new Uint8Array(32).fill(7));

  test('§2 a token and its entry: the id legible, the hash of the whole token, good for the gateway', () => {
    expect(token).toMatch(/^tp_prod-web_[A-Za-z0-9_-]{43}$/);
    const digest = createHash('sha256').update(token).digest('hex');
    expect(hash).toBe(`sha256:${digest}`);
    const entry = buildKeyEntry(hash, { workspace: 'acme', scopes: ['inference:write'], limits: { rpm: 5 } });
    if (!entry.ok) throw new Error(entry.error);
    expect(entry.value).toEqual({ workspace: 'acme', hash, scopes: ['inference:write'], limits: { rpm: 5 } });
    expect(parseBearerToken(`Bearer ${token}`)).toMatchObject({ ok: true, value: { id: 'prod-web' } });
    const record = { id: 'prod-web', key: entry.value, workspace: {} };
    expect(checkApiKey(record, digest, NOW)).toMatchObject({ ok: true, value: { workspaceId: 'acme' } });
  });

  test('§2 a rotation: both tokens until the grace is over, then the new one alone; other members stay', () => {
    const next = mintToken('prod-web', new Uint8Array(32).fill(8));
    const entry = rotateEntry({ workspace: 'acme', hash, note: 'kept' }, next.hash, NOW + 1000);
    expect(entry).toMatchObject({ workspace: 'acme', note: 'kept', hash: next.hash });
    const record = { id: 'prod-web', key: entry, workspace: {} };
    const isGood = (text: string, atMs: number): boolean => checkApiKey(record, text.slice('sha256:'.length), atMs).ok;
    expect([isGood(hash, NOW), isGood(next.hash, NOW)]).toEqual([true, true]);
    expect([isGood(hash, NOW + 1000), isGood(next.hash, NOW + 1000)]).toEqual([false, true]);
  });

  test.each([
    [{ workspace: 'no slash/' }, /^workspace: /],
    [{ workspace: 'acme', scopes: ['inference:read'] }, /'inference:read' is no scope/],
    [{ workspace: 'acme', expiresAt: 'tomorrow' }, /^expires_at: /],
  ])('§2 no entry is made of %j', (wishes, fault) => {
    const entry = buildKeyEntry(hash, wishes);
    expect(entry).toMatchObject({ ok: false, error: expect.stringMatching(fault) });
  });

  test.each(['', 'Prod', 'prod_web', 'a'.repeat(65), 'demo'])('§2 no key id: %j', (id) => {
    expect(checkKeyId(id)).not.toBe(null);
  });
});

describe('options', () => {
  test('lists, limits, spans and times', () => {
    expect(parseList('a, b,,c ')).toEqual(['a', 'b', 'c']);
    expect([parseLimit('0'), parseLimit('1000000000'), parseLimit('unlimited')]).toEqual([0, 1_000_000_000, null]);
    expect([parseSpan('90s'), parseSpan('24h'), parseSpan('7d')]).toEqual([90_000, 86_400_000, 604_800_000]);
    expect(parseTime('2027-01-01')).toBe('2027-01-01T00:00:00.000Z');
    for (const text of ['many', '-1', '1.5', '1000000001'])
      expect(() => parseLimit(text), text).toThrow(/whole number/);
    for (const text of ['24', '1y', '-1h']) expect(() => parseSpan(text), text).toThrow(/span/);
    for (const text of ['tomorrow', '01/02/2027', '2027-13-01']) expect(() => parseTime(text), text).toThrow(/time/);
  });

  test('a table has its columns one below the other, and no lines', () => {
    expect(toTable(['A', 'LONG'], [['value', 1]])).toBe('A      LONG\nvalue  1');
  });
});

describe('catalogs', () => {
  const backends = [{ binding: 'UPSTREAM_1', upstream_model: 'x', engine: 'vllm' }];
  const write = (models: object): string => JSON.stringify({ version: 1, models });

  test('§2 check: sound models and faulty ones with their fault; a document that is none', () => {
    const faulty = { backends: [{ ...backends[0], binding: 'NOPE' }] };
    const checked = checkCatalog(write({ good: { backends }, bad: faulty }), new Set(['UPSTREAM_1']));
    expect(checked).toMatchObject({ failed: true, text: '✓ good\n✗ bad: there is no binding NOPE' });
    expect(checkCatalog('{', new Set())).toMatchObject({ failed: true, text: '✗ (document): the catalog is not JSON' });
  });

  test('§2 npm start says at once what of its catalog will answer 503', () => {
    const text = write({ good: { backends }, bad: { backends: [{ ...backends[0], binding: 'NOPE' }] } });
    expect(listCatalogWarnings(text, new Set(['UPSTREAM_1']))).toEqual([
      'catalog: bad will answer 503: there is no binding NOPE',
    ]);
    expect(listCatalogWarnings('{"version":2}', new Set())).toEqual([
      expect.stringMatching(/^catalog: the catalog is unusable: .*; every request will answer 503$/),
    ]);
  });

  test('diff: new, gone, changed by field', () => {
    const before = write({ a: { backends, context_length: 1, pricing: { input: '1' } }, gone: { backends } });
    const after = write({ a: { backends, pricing: { input: '2' } }, fresh: { backends } });
    expect(diffCatalogs(before, after)).toEqual([
      '~ a.context_length: 1 → (absent)',
      '~ a.pricing.input: "1" → "2"',
      '+ fresh',
      '- gone',
    ]);
    expect(diffCatalogs(before, before)).toEqual([]);
    expect(diffCatalogs(null, after)).toEqual(['+ a', '+ fresh']);
  });
});

describe('doctor', () => {
  const good: Bindings = {
    environment: null,
    kv: ['KEYS', 'CATALOG'],
    d1: ['DB'],
    stores: ['D1 database turnpike'],
    objects: ['LEDGER'],
    services: ['UPSTREAM_1'],
    flags: ['enable_request_signal', 'request_signal_passthrough'],
    crons: ['17 3 * * *', '*/5 * * * *'],
    account: undefined,
  };

  test('§11 bindings: all well', () => {
    const [finding, ...more] = checkBindings([good]);
    expect([finding?.fix, more]).toEqual([null, []]);
  });

  test.each<[string, Partial<Bindings>]>([
    ['KEYS', { kv: ['CATALOG'] }],
    ['CATALOG', { kv: ['KEYS'] }],
    ['D1 database DB', { d1: [] }],
    ['LEDGER', { objects: [] }],
    ['backend UPSTREAM_1', { services: [] }],
    ['request_signal_passthrough', { flags: ['enable_request_signal'] }],
    ['crons', { crons: [] }],
    ['account', { account: '0123' }],
  ])('§11 an environment whose bindings differ is caught: %s', (what, less) => {
    const findings = checkBindings([good, { ...good, environment: 'staging', ...less }]);
    expect(findings.filter(({ fix }) => fix !== null)).toEqual([
      expect.objectContaining({ what: 'wrangler.toml, [env.staging]', detail: expect.stringContaining(what) }),
    ]);
  });

  test('§11 wrangler’s reading of wrangler.toml, with the README’s second environment, and with a binding forgotten in it', async () => {
    const root = join(import.meta.dirname, '../..');
    const [, staging = ''] = /```toml staging\n([^]*?)```/.exec(readFileSync(join(root, 'README.md'), 'utf8')) ?? [];
    expect(staging).toContain('[env.staging]');
    const dir = mkdtempSync(join(tmpdir(), 'turnpike-doctor-'));
    const look = async (text: string): Promise<readonly string[]> => {
      const path = join(dir, 'wrangler.toml');
      writeFileSync(path, `${readFileSync(join(root, 'wrangler.toml'), 'utf8')}\n${text}`);
      const environments = await readEnvironments(path);
      expect(environments.map(({ environment }) => environment)).toEqual([null, 'staging']);
      const findings = [...checkBindings(environments), ...checkShared(environments)];
      return findings.flatMap(({ detail, fix }) => (fix === null ? [] : [detail]));
    };
    try {
      expect(await look(staging)).toEqual([]);
      expect(await look(staging.replace(/^durable_objects.*$/m, ''))).toEqual(['no Durable Object LEDGER']);
      expect(await look(staging.replace('turnpike-staging"', 'turnpike"'))).toEqual([
        'the top level and staging share the D1 database turnpike',
      ]);
    } finally {
      rmSync(dir, { recursive: true, force: true });
    }
  });

  test('§11 one backend of two is missing in an environment, or at the top level', () => {
    const two = { ...good, services: ['UPSTREAM_1', 'UPSTREAM_2'] };
    const missing = (environments: readonly Bindings[]): readonly string[] =>
      checkBindings(environments).flatMap(({ what, detail, fix }) => (fix === null ? [] : [`${what}: ${detail}`]));
    const detail = 'no backend UPSTREAM_2, which another environment has';
    expect(missing([two, { ...good, environment: 'eu' }])).toEqual([`wrangler.toml, [env.eu]: ${detail}`]);
    expect(missing([good, { ...two, environment: 'eu' }])).toEqual([`wrangler.toml: ${detail}`]);
    expect(missing([{ ...good, services: [] }])).toEqual(['wrangler.toml: no backend']);
  });

  test('§11 environments that share a database are caught', () => {
    const staging = { ...good, environment: 'staging' };
    expect(checkShared([good, staging])).toHaveLength(1);
    expect(checkShared([good, { ...staging, stores: ['D1 database turnpike-staging'] }])).toEqual([]);
  });

  test('faults have their fix, a part that cannot be looked at is one, the rest is looked at', async () => {
    const told = await runDoctor([
      { name: 'a', look: () => Promise.resolve([wellAs('a', 'fine'), faultOf('a', 'broken', 'mend it')]) },
      { name: 'b', look: () => Promise.reject(new StartError('no network')) },
      { name: 'c', look: () => Promise.resolve([wellAs('c', 'fine')]) },
    ]);
    expect(told.failed).toBe(true);
    expect(told.text.split('\n')).toEqual([
      '✓ a: fine',
      '✗ a: broken',
      '    → mend it',
      '✗ b: no network',
      '    → mend this first: what depends on it was not looked at',
      '✓ c: fine',
      '',
      '2 faults',
    ]);
  });
});

describe('a deployment', () => {
  test('SQL: values as literals, quotes doubled, a NUL as bytes', () => {
    const sql = fillStatement('SELECT ?1, ?2, ?10, ?1', ["it's", null, 3, 4, 5, 6, 7, 8, 9, 'a\0b']);
    expect(sql).toBe("SELECT 'it''s', NULL, CAST(x'610062' AS TEXT), 'it''s'");
    expect(fillStatement('SELECT ?1', ['?2'])).toBe("SELECT '?2'");
  });

  test('§11 every call is a run of wrangler on the remote stores; no secret is among its arguments', async () => {
    const runs: (readonly string[])[] = [];
    const store = openWranglerStore(['--remote', '--env', 'staging'], (args) => {
      runs.push(args);
      return Promise.resolve(args.includes('d1') ? '[{"results":[{"n":1}]}]' : '[{"name":"key:a"}]');
    });
    expect(await store.listEntries('KEYS', 'key:')).toEqual(['key:a']);
    expect(await store.readEntry('KEYS', 'key:b')).toBe(null);
    await store.readEntry('CATALOG', 'key:a');
    await store.writeEntry('KEYS', 'key:a', 'secret text');
    expect([...(await store.readEntries('KEYS', 'key:'))].map(([name]) => name)).toEqual(['key:a']);
    expect(await store.query('SELECT ?1', 'x')).toEqual([{ n: 1 }]);
    const where = ['--remote', '--env', 'staging'];
    const path = expect.stringMatching(/entry$/);
    const list = (prefix: string, binding: string): string[] => {
      return ['kv', 'key', 'list', '--prefix', prefix, '--binding', binding, ...where];
    };
    expect(runs).toEqual([
      list('key:', 'KEYS'),
      list('key:b', 'KEYS'),
      list('key:a', 'CATALOG'),
      ['kv', 'key', 'get', 'key:a', '--text', '--binding', 'CATALOG', ...where],
      ['kv', 'key', 'put', 'key:a', '--path', path, '--binding', 'KEYS', ...where],
      list('key:', 'KEYS'),
      ['kv', 'key', 'get', 'key:a', '--text', '--binding', 'KEYS', ...where],
      ['d1', 'execute', 'DB', '--json', '--yes', '--command', "SELECT 'x'", ...where],
    ]);
    expect(JSON.stringify(runs)).not.toContain('secret text');
  });
});

describe('the command line', () => {
  const store: OperatorStore = {
    readEntry: () => Promise.resolve(null),
    writeEntry: () => Promise.reject(new Error('nothing is written')),
    listEntries: () => Promise.resolve([]),
    readEntries: () => Promise.resolve(new Map()),
    query: () => Promise.resolve([]),
    close: () => Promise.resolve(),
  };

  async function run(...args: string[]): Promise<{ places: Place[]; printed: string[]; code: number; error: unknown }> {
    const places: Place[] = [];
    const printed: string[] = [];
    let code = 0;
    const program = buildProgram(
      {
        openStore: (place) => {
          places.push(place);
          return Promise.resolve(store);
        },
        readBindings: () => Promise.resolve(new Set(['UPSTREAM_1'])),
        readFile: () => '{"version":1,"models":{"m":{"backends":[]}}}',
        runDoctor: () => Promise.resolve({ data: { faults: 1 }, text: '1 fault', failed: true }),
        print: (text) => void printed.push(text),
        note: (text) => void printed.push(text),
        stdout: process.stdout,
        progress: () => ({ start: () => undefined, at: () => undefined, stop: () => undefined }),
        now: () => NOW,
        stopped: new AbortController().signal,
      },
      (next) => (code = next),
    );
    const silent = { writeOut: () => undefined, writeErr: () => undefined };
    const all = [program, ...program.commands, ...program.commands.flatMap(({ commands }) => commands)];
    for (const command of all) command.exitOverride().configureOutput(silent);
    const error = await program.parseAsync(args, { from: 'user' }).then(
      () => null,
      (thrown: unknown) => thrown,
    );
    return { places, printed, code, error };
  }

  test('§11 local by default, remote when it is said, options before and behind the command', async () => {
    expect((await run('keys', 'list')).places).toMatchObject([{ remote: false, state: '.turnpike', json: false }]);
    expect((await run('--remote', 'keys', 'list')).places).toMatchObject([{ remote: true }]);
    expect((await run('keys', 'list', '--remote', '--env', 'eu', '--json')).places).toMatchObject([
      { remote: true, env: 'eu', json: true },
    ]);
  });

  test('text, or JSON alone', async () => {
    expect((await run('keys', 'list')).printed).toEqual(['no keys']);
    expect((await run('keys', 'list', '--json')).printed).toEqual(['[]']);
  });

  test('what is found wrong is exit code 1', async () => {
    expect(await run('doctor')).toMatchObject({ code: 1, printed: ['1 fault'], error: null });
    expect(await run('catalog', 'check', 'file')).toMatchObject({ code: 1, error: null, places: [] });
    expect(await run('keys', 'list')).toMatchObject({ code: 0 });
  });

  test.each([
    [['keys', 'create']],
    [['keys', 'nonsense']],
    [['keys', 'create', '--workspace', 'a', '--rpm', 'many']],
    [['keys', 'list', '--local', '--remote']],
    [['receipts', 'export', '--format', 'xml']],
    [['receipts', 'export', '--from', 'yesterday']],
    [['receipts', 'tail', '--lines', 'unlimited']],
    [['receipts', 'tail', '--lines', '0']],
    [['keys', 'list', '--nonsense']],
  ])('what is mistyped is said by the parser: %j', async (args) => {
    const { error, places } = await run(...args);
    expect(error).toBeInstanceOf(CommanderError);
    expect([error instanceof CommanderError && error.exitCode > 0, places]).toEqual([true, []]);
  });

  test.each([
    [['credits', 'grant', 'acme', 'much'], 2],
    [['credits', 'grant', 'acme', '0'], 2],
    [['credits', 'grant', 'acme', '0.0000000001'], 2],
    [['credits', 'grant', 'acme', '--', '-5'], 2],
    [['credits', 'grant', 'acme', '5'], 1],
    [['keys', 'create', '--workspace', 'acme', '--id', 'A'], 2],
    [['keys', 'create', '--workspace', 'acme'], 1],
    [['workspaces', 'put', 'no/slash'], 2],
    [['workspaces', 'put', 'acme', '--location', 'mars'], 2],
    [['workspaces', 'put', 'acme', '--disable', '--enable'], 2],
  ])('what cannot be is an error of one line: %j', async (args, exitCode) => {
    const { error } = await run(...args);
    expect(error).toBeInstanceOf(StartError);
    expect(error).toMatchObject({ exitCode, message: expect.not.stringContaining('\n') });
  });

  test('help is no error', async () => {
    vi.spyOn(process.stdout, 'write').mockReturnValue(true);
    expect((await run('--help')).error).toMatchObject({ exitCode: 0 });
    vi.restoreAllMocks();
  });
});
