// GET /openapi.json, GET /docs and the key maker on a running gateway: what is documented is what is answered, the page
// may load and send nothing, and a key it mints is a key. The same page in a real browser is test/browser/docs.test.ts.

import { createHash } from 'node:crypto';
import { Ajv2020 } from 'ajv/dist/2020.js';
import addFormats from 'ajv-formats';
import { Window } from 'happy-dom';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import * as z from 'zod';
import { DEMO_TOKEN } from '../../src/cli/demo-key.ts';
import { buildCatalog } from '../../src/cli/local-catalog.ts';
import { type LocalGateway } from '../../src/cli/run-locally.ts';
import { apiKeySchema } from '../../src/core/api-key.ts';
import { serve } from './serve.ts';

let gateway: LocalGateway;
beforeAll(async () => {
  const catalog = { text: JSON.stringify(buildCatalog([], true)), origin: 'given' } as const;
  gateway = await serve({ catalog, onLog: () => undefined });
});
afterAll(() => gateway.stop());

const documentSchema = z.looseObject({
  servers: z.array(z.object({ url: z.string() })),
  components: z.looseObject({ schemas: z.record(z.string(), z.unknown()) }),
  paths: z.record(z.string(), z.record(z.string(), z.unknown())),
});

async function read(path: string, init: RequestInit = {}): Promise<Response> {
  return fetch(`${gateway.url}${path}`, init);
}

const authorization = `Bearer ${DEMO_TOKEN}`;
const post = (path: string, body: object): Promise<Response> =>
  read(path, {
    method: 'POST',
    headers: { authorization, 'content-type': 'application/json' },
    body: JSON.stringify({ model: 'turnpike-demo', max_tokens: 8, ...body }),
  });
const CHAT = { messages: [{ role: 'user', content: 'Hello' }] };

