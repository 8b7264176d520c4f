// Receipts: the record of §9 in its words, and what each ending costs.

import { expect, test } from 'vitest';
import { toPriceVersion } from '../../src/core/price-version.ts';
import {
  buildOpenReceipt,
  buildReceipt,
  closeAsLost,
  type ReceiptDraft,
  type ReceiptProgress,
  toReceiptObject,
} from '../../src/core/receipt.ts';
import { buildUsage, NO_USAGE } from '../../src/core/usage.ts';

const DRAFT: ReceiptDraft = {
  id: 'req_1',
  workspace: 'acme',
  key: 'prod-web',
  endpoint: '/v1/chat/completions',
  requested_model: 'support',
  upstream_model: 'Qwen/Qwen3-8B',
  revision: null,
  stream: true,
  rates: { input: '0.15', cached_input: '0.075', cache_write: '0.15', output: '0.60' },
  price_version: '3fa9c01b77de',
  created_at: '2026-12-01T10:00:00.000Z',
  client_request_id: null,
  end_user: null,
};
const PROGRESS: ReceiptProgress = {
  served_model: 'Qwen/Qwen3-8B',
  upstream_model: 'Qwen/Qwen3-8B',
  backend: 'UPSTREAM_1',
  attempts: 1,
  status: 'completed',
  http_status: 200,
  error_code: null,
  finish_reason: 'stop',
  usage: buildUsage({ input: 12, output: 8 }),
  usage_source: 'engine',
  first_token_at: '2026-12-01T10:00:01.000Z',
  ended_at: '2026-12-01T10:00:02.000Z',
  completion_id: 'chatcmpl-1',
};

test('§9 the example, member by member and in its order', () => {
  const receipt = toReceiptObject(buildReceipt(DRAFT, PROGRESS));
  expect(JSON.stringify(receipt)).toBe(
    '{"object":"receipt","id":"req_1","workspace":"acme","key":"prod-web","endpoint":"/v1/chat/completions",' +
      '"requested_model":"support","upstream_model":"Qwen/Qwen3-8B","served_model":"Qwen/Qwen3-8B","revision":null,' +
      '"backend":"UPSTREAM_1","attempts":1,"stream":true,"status":"completed","http_status":200,"error_code":null,' +
      '"finish_reason":"stop","usage":{"input_tokens":12,"cached_input_tokens":0,"cache_write_tokens":0,' +
      '"output_tokens":8,"reasoning_tokens":0},"usage_source":"engine","rates":{"input":"0.15","cached_input":"0.075",' +
      '"cache_write":"0.15","output":"0.60"},"price_version":"3fa9c01b77de","cost_usd":"0.000006600",' +
      '"created_at":"2026-12-01T10:00:00.000Z","first_token_at":"2026-12-01T10:00:01.000Z",' +
      '"ended_at":"2026-12-01T10:00:02.000Z","completion_id":"chatcmpl-1","client_request_id":null,"end_user":null}',
  );
});

test.each([
  ['completed', 6600],
  ['incomplete', 6600],
  ['interrupted', 6600],
  ['lost', 6600],
  ['in_progress', 6600],
  ['failed', 0],
] as const)('§9 %s costs %i nano-USD for the same tokens, and keeps them', (status, cost) => {
  const receipt = buildReceipt(DRAFT, { ...PROGRESS, status });
  expect(receipt).toMatchObject({ status, cost_nano_usd: cost, usage: PROGRESS.usage });
});

test('§9 admitted and nothing back yet: in_progress, no backend, nothing used, nothing owed', () => {
  expect(buildOpenReceipt(DRAFT)).toMatchObject({
    ...DRAFT,
    status: 'in_progress',
    backend: null,
    attempts: 0,
    http_status: null,
    usage: NO_USAGE,
    usage_source: 'none',
    ended_at: null,
    cost_nano_usd: 0,
  });
});

test('§5 a lost receipt keeps its last counts, is billed for them and ended when it was closed', () => {
  const running = buildReceipt(DRAFT, { ...PROGRESS, status: 'in_progress', ended_at: null });
  expect(closeAsLost({ ...running, cost_nano_usd: 0 }, Date.parse('2026-12-01T10:01:00Z'))).toEqual({
    ...running,
    status: 'lost',
    ended_at: '2026-12-01T10:01:00.000Z',
    cost_nano_usd: 6600,
  });
});

test('§9 price_version is 12 hex digits, the same for the same prices, another for any other', async () => {
  const version = await toPriceVersion(DRAFT.rates);
  expect(version).toMatch(/^[0-9a-f]{12}$/);
  expect(await toPriceVersion({ ...DRAFT.rates })).toBe(version);
  for (const rate of Object.keys(DRAFT.rates))
    expect(await toPriceVersion({ ...DRAFT.rates, [rate]: '9' })).not.toBe(version);
});

test('§9 texts that callers and engines choose are cut at 256, never within a character’s pair', () => {
  const long = `${'x'.repeat(255)}😀`;
  const foreign = { served_model: long, completion_id: long };
  const receipt = buildReceipt({ ...DRAFT, client_request_id: long, end_user: long }, { ...PROGRESS, ...foreign });
  const cut = `${'x'.repeat(255)}\uFFFD`;
  expect(receipt).toMatchObject({ served_model: cut, completion_id: cut, client_request_id: cut, end_user: cut });
  const whole = 'x'.repeat(256);
  expect(buildReceipt({ ...DRAFT, end_user: whole }, PROGRESS).end_user).toBe(whole);
});
