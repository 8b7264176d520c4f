// The key maker in a real Chromium: `npm run test:browser`. It needs a Chromium on the machine (CHROMIUM_PATH, else the
// usual places) and fails where there is none; `npm test` runs the same page in a JavaScript document instead. With
// TURNPIKE_SCREENSHOTS=DIR it leaves pictures there.

import { createHash } from 'node:crypto';
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import axe from 'axe-core';
import { type Browser, chromium, type Page } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import * as z from 'zod';
import { buildCatalog } from '../../src/cli/local-catalog.ts';
import { type LocalGateway } from '../../src/cli/run-locally.ts';
import { serve } from '../process/serve.ts';

const PLACES = ['/usr/bin/chromium', '/usr/bin/chromium-browser', '/usr/bin/google-chrome'];
const SCREENSHOTS = process.env['TURNPIKE_SCREENSHOTS'];

let gateway: LocalGateway;
let browser: Browser;
beforeAll(async () => {
  const executablePath = process.env['CHROMIUM_PATH'] ?? PLACES.find((place) => existsSync(place));
  if (executablePath === undefined) throw new Error('no Chromium here: install one, or set CHROMIUM_PATH');
  const catalog = { text: JSON.stringify(buildCatalog([], true)), origin: 'given' } as const;
  gateway = await serve({ catalog, onLog: () => undefined });
  browser = await chromium.launch({ executablePath, args: ['--no-sandbox'] });
});
afterAll(async () => {
  await browser?.close();
  await gateway?.stop();
});

type Opened = { readonly page: Page; readonly requests: string[]; readonly complaints: string[] };

async function open(width: number, colorScheme: 'light' | 'dark'): Promise<Opened> {
  const context = await browser.newContext({ viewport: { width, height: 900 }, colorScheme });
  const page = await context.newPage();
  const requests: string[] = [];
  const complaints: string[] = [];
  page.on('request', (request) => requests.push(request.url()));
  page.on('console', (message) => complaints.push(message.text()));
  page.on('pageerror', (error) => complaints.push(error.message));
  await page.goto(`${gateway.url}/docs`, { waitUntil: 'networkidle' });
  return { page, requests, complaints };
}

const axeSchema = z.looseObject({
  violations: z.array(z.looseObject({ id: z.string(), nodes: z.array(z.looseObject({ html: z.string() })) })),
});

async function keep(page: Page, name: string): Promise<void> {
  if (SCREENSHOTS !== undefined) await page.screenshot({ path: join(SCREENSHOTS, `${name}.png`), fullPage: true });
}

describe('§2, §10 the docs page in a browser', () => {
  test('§10 it makes no request but for itself, and its policy has nothing to complain of', async () => {
    const { page, requests, complaints } = await open(1100, 'light');
    expect(requests.filter((url) => !url.startsWith('data:'))).toEqual([`${gateway.url}/docs`]);
    expect(complaints).toEqual([]);
    const blocked = await page.evaluate("fetch('/health').then(() => false, () => true)");
    expect(blocked, 'the policy forbids every connection').toBe(true);
    await page.context().close();
  });

  test('§2 a minted key works once its entry is in KV; minting sends nothing', async () => {
    const { page, requests, complaints } = await open(1100, 'light');
    const loaded = requests.length;
    await page.getByLabel('Key id').fill('browser-made');
    await page.getByLabel('Workspace').fill('demo');
    await page.getByLabel('Requests a minute').fill('60');
    await page.getByRole('button', { name: 'Make the key' }).click();
    await page.getByRole('heading', { name: 'Your new key' }).waitFor();
    const token = (await page.locator('#token').textContent()) ?? '';
    const value = (await page.locator('#entry-value').textContent()) ?? '';
    expect(token).toMatch(/^tp_browser-made_[A-Za-z0-9_-]{43}$/);
    expect(JSON.parse(value)).toMatchObject({
      workspace: 'demo',
      hash: `sha256:${createHash('sha256').update(token).digest('hex')}`,
      limits: { rpm: 60 },
    });
    await page.waitForLoadState('networkidle');
    expect([requests.length, complaints]).toEqual([loaded, []]);
    await (await gateway.getKVNamespace('KEYS')).put('key:browser-made', value);
    const headers = { authorization: `Bearer ${token}` };
    expect((await fetch(`${gateway.url}/v1/models`, { headers })).status).toBe(200);
    await page.goto('about:blank');
    await page.goBack();
    expect(await page.locator('#token').textContent(), 'shown once').toBe('');
    await page.context().close();
  });

  test('§2 with the keyboard alone, and a fault is told beside the button', async () => {
    const { page } = await open(1100, 'light');
    await page.getByLabel('Key id').fill('Not Good');
    await page.keyboard.press('Enter');
    expect(await page.getByRole('alert').textContent()).toContain('small letters');
    expect(await page.evaluate('document.activeElement.id')).toBe('key-id');
    await page.keyboard.type('fine');
    await page.getByLabel('Key id').fill('fine');
    await page.keyboard.press('Enter');
    await page.getByRole('heading', { name: 'Your new key' }).waitFor();
    expect(await page.evaluate('document.activeElement.id')).toBe('made-title');
    await page.context().close();
  });

  test.each([
    ['desk-light', 1100, 'light'],
    ['desk-dark', 1100, 'dark'],
    ['phone-light', 360, 'light'],
    ['phone-dark', 360, 'dark'],
  ] as const)(
    '§1 nothing is wider than the screen, and axe finds nothing against it: %s',
    async (name, width, scheme) => {
      const { page } = await open(width, scheme);
      await page.getByLabel('Tokens a minute').fill('100000');
      await page.getByRole('button', { name: 'Make the key' }).click();
      await page.getByRole('heading', { name: 'Your new key' }).waitFor();
      await keep(page, name);
      expect(await page.evaluate('document.documentElement.scrollWidth')).toBeLessThanOrEqual(width);
      await page.evaluate(axe.source);
      const { violations } = axeSchema.parse(await page.evaluate('axe.run()'));
      expect(violations.map(({ id, nodes }) => [id, ...nodes.map(({ html }) => html)])).toEqual([]);
      await page.context().close();
    },
  );
});
