// The operator's commands on the real stores of a gateway that runs meanwhile: what they write is what the gateway goes by,
// what it records is what they read. The program itself is started where its exit code or its stdout counts.

import { type ChildProcess, spawn } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { PassThrough, Writable } from 'node:stream';
import { text as readAll } from 'node:stream/consumers';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import * as z from 'zod';
import { checkGateway, checkSums } from '../../src/cli/check-gateway.ts';
import { checkCrons, checkKeys, checkMigrations, checkMoney, checkStoredCatalog } from '../../src/cli/check-stores.ts';
import { putCatalog } from '../../src/cli/catalog-commands.ts';
import { grantCredits, listCredits } from '../../src/cli/credit-commands.ts';
import type { Finding } from '../../src/cli/doctor.ts';
import { createKey, listKeys, revokeKey, rotateKey, showKey } from '../../src/cli/key-commands.ts';
import { openLocalStore } from '../../src/cli/local-operator-store.ts';
import type { OperatorStore } from '../../src/cli/operator-store.ts';
import { exportReceipts, replayReceipts, tailReceipts } from '../../src/cli/receipt-commands.ts';
import { StartError } from '../../src/cli/start-error.ts';
import type { LocalGateway } from '../../src/cli/run-locally.ts';
import { listWorkspaces, putWorkspace, showWorkspace } from '../../src/cli/workspace-commands.ts';
import { createWranglerRunner, openWranglerStore } from '../../src/cli/wrangler-operator-store.ts';
import { REPLAY_CRON } from '../../src/core/crons.ts';
import { poll } from './scripted-gateway.ts';
import { ROOT, serve } from './serve.ts';

const ALL_SCOPES = ['inference:write', 'models:read', 'receipts:read'];
const QUIET = { start: () => undefined, at: () => undefined, stop: () => undefined };
const tokenSchema = z.object({ id: z.string(), token: z.string() });

const dir = mkdtempSync(join(tmpdir(), 'turnpike-operator-'));
const stateDir = join(dir, 'state');
let gateway: LocalGateway;
let store: OperatorStore;

beforeAll(async () => {
  const model = {
    context_length: 4096,
    pricing: { input: '1', output: '2' },
    backends: [{ binding: 'DEMO', upstream_model: 'turnpike-demo', engine: 'openai' }],
  };
  gateway = await serve({
    stateDir,
    catalog: { text: JSON.stringify({ version: 1, models: { demo: model } }), origin: 'given' },
    demoVars: { PACE_MS: '0' },
    vars: { KEY_CACHE_MS: '1' },
    onLog: () => undefined,
  });
  store = await openLocalStore(ROOT, stateDir);
});
afterAll(async () => {
  await store.close();
  await gateway.stop();
  rmSync(dir, { recursive: true, force: true });
});

type Program = { readonly code: number | null; readonly stdout: string; readonly stderr: string };

/** Runs the program as `npm run turnpike` does. */
async function turnpike(...args: string[]): Promise<Program> {
  return startTurnpike(...args).ended;
}

function startTurnpike(...args: string[]): { readonly child: ChildProcess; readonly ended: Promise<Program> } {
  const path = join(ROOT, 'src/cli/turnpike.ts');
  const child = spawn(process.execPath, [path, '--state', stateDir, ...args], { cwd: ROOT, stdio: 'pipe' });
  const code = new Promise<number | null>((resolve) => child.once('close', resolve));
  const ended = Promise.all([readAll(child.stdout), readAll(child.stderr), code]);
  return { child, ended: ended.then(([stdout, stderr, exitCode]) => ({ code: exitCode, stdout, stderr })) };
}

async function ask(token: string, path = '/v1/chat/completions'): Promise<number> {
  const body = { model: 'demo', max_tokens: 4, messages: [{ role: 'user', content: 'Hello' }] };
  const post = { method: 'POST', body: JSON.stringify(body) };
  const headers = { authorization: `Bearer ${token}`, 'content-type': 'application/json' };
  const response = await fetch(gateway.url + path, { headers, ...(path.startsWith('/v1/chat') ? post : {}) });
  await response.text();
  return response.status;
}