describe('§1 GET /openapi.json', () => {
  test('§1 without a key, with the gateway’s own address, CORS and a request id', async () => {
    const response = await read('/openapi.json', { headers: { origin: 'https://app.example' } });
    expect(response.status).toBe(200);
    expect(response.headers.get('content-type')).toBe('application/json');
    expect(response.headers.get('access-control-allow-origin')).toBe('*');
    expect(response.headers.get('x-request-id')).toMatch(/^req_/);
    expect(documentSchema.parse(await response.json()).servers).toEqual([{ url: gateway.url }]);
  });

  test('§1 real answers are what the document says they are', async () => {
    const document = documentSchema.parse(await (await read('/openapi.json')).json());
    const ajv = new Ajv2020({ strict: false });
    addFormats.default(ajv);
    ajv.addSchema({ $id: 'api', ...document });
    const reader = `tp_reader_${'r'.repeat(43)}`;
    const scopes = ['inference:write', 'models:read', 'receipts:read'];
    const entry = { workspace: 'demo', hash: hash(reader), scopes };
    await (await gateway.getKVNamespace('KEYS')).put('key:reader', JSON.stringify(entry));
    const chat = await post('/v1/chat/completions', CHAT);
    const nowSeconds = Math.floor(Date.now() / 1000);
    const get = (path: string): Promise<Response> => read(path, { headers: { authorization: `Bearer ${reader}` } });
    const answers: readonly (readonly [string, Response])[] = [
      ['ChatCompletion', chat],
      ['TextCompletion', await post('/v1/completions', { prompt: 'Once' })],
      ['Error', await post('/v1/chat/completions', {})],
      ['ModelList', await get('/v1/models')],
      ['Model', await get('/v1/models/turnpike-demo')],
      ['Receipt', await get(`/v1/receipts/${chat.headers.get('x-request-id') ?? ''}`)],
      ['ReceiptList', await get('/v1/receipts')],
      ['UsageList', await get(`/v1/usage?from=${nowSeconds - 86_400}&to=${nowSeconds + 60}`)],
      ['Credits', await get('/v1/credits')],
      ['Health', await read('/health')],
    ];
    for (const [name, answer] of answers) {
      const check = ajv.getSchema(`api#/components/schemas/${name}`);
      expect(check, name).toBeDefined();
      expect(check?.(await answer.json()), `${name}: ${ajv.errorsText(check?.errors)}`).toBe(true);
    }
    const stream = await (await post('/v1/chat/completions', { ...CHAT, stream: true })).text();
    const events = [...stream.matchAll(/^data: (\{.*)$/gm)].map(([, json]): unknown => JSON.parse(json ?? ''));
    expect(events.length).toBeGreaterThan(2);
    const check = ajv.getSchema('api#/components/schemas/ChatCompletionChunk');
    for (const event of events) expect(check?.(event), ajv.errorsText(check?.errors)).toBe(true);
  });

  test('§1 a request that the document refuses, the gateway refuses; one that it allows passes', async () => {
    const document = documentSchema.parse(await (await read('/openapi.json')).json());
    const ajv = new Ajv2020({ strict: false });
    ajv.addSchema({ $id: 'api', ...document });
    const pointer = 'paths/~1v1~1chat~1completions/post/requestBody/content/application~1json/schema';
    const check = ajv.getSchema(`api#/${pointer}`);
    const model = 'turnpike-demo';
    const bodies = [{}, { temperature: 3 }, { messages: [] }, { n: 0 }, { stop: ['a'] }, { user: 1 }, { tools: null }];
    const verdicts: [object, boolean, boolean][] = [];
    for (const over of bodies) {
      const body = { model, ...CHAT, ...over };
      verdicts.push([over, check?.(body) === true, (await post('/v1/chat/completions', body)).status === 200]);
    }
    for (const [over, documented, answered] of verdicts) expect([over, answered]).toEqual([over, documented]);
    expect(verdicts.filter(([, documented]) => documented)).toHaveLength(3);
  });
});

function hash(token: string): string {
  return `sha256:${createHash('sha256').update(token).digest('hex')}`;
}

describe('§1, §10 GET /docs', () => {
  test('§10 a strict Content-Security-Policy: this style, this script, nothing else', async () => {
    const response = await read('/docs');
    const page = await response.text();
    const inside = (tag: string): string[] =>
      [...page.matchAll(new RegExp(`<${tag}>([^]*?)</${tag}>`, 'g'))].map(([, text]) => text ?? '');
    const digest = (text: string | undefined): string =>
      `'sha256-${createHash('sha256')
        .update(text ?? '')
        .digest('base64')}'`;
    expect([inside('script').length, inside('style').length]).toEqual([1, 1]);
    expect(response.headers.get('content-security-policy')?.split('; ')).toEqual([
      "default-src 'none'",
      `script-src ${digest(inside('script')[0])}`,
      `style-src ${digest(inside('style')[0])}`,
      'img-src data:',
      "base-uri 'none'",
      "form-action 'none'",
      "frame-ancestors 'none'",
    ]);
    expect(response.headers.get('x-request-id')).toMatch(/^req_/);
    expect(response.headers.get('access-control-allow-origin')).toBe('*');
    expect(response.headers.get('x-content-type-options')).toBe('nosniff');
  });

  test('§1 nothing on it comes from elsewhere, and no attribute would need a looser policy', async () => {
    const page = await (await read('/docs')).text();
    const markup = page.replaceAll(/<(script|style)>[^]*?<\/\1>/g, '');
    expect(markup).not.toMatch(/\s(style|on\w+|src|action|srcset)=/i);
    expect([...markup.matchAll(/href="([^"]*)"/g)].map(([, href]) => href)).toEqual(
      expect.arrayContaining(['data:,', '#keys', '/openapi.json']),
    );
    expect(markup).not.toMatch(/href="(?!#|data:,"|\/openapi\.json")/);
    expect(page).toContain(`curl -N ${gateway.url}/v1/chat/completions`);
  });

  test('§1 HEAD has no body, POST is 405, a preflight is answered', async () => {
    const head = await read('/docs', { method: 'HEAD' });
    expect([head.status, await head.text()]).toEqual([200, '']);
    expect((await read('/docs', { method: 'POST', body: '' })).status).toBe(405);
    expect((await read('/openapi.json', { method: 'OPTIONS' })).status).toBe(204);
  });
});

/** The page in a document of its own, its script run. What it would send is counted. */
async function openPage(
  address = `${gateway.url}/docs`,
): Promise<{ readonly window: Window; readonly sent: string[] }> {
  const sent: string[] = [];
  const refuse = (name: string) => (): never => {
    sent.push(name);
    throw new Error(`${name} was used`);
  };
  const window = new Window({
    url: address,
    settings: {
      enableJavaScriptEvaluation: true,
      suppressInsecureJavaScriptEnvironmentWarning: true,
      disableJavaScriptFileLoading: true,
    },
  });
  Object.assign(window, { fetch: refuse('fetch'), XMLHttpRequest: refuse('XMLHttpRequest'), open: refuse('open') });
  window.document.write(await (await read('/docs')).text());
  await window.happyDOM.waitUntilComplete();
  return { window, sent };
}

async function fill(window: Window, values: Readonly<Record<string, string>>): Promise<void> {
  for (const [id, value] of Object.entries(values)) {
    const input = window.document.getElementById(id);
    if (input === null || !('value' in input)) throw new Error(`no field ${id}`);
    input.value = value;
  }
  window.document.querySelector<HTMLElementLike>('button[type=submit]')?.click();
  // Hashing takes a turn or two of the loop.
  await expect.poll(() => isShown(window) || textOf(window, 'fault') !== '').toBe(true);
}

type HTMLElementLike = NonNullable<ReturnType<Window['document']['querySelector']>> & { readonly click: () => void };
const textOf = (window: Window, id: string): string => window.document.getElementById(id)?.textContent ?? '';
const isShown = (window: Window): boolean => window.document.getElementById('made')?.hasAttribute('hidden') === false;

describe('§2 the key maker', () => {
  test('§2 what it shows, pasted into KV, makes the token work as it was limited', async () => {
    const { window, sent } = await openPage();
    await fill(window, {
      'key-id': 'made-here',
      workspace: 'demo',
      name: 'Anna’s "laptop"',
      rpm: '2',
      models: 'turnpike-demo, other',
      expires: '2099-01-01',
    });
    const token = textOf(window, 'token');
    expect(token).toMatch(/^tp_made-here_[A-Za-z0-9_-]{43}$/);
    expect(textOf(window, 'entry-key')).toBe('key:made-here');
    const value = textOf(window, 'entry-value');
    expect(apiKeySchema.parse(JSON.parse(value))).toEqual({
      workspace: 'demo',
      hash: hash(token),
      name: 'Anna’s "laptop"',
      scopes: ['inference:write', 'models:read'],
      models: ['turnpike-demo', 'other'],
      limits: { rpm: 2 },
      expires_at: '2099-01-01T00:00:00Z',
    });
    expect(textOf(window, 'command')).toContain(`'key:made-here' '${value}'`);
    expect(textOf(window, 'revoke')).toBe("INSERT INTO revoked_keys (key_id) VALUES ('made-here')");
    await (await gateway.getKVNamespace('KEYS')).put(textOf(window, 'entry-key'), value);
    const statuses: number[] = [];
    for (let asked = 0; asked < 3; asked += 1) {
      const response = await read('/v1/chat/completions', {
        method: 'POST',
        headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json' },
        body: JSON.stringify({ model: 'turnpike-demo', max_tokens: 4, ...CHAT }),
      });
      await response.text();
      statuses.push(response.status);
    }
    expect(statuses).toEqual([200, 200, 429]);
    expect(sent).toEqual([]);
    await window.happyDOM.close();
  });

  test.each([
    ['https://api.example.com/docs', '--remote'],
    ['http://127.0.0.1:8787/docs', '--local --persist-to .turnpike'],
  ])('§2 the command for a gateway at %s writes %s', async (address, where) => {
    const { window } = await openPage(address);
    await fill(window, {});
    expect(textOf(window, 'command')).toContain(`wrangler kv key put ${where} --binding KEYS 'key:prod-web' '{`);
    await window.happyDOM.close();
  });

  test('§2 every key is another; forgotten, it is nowhere on the page', async () => {
    const { window } = await openPage();
    await fill(window, {});
    const first = textOf(window, 'token');
    await fill(window, {});
    await expect.poll(() => textOf(window, 'token')).not.toBe(first);
    const second = textOf(window, 'token');
    expect(window.document.documentElement.outerHTML).not.toContain(first);
    window.document.querySelector<HTMLElementLike>('#forget')?.click();
    expect(isShown(window)).toBe(false);
    expect(window.document.documentElement.outerHTML).not.toContain(second);
    await window.happyDOM.close();
  });

  test.each([
    ['key-id', 'Prod Web', 'small letters'],
    ['key-id', '', 'small letters'],
    ['workspace', 'a/b', 'letters, digits'],
    ['rpm', '-1', 'whole number'],
    ['tpm', '1e9', 'whole number'],
    ['concurrency', '1000000001', 'whole number'],
  ])('§2 %s "%s" is refused beside the button, and no key is made', async (id, value, fault) => {
    const { window } = await openPage();
    await fill(window, { [id]: value });
    expect(textOf(window, 'fault')).toContain(fault);
    expect(window.document.getElementById(id)?.getAttribute('aria-invalid')).toBe('true');
    expect([isShown(window), textOf(window, 'token')]).toEqual([false, '']);
    await window.happyDOM.close();
  });
});
