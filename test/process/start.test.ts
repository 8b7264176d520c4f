// The real `npm start`, as a person runs it: spawned, on a free port, against scripted inference servers on loopback.
// Three starts share the sentences between them, because each takes seconds.

import { execFile, spawn, type ChildProcess } from 'node:child_process';
import { createHash } from 'node:crypto';
import { existsSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { createServer, type Server } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';

import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import * as z from 'zod';

import { DEMO_TOKEN } from '../../src/cli/demo-key.ts';
import { findFreePort, ROOT } from './serve.ts';

const run = promisify(execFile);
const dir = mkdtempSync(join(tmpdir(), 'turnpike-test-'));
const stateDir = join(dir, 'state');
const node = join(ROOT, 'node_modules/.bin/node');

let started: Start | undefined;
afterAll(() => {
  endStarted();
  rmSync(dir, { recursive: true, force: true });
});

type Start = { readonly npm: ChildProcess; readonly port: number; readonly output: () => string; stderr: () => string };

/** Starts npm in a process group of its own, as a terminal does, and waits for the ready line. */
async function npmStart(...args: string[]): Promise<Start> {
  endStarted();
  const port = await findFreePort();
  const all = ['start', '--', '--port', String(port), '--state', stateDir, ...args];
  const npm = spawn('npm', all, { cwd: ROOT, detached: true });
  let output = '';
  let errors = '';
  npm.stdout.setEncoding('utf8').on('data', (text: string) => (output += text));
  npm.stderr.setEncoding('utf8').on('data', (text: string) => (errors += text));
  started = { npm, port, output: () => output, stderr: () => errors };
  await waitFor(() => /^ready on .*\n.*\n/m.test(output) || npm.exitCode !== null, 25_000);
  expect(output, errors).toContain(`ready on http://127.0.0.1:${port}\n`);
  return started;
}

// A failed test must not leave a gateway behind for the next one.
function endStarted(): void {
  if (started === undefined || started.npm.exitCode !== null || started.npm.signalCode !== null) return;
  process.kill(-(started.npm.pid ?? 0), 'SIGTERM');
}

async function waitFor(condition: () => boolean | Promise<boolean>, timeoutMs: number): Promise<void> {
  const deadline = Date.now() + timeoutMs;
  while (!(await condition())) {
    if (Date.now() > deadline) throw new Error(`not within ${timeoutMs} ms: ${String(condition)}`);
    await new Promise((resolve) => setTimeout(resolve, 30));
  }
}

/** All processes below `pid`, as `pid command`. */
async function listDescendants(pid: number): Promise<{ pid: number; command: string }[]> {
  const { stdout } = await run('ps', ['-A', '-o', 'pid=,ppid=,args=']);
  const rows = stdout.split('\n').flatMap((line) => {
    const match = /^\s*(\d+)\s+(\d+)\s+(.*)$/.exec(line);
    return match === null ? [] : [{ pid: Number(match[1]), parent: Number(match[2]), command: match[3] ?? '' }];
  });
  const below = (parent: number): typeof rows =>
    rows.filter((row) => row.parent === parent).flatMap((row) => [row, ...below(row.pid)]);
  return below(pid);
}

function isAlive(pid: number): boolean {
  try {
    return process.kill(pid, 0);
  } catch {
    return false;
  }
}

async function expectAllGone(processes: readonly { pid: number; command: string }[], timeoutMs: number): Promise<void> {
  expect(processes.map(({ command }) => command).join('\n')).toMatch(/workerd/);
  await waitFor(() => processes.every(({ pid }) => !isAlive(pid)), timeoutMs);
}

async function wrangler(...args: string[]): Promise<string> {
  const cli = join(ROOT, 'node_modules/wrangler/bin/wrangler.js');
  const env = { ...process.env, WRANGLER_SEND_METRICS: 'false', WRANGLER_HIDE_BANNER: 'true', CI: '1' };
  const { stdout } = await run(node, [cli, ...args, '--local', '--persist-to', stateDir], { cwd: ROOT, env });
  return stdout;
}

const listSchema = z.object({ data: z.array(z.object({ id: z.string() })).optional() });

async function listModels(port: number, token: string): Promise<{ status: number; ids: string[] }> {
  const headers = { authorization: `Bearer ${token}` };
  const response = await fetch(`http://127.0.0.1:${port}/v1/models`, { headers });
  const body = listSchema.parse(await response.json());
  return { status: response.status, ids: (body.data ?? []).map((model) => model.id) };
}

function buildKeyEntry(token: string): { workspace: string; hash: string } {
  return { workspace: 'demo', hash: `sha256:${createHash('sha256').update(token).digest('hex')}` };
}

function runCurlLine(start: Start): Promise<{ stdout: string }> {
  const curl = start
    .output()
    .split('\n')
    .find((line) => line.startsWith('curl '));
  return run('bash', ['-c', `${curl ?? 'no curl line'} -sS`]);
}

type Scripted = { readonly url: string; readonly server: Server; readonly paths: string[] };

/** An inference server that serves `models` and answers each chat with its own name. */
async function script(name: string, models: readonly object[]): Promise<Scripted> {
  const paths: string[] = [];
  const server = createServer((request, response) => {
    paths.push(`${request.method ?? ''} ${request.url ?? ''}`);
    request.resume();
    if (request.method === 'GET') {
      response.end(JSON.stringify({ object: 'list', data: models }));
      return;
    }
    const head = { id: 'x', object: 'chat.completion.chunk', created: 1, model: name };
    const deltas = [{ role: 'assistant', content: `from ${name}` }, {}];
    const events = deltas.map((delta, index) => {
      const finish_reason = index === 1 ? 'stop' : null;
      return `data: ${JSON.stringify({ ...head, choices: [{ index: 0, delta, finish_reason }] })}\n\n`;
    });
    response.writeHead(200, { 'content-type': 'text/event-stream' });
    response.end(`${events.join('')}data: [DONE]\n\n`);
  });
  const port = await findFreePort();
  await new Promise<void>((resolve) => server.listen(port, '127.0.0.1', resolve));
  return { url: `http://127.0.0.1:${port}/v1`, server, paths };
}

describe('§11 npm start on a fresh clone', () => {
  const fileToken = `tp_file_${'a'.repeat(43)}`;
  const laterToken = `tp_later_${'b'.repeat(43)}`;
  let start: Start;

  beforeAll(async () => {
    const keysFile = join(dir, 'keys.json');
    writeFileSync(keysFile, JSON.stringify({ 'key:file': buildKeyEntry(fileToken), 'note:x': 'verbatim' }));
    start = await npmStart('--keys', keysFile);
  }, 30_000);

  test('§11 npm start: says what is demo before one ready line and a curl line', () => {
    const lines = start
      .output()
      .split('\n')
      .filter((line) => line !== '' && !line.startsWith('>'));
    expect(lines.map((line) => line.split(' ').slice(0, 2).join(' '))).toEqual(['demo: the', 'ready on', 'curl -N']);
    expect(start.stderr()).toBe('');
  });

  test('§11 npm start: the printed curl line works when pasted, and streams', async () => {
    const { stdout } = await runCurlLine(start);
    expect(stdout).toMatch(/^data: \{.*"chat\.completion\.chunk"/);
    expect(stdout.trimEnd()).toMatch(/data: \[DONE\]$/);
  });

  test('§8 the demo model answers responses too', async () => {
    const answer = await fetch(`http://127.0.0.1:${start.port}/v1/responses`, {
      method: 'POST',
      headers: { authorization: `Bearer ${DEMO_TOKEN}`, 'content-type': 'application/json' },
      body: JSON.stringify({ model: 'turnpike-demo', input: 'Hello', max_output_tokens: 5 }),
    });
    expect(await answer.json()).toMatchObject({
      object: 'response',
      status: 'incomplete',
      usage: { output_tokens: 5 },
    });
  });

  test('§9 the demo key reads its receipts and their sums', async () => {
    const read = async (path: string): Promise<{ readonly data: readonly object[] }> => {
      const headers = { authorization: `Bearer ${DEMO_TOKEN}` };
      const answer = await fetch(`http://127.0.0.1:${start.port}${path}`, { headers });
      expect(answer.status, path).toBe(200);
      return answer.json();
    };
    const nowSeconds = Math.floor(Date.now() / 1000);
    expect((await read('/v1/receipts')).data).toMatchObject([
      { object: 'receipt', key: 'demo', endpoint: '/v1/responses' },
      { object: 'receipt', key: 'demo' },
    ]);
    const { data } = await read(`/v1/usage?from=${nowSeconds - 86_400}&to=${nowSeconds + 60}`);
    expect(data).toMatchObject([{ model: 'turnpike-demo', requests: 2 }]);
  });

  test('§11 --keys: its entries are keys of this gateway', async () => {
    expect(await listModels(start.port, fileToken)).toEqual({ status: 200, ids: ['turnpike-demo'] });
    expect((await listModels(start.port, `tp_file_${'c'.repeat(43)}`)).status).toBe(401);
  });

  test('§11 --state: plain wrangler acts on the same store while it runs', async () => {
    const entry = JSON.stringify(buildKeyEntry(laterToken));
    const [, note, tables] = await Promise.all([
      wrangler('kv', 'key', 'put', '--binding', 'KEYS', 'key:later', entry),
      wrangler('kv', 'key', 'get', '--binding', 'KEYS', 'note:x', '--text'),
      wrangler('d1', 'execute', 'turnpike', '--json', '--command', 'SELECT name FROM d1_migrations ORDER BY id'),
    ]);
    expect(note).toContain('verbatim');
    expect(tables).toContain('.sql');
    expect((await listModels(start.port, laterToken)).status).toBe(200);
  }, 30_000);

  test('§11 --state: wrangler finds no migration left to apply', async () => {
    expect(await wrangler('d1', 'migrations', 'apply', 'turnpike')).toContain('No migrations to apply');
  }, 30_000);

  test('§11 npm start: a taken port is said in one line, and nothing is started', async () => {
    const other = join(dir, 'other');
    const args = ['src/cli/start.ts', '--port', String(start.port), '--state', other];
    const line = `turnpike: port ${start.port} is taken: free it or choose another with --port\n`;
    await expect(run(node, args, { cwd: ROOT })).rejects.toMatchObject({ code: 1, stdout: '', stderr: line });
    expect(existsSync(other)).toBe(false);
  });

  test('§11 npm start: a state folder in use is said in one line', async () => {
    const args = ['src/cli/start.ts', '--port', String(await findFreePort()), '--state', stateDir, '--fresh'];
    await expect(run(node, args, { cwd: ROOT })).rejects.toMatchObject({
      code: 1,
      stderr: expect.stringMatching(/^turnpike: .* is in use by the gateway on port \d+ \(process \d+\)\n$/),
    });
  });

  test('§11 npm start: SIGTERM to npm leaves no process behind', async () => {
    const processes = await listDescendants(start.npm.pid ?? 0);
    start.npm.kill('SIGTERM');
    await expectAllGone(processes, 5_000);
    await waitFor(() => start.npm.exitCode !== null || start.npm.signalCode !== null, 2_000);
  });
});

describe('§11 npm start in front of real servers', () => {
  let first: Scripted;
  let second: Scripted;
  let start: Start;

  beforeAll(async () => {
    first = await script('first', [{ id: 'org/a', owned_by: 'vllm', max_model_len: 4096 }]);
    second = await script('second', [{ id: 'b', owned_by: 'llamacpp' }]);
    start = await npmStart('--fresh', '--upstream', first.url, '--upstream', `${second.url}/`);
  }, 30_000);
  afterAll(() => {
    for (const { server } of [first, second]) {
      server.closeAllConnections();
      server.close();
    }
  });

  const demoToken = 'tp_demo_local-only-demo-key-this-is-not-a-secret-00';

  test('§11 --upstream: models are taken from each server, the demo engine stays', async () => {
    expect((await listModels(start.port, demoToken)).ids).toEqual(
      expect.arrayContaining(['org/a', 'b', 'turnpike-demo']),
    );
  });

  test('§11 --upstream: the curl line names the first server’s first model', async () => {
    const { stdout } = await runCurlLine(start);
    expect(stdout).toContain('from first');
    expect(first.paths).toEqual(['GET /v1/models', 'POST /v1/chat/completions']);
  });

  test('§11 --upstream: the n-th is the binding UPSTREAM_n', async () => {
    const response = await fetch(`http://127.0.0.1:${start.port}/v1/chat/completions`, {
      method: 'POST',
      headers: { authorization: `Bearer ${demoToken}`, 'content-type': 'application/json' },
      body: JSON.stringify({ model: 'b', stream: true, messages: [{ role: 'user', content: 'hi' }] }),
    });
    expect(await response.text()).toContain('from second');
    expect(second.paths).toEqual(['GET /v1/models', 'POST /v1/chat/completions']);
  });

  test('§11 --fresh: the state of the earlier start is gone', async () => {
    expect((await listModels(start.port, `tp_file_${'a'.repeat(43)}`)).status).toBe(401);
  });

  test('§11 npm start: Ctrl-C, twice, ends all processes and says nothing', async () => {
    const processes = await listDescendants(start.npm.pid ?? 0);
    const errors = start.stderr();
    process.kill(-(start.npm.pid ?? 0), 'SIGINT');
    process.kill(-(start.npm.pid ?? 0), 'SIGINT');
    await expectAllGone(processes, 5_000);
    expect(start.stderr()).toBe(errors);
  });
});

describe('§11 npm start: what a catalog and a killed parent do', () => {
  test('§11 --catalog: the curl line names its first model; killing node or npm leaves no workerd', async () => {
    const catalogFile = join(dir, 'catalog.json');
    const backends = [{ binding: 'DEMO', upstream_model: 'turnpike-demo', engine: 'vllm' }];
    writeFileSync(catalogFile, JSON.stringify({ version: 1, models: { mine: { backends } } }));
    const start = await npmStart('--catalog', catalogFile, '--var', 'CORS_ORIGINS=https://a.example');
    expect(start.output()).toContain('"model":"mine"');
    expect((await runCurlLine(start)).stdout).toContain('[DONE]');
    const processes = await listDescendants(start.npm.pid ?? 0);
    const gateway = processes.find(({ command }) => /node(?: \S+)* src\/cli\/start\.ts/.test(command));
    process.kill(gateway?.pid ?? 0, 'SIGKILL');
    await expectAllGone(processes, 5_000);
  }, 40_000);

  test('§11 npm start: what was generated before --catalog does not replace it; SIGKILL to npm ends the rest', async () => {
    const start = await npmStart();
    expect(start.output()).toContain('catalog: kept');
    expect(start.output()).toContain('"model":"mine"');
    const processes = await listDescendants(start.npm.pid ?? 0);
    start.npm.kill('SIGKILL');
    await expectAllGone(processes, 5_000);
  }, 40_000);
});