const asks = (token: string, status: number): Promise<number> =>
  poll(
    () => ask(token),
    (got) => got === status,
    15_000,
  );

async function makeKey(workspace: string, id: string): Promise<string> {
  return tokenSchema.parse((await createKey(store, { workspace, id, scopes: ALL_SCOPES })).data).token;
}

const faultsOf = (findings: readonly Finding[]): readonly string[] =>
  findings.filter(({ fix }) => fix !== null).map(({ what, detail }) => `${what}: ${detail}`);

describe('one workspace from its first key to its last receipt', () => {
  let token = '';

  test('§2 a key that is made works; its token is told once and is nowhere in the stores', async () => {
    await putWorkspace(store, 'acme', { name: 'Acme', rpm: 1000, billing: 'prepaid' });
    token = await makeKey('acme', 'prod-web');
    expect(await store.readEntry('KEYS', 'key:prod-web')).not.toContain(token.slice('tp_prod-web_'.length));
    const told = JSON.stringify([await showKey(store, 'prod-web', 0), await listKeys(store, 'acme', 0)]);
    expect(told).not.toMatch(/sha256|tp_prod-web_/);
    expect(await ask(token, '/v1/models')).toBe(200);
    await expect(createKey(store, { workspace: 'acme', id: 'prod-web' })).rejects.toThrow(
      /there is a key prod-web already/,
    );
  });

  test('§5 a grant works within seconds; what was granted stands in the list', async () => {
    expect((await grantCredits(store, 'acme', '5', 'first')).text).toContain(
      '5.000000000 USD in all'.replace(' USD', ''),
    );
    await asks(token, 200);
    await grantCredits(store, 'acme', '-1', 'too much');
    await store.query("INSERT INTO credit_grants (workspace, amount_usd) VALUES ('acme', 'five')");
    expect((await listCredits(store, 'acme')).data).toMatchObject([
      { amount_usd: '5.000000000', note: 'first', malformed: false },
      { amount_usd: '-1.000000000', malformed: false },
      { amount_usd: 'five', malformed: true },
    ]);
  });

  test('§2 a rotated key: the old token for the grace, the new one for good', async () => {
    const old = token;
    token = tokenSchema.parse((await rotateKey(store, 'prod-web', 60_000, Date.now())).data).token;
    await asks(token, 200);
    expect(await ask(old)).toBe(200);
    token = tokenSchema.parse((await rotateKey(store, 'prod-web', 0, Date.now())).data).token;
    await asks(token, 200);
    expect(await ask(old)).toBe(401);
  });

  test('§2 limits and being disabled take hold; members that the commands do not know stay', async () => {
    const entry = await store.readEntry('KEYS', 'workspace:acme');
    await store.writeEntry('KEYS', 'workspace:acme', JSON.stringify({ ...JSON.parse(entry ?? '{}'), owner: 'Jo' }));
    await putWorkspace(store, 'acme', { disable: true, tpm: null });
    await asks(token, 401);
    const put = await putWorkspace(store, 'acme', { enable: true });
    expect(put.data).toMatchObject({ entry: { name: 'Acme', owner: 'Jo', limits: { rpm: 1000, tpm: null } } });
    expect((await showWorkspace(store, 'acme')).text).toContain('"owner": "Jo"');
    expect((await listWorkspaces(store)).text).toMatch(/^acme +active +Acme +prepaid +rpm 1000, tpm unlimited$/m);
    await asks(token, 200);
  });

  test('§12 doctor, a good setup: a test request, its receipt in D1, and ledger and D1 agree', async () => {
    const findings = await checkGateway(store, { url: `${gateway.url}/v1/`, key: token });
    expect(faultsOf(findings)).toEqual([]);
    expect(findings.map(({ what }) => what)).toEqual(['test request', 'receipt', 'ledger']);
  });

  test('§12 the record is read: newest, JSON lines, CSV, by time; a file is never overwritten', async () => {
    const count = async (): Promise<number> =>
      Number((await store.query('SELECT count(*) AS n FROM receipts'))[0]?.['n']);
    await poll(count, (rows) => rows >= 5, 15_000);
    const printed: string[] = [];
    await tailReceipts(
      store,
      { workspace: 'acme', lines: 3, follow: false },
      (row) => printed.push(String(row['id'])),
      AbortSignal.abort(),
    );
    expect([printed.length, printed.toSorted()]).toEqual([3, printed]);
    const following = new AbortController();
    const followed: string[] = [];
    const tail = tailReceipts(
      store,
      { workspace: 'acme', lines: 1, follow: true },
      (row) => followed.push(`${row['id']} ${row['rev']}`),
      following.signal,
    );
    await expect.poll(() => followed.length).toBe(1);
    // Three at once where it began with one, all of them older than what was shown.
    const oldest = 'WHERE id IN (SELECT id FROM receipts ORDER BY id LIMIT 3)';
    await store.query(`UPDATE receipts SET rev = rev + 1 ${oldest}`);
    await expect.poll(() => followed.length, { timeout: 5000 }).toBe(4);
    following.abort();
    await tail;
    await store.query(`UPDATE receipts SET rev = rev - 1 ${oldest}`);
    const read = async (format: 'jsonl' | 'csv', range: { from?: string; to?: string } = {}): Promise<string[]> => {
      const out = new PassThrough();
      const whole = readAll(out);
      await exportReceipts(store, { format, ...range }, out, QUIET);
      out.end();
      return (await whole).split(/\r?\n/).filter((line) => line !== '');
    };
    const lines = await read('jsonl');
    const rows = await count();
    expect(lines).toHaveLength(rows);
    expect(JSON.parse(lines.at(-1) ?? '')).toMatchObject({
      workspace: 'acme',
      key: 'prod-web',
      cost_nano_usd: expect.any(Number),
    });
    const [head, ...records] = await read('csv');
    expect(head).toMatch(/^workspace,id,rev,key,/);
    expect(records).toHaveLength(rows);
    expect(await read('jsonl', { to: '2026-01-01T00:00:00.000Z' })).toEqual([]);
    const output = join(dir, 'receipts.jsonl');
    await exportReceipts(store, { format: 'jsonl', output }, process.stdout, QUIET);
    expect([readFileSync(output, 'utf8').trimEnd().split('\n').length, statSync(output).mode & 0o777]).toEqual([
      rows,
      0o600,
    ]);
    await expect(exportReceipts(store, { format: 'jsonl', output }, process.stdout, QUIET)).rejects.toThrow(
      /there already/,
    );
    // `| head` has had enough: no fault. A disk that is full is one, in one line.
    const breaking = (code: string): Writable =>
      new Writable({ write: (_chunk, _encoding, done) => done(Object.assign(new Error(code), { code })) });
    await exportReceipts(store, { format: 'jsonl' }, breaking('EPIPE'), QUIET);
    await expect(exportReceipts(store, { format: 'jsonl' }, breaking('ENOSPC'), QUIET)).rejects.toThrow(StartError);
  });

  test('§9 after a restore of D1 a replay brings back what ledgers keep, and doubles nothing', async () => {
    const query = 'SELECT id, rev, cost_nano_usd FROM receipts ORDER BY id';
    const before = await store.query(query);
    await store.query('DELETE FROM receipts WHERE id IN (SELECT id FROM receipts ORDER BY id LIMIT 3)');
    const replaying = replayReceipts(store, { workspace: 'acme', wait: true }, Date.now(), QUIET);
    await expect.poll(() => store.query('SELECT 1 AS x FROM replays WHERE done_at IS NULL')).toHaveLength(1);
    await gateway.runScheduled(REPLAY_CRON);
    expect((await replaying).text).toMatch(/^1 ledger asked: \d+ receipts to be carried/);
    await expect.poll(() => store.query(query), { timeout: 15_000, interval: 200 }).toEqual(before);
    await expect(replayReceipts(store, { workspace: 'nobody', wait: false }, 0, QUIET)).rejects.toThrow(/no workspace/);
  });

  test('§12 doctor: a ledger that does not agree with D1', async () => {
    await store.query("UPDATE receipts SET cost_nano_usd = cost_nano_usd + 1 WHERE workspace = 'acme'");
    const compared = await checkSums(store, { url: gateway.url, key: token, settledWithinMs: 0 }, 'acme');
    expect(faultsOf(compared)).toEqual([
      expect.stringMatching(/^ledger: acme spent [\d.]+ USD by its ledger, [\d.]+ by D1$/),
    ]);
  });

  test('§2 a revoked key is refused, and no command hands out a token that would be', async () => {
    await revokeKey(store, 'prod-web');
    await asks(token, 401);
    expect((await listKeys(store, undefined, Date.now())).text).toMatch(/^prod-web +acme +revoked/m);
    await expect(rotateKey(store, 'prod-web', 0, 0)).rejects.toThrow(/prod-web is revoked/);
    // Its entry may be gone, or damaged: the row stops it all the same.
    expect((await revokeKey(store, 'long-gone')).text).toContain('it has no entry');
    await expect(createKey(store, { workspace: 'acme', id: 'long-gone' })).rejects.toThrow(/was revoked/);
    await store.writeEntry('KEYS', 'key:torn', '{"workspace"');
    expect((await revokeKey(store, 'torn')).text).toContain('its entry is damaged, and was left');
    const rows = await store.query('SELECT key_id FROM revoked_keys ORDER BY key_id');
    expect(rows.map((row) => row['key_id'])).toEqual(['long-gone', 'prod-web', 'torn']);
  });
});

