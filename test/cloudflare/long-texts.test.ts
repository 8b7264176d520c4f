// Texts of any length that others choose, the caller's `user` and the engine's ids: a row of SQLite, and a statement to D1,
// takes 2 MB, and one receipt too large must not keep those of a whole workspace from being saved (SPEC §9).

import { env } from 'cloudflare:workers';
import { reset } from 'cloudflare:test';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { addKey, chat, post, prepare, readReceipt } from './fixtures.ts';
import { flush } from './receipt-fixtures.ts';

beforeAll(prepare);
afterAll(reset);

const LONG = 'u'.repeat(2_500_000);
const ENGINE_LONG = 'e'.repeat(1_000_000);
const usage = { prompt_tokens: 3, completion_tokens: 2, total_tokens: 5 };
const choices = [{ index: 0, message: { role: 'assistant', content: 'Hi' }, finish_reason: 'stop' }];

it('§9 texts of megabytes are cut in the receipt; it and those beside it reach D1, the engine gets all of it', async () => {
  const token = await addKey('long-texts', {}, { limits: { tpm: null } });
  const long = await post(
    token,
    chat({ user: LONG }, { json: { id: ENGINE_LONG, model: ENGINE_LONG, choices, usage } }),
  );
  expect(long.status).toBe(200);
  const short = await post(token, chat({ user: 'short' }));
  await Promise.all([long.text(), short.text()]);
  expect(await readReceipt(token, long)).toMatchObject({
    status: 'completed',
    end_user: LONG.slice(0, 256),
    completion_id: ENGINE_LONG.slice(0, 256),
    served_model: ENGINE_LONG.slice(0, 256),
  });
  expect(await readReceipt(token, short)).toMatchObject({ status: 'completed', end_user: 'short' });
  await flush('ws-long-texts');
  const query = env.DB.prepare("SELECT COUNT(*) AS n FROM receipts WHERE workspace = 'ws-long-texts'");
  expect(await query.first('n')).toBe(2);
}, 15_000);