describe('what is wrong', () => {
  test('§2 doctor, a broken setup: each fault is named', async () => {
    await store.query("DELETE FROM revoked_keys WHERE key_id = 'torn'");
    await store.query(
      "INSERT INTO replays (workspace, since, requested_at) VALUES ('acme', '2026', '2026-01-01 00:00:00')",
    );
    expect(faultsOf(await checkCrons(store))).toEqual(['replays: 1 ledger not asked yet']);
    await store.writeEntry('KEYS', 'key:damaged', '{"workspace":"acme"');
    await store.writeEntry(
      'KEYS',
      'key:orphan',
      JSON.stringify({ workspace: 'gone', hash: `sha256:${'0'.repeat(64)}` }),
    );
    await store.writeEntry('KEYS', 'workspace:ruin', '{"billing":"barter"}');
    await putWorkspace(store, 'poor', { billing: 'prepaid' });
    expect(faultsOf(await checkKeys(store, true))).toEqual([
      expect.stringMatching(/^workspace ruin: billing: /),
      'key damaged: not a JSON object',
      'key demo: the key of npm start is in a deployment',
      'key orphan: its workspace gone is missing',
      'key torn: not a JSON object',
    ]);
    expect(faultsOf(await checkMoney(store))).toEqual([
      expect.stringMatching(/^grant \d: 'five' is no amount/),
      'workspace poor: it is prepaid and was never granted anything',
    ]);
    expect(faultsOf(await checkStoredCatalog(store, new Set()))).toEqual([
      'catalog, model demo: there is no binding DEMO',
    ]);
    expect(
      faultsOf(await checkMigrations(store, ['0001_receipts.sql', '9999_later.sql'], 'd1_migrations', 'x')),
    ).toEqual(['D1: not applied: 9999_later.sql']);
    expect(faultsOf(await checkGateway(store, { url: gateway.url, key: 'tp_x' }))).toEqual([
      expect.stringMatching(/401/),
    ]);
  });

  test('§2 a catalog with a fault is not stored; a good one is, and is the last good one', async () => {
    const before = await store.readEntry('CATALOG', 'catalog');
    const faulty =
      '{"version":1,"models":{"m":{"backends":[{"binding":"NOPE","upstream_model":"x","engine":"vllm"}]}}}';
    expect(await putCatalog(store, faulty, new Set(['DEMO']))).toMatchObject({ failed: true });
    expect(await store.readEntry('CATALOG', 'catalog')).toBe(before);
    const good = faulty.replace('NOPE', 'DEMO');
    expect((await putCatalog(store, good, new Set(['DEMO']))).text).toBe('Stored:\n- demo\n+ m');
    expect([
      await store.readEntry('CATALOG', 'catalog'),
      await store.readEntry('CATALOG', 'catalog:last-good'),
    ]).toEqual([good, good]);
  });

  test('§11 the program: JSON alone on stdout, exit codes 0, 1 and 2, one line for what went wrong', async () => {
    const catalog = join(dir, 'catalog.json');
    writeFileSync(catalog, '{"version":2}');
    const [keys, doctor, check, usage, missing] = await Promise.all([
      turnpike('keys', 'list', '--json'),
      turnpike('doctor', '--json'),
      turnpike('catalog', 'check', catalog),
      turnpike('keys', 'create'),
      turnpike('keys', 'show', 'nobody'),
    ]);
    expect([
      keys.code,
      z
        .array(z.object({ id: z.string() }))
        .parse(JSON.parse(keys.stdout))
        .map(({ id }) => id),
    ]).toEqual([0, expect.arrayContaining(['damaged', 'demo', 'orphan', 'prod-web'])]);
    const told = z.object({ faults: z.number() }).parse(JSON.parse(doctor.stdout));
    expect([doctor.code, told.faults]).toEqual([1, 7]);
    expect([check.code, check.stdout]).toEqual([1, expect.stringMatching(/^✗ \(document\): /)]);
    expect([usage.code, usage.stderr]).toEqual([2, expect.stringContaining('--workspace')]);
    expect([missing.code, missing.stdout, missing.stderr]).toEqual([1, '', 'turnpike: there is no key nobody\n']);
  });

  test('§11 the program: a command that waits ends with Ctrl-C', async () => {
    const count = async (): Promise<number> => (await store.query('SELECT seq FROM replays')).length;
    const before = await count();
    const { child, ended } = startTurnpike('receipts', 'replay', '--workspace', 'acme', '--wait');
    await poll(count, (rows) => rows > before, 15_000);
    child.kill('SIGINT');
    expect(await ended).toMatchObject({ code: 130, stdout: '', stderr: '' });
  });

  test('§11 wrangler’s stores and ours are the same: entries and rows of one are those of the other', async () => {
    const wrangler = openWranglerStore(['--local', '--persist-to', stateDir], createWranglerRunner(ROOT));
    const text = '{"workspace":"acme","name":"O\'Neil \\u0000 ü\\n"}';
    await wrangler.writeEntry('KEYS', 'key:by-wrangler', text);
    expect(await store.readEntry('KEYS', 'key:by-wrangler')).toBe(text);
    const [listed, read, rows] = await Promise.all([
      wrangler.listEntries('KEYS', 'key:'),
      wrangler.readEntry('KEYS', 'key:by-wrangler'),
      wrangler.query('SELECT ?1 AS quoted, ?2 AS counted, ?3 AS absent', "it's", 5, null),
    ]);
    expect([listed, read]).toEqual([await store.listEntries('KEYS', 'key:'), text]);
    expect(rows).toEqual([{ quoted: "it's", counted: 5, absent: null }]);
    await expect(wrangler.query('SELECT nope')).rejects.toThrow(/^wrangler d1 execute DB: no such column: nope/);
  });
});
