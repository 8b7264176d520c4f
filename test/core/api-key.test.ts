// Keys and workspaces: which tokens are taken, what is refused alike, and the schema of what an operator types.

import { createHash } from 'node:crypto';
import { describe, expect, test } from 'vitest';
import {
  apiKeySchema,
  checkApiKey,
  checkScope,
  fillLimits,
  type KeyRecord,
  parseBearerToken,
  refuseUnknownKey,
  UNLIMITED,
  workspaceSchema,
} from '../../src/core/api-key.ts';

const TOKEN = `tp_prod-web_${'aZ0_-'.repeat(8)}abc`;
const HASH = createHash('sha256').update(TOKEN).digest('hex');
const OTHER_HASH = createHash('sha256').update('another token').digest('hex');
const NOW = Date.parse('2026-12-01T10:00:00Z');

function record(key: object = {}, workspace: object = {}): KeyRecord {
  return {
    id: 'prod-web',
    key: apiKeySchema.parse({ workspace: 'acme', hash: `sha256:${HASH}`, ...key }),
    workspace: workspaceSchema.parse(workspace),
  };
}

describe('parseBearerToken', () => {
  test.each([
    ['Bearer', `Bearer ${TOKEN}`],
    ['bearer, lower case', `bearer ${TOKEN}`],
    ['BEARER, upper case', `BEARER ${TOKEN}`],
    ['two spaces', `Bearer  ${TOKEN}`],
    ['trailing space', `Bearer ${TOKEN} `],
  ])('§2 the scheme is case-insensitive and white space is taken: %s', (_name, header) => {
    expect(parseBearerToken(header)).toEqual({ ok: true, value: { id: 'prod-web', token: TOKEN } });
  });

  test.each([
    ['no header', null],
    ['empty', ''],
    ['scheme alone', 'Bearer'],
    ['scheme and space', 'Bearer '],
    ['malformed after two spaces', 'Bearer  x'],
    ['lower case, malformed', 'bearer x'],
    ['Basic', `Basic ${TOKEN}`],
    ['no scheme', TOKEN],
    ['two tokens', `Bearer ${TOKEN} ${TOKEN}`],
    ['secret one short', `Bearer ${TOKEN.slice(0, -1)}`],
    ['secret one long', `Bearer ${TOKEN}a`],
    ['secret not base64url', `Bearer ${TOKEN.slice(0, -1)}+`],
    ['id in upper case', `Bearer ${TOKEN.replace('prod-web', 'PROD')}`],
    ['id empty', `Bearer ${TOKEN.replace('prod-web', '')}`],
    ['id of 65', `Bearer ${TOKEN.replace('prod-web', 'a'.repeat(65))}`],
    ['OpenAI key', 'Bearer sk-abcdefghijklmnopqrstuvwxyz'],
  ])('WIRE 38: %s is 401 invalid_api_key', (_name, header) => {
    expect(parseBearerToken(header)).toMatchObject({ ok: false, error: { kind: 'invalid_api_key' } });
  });
});

describe('checkApiKey', () => {
  const soon = '2026-12-01T10:00:00.001Z';
  const past = '2026-12-01T10:00:00Z';
  test.each<[string, object, object, boolean]>([
    ['the current hash', {}, {}, true],
    ['a hash typed in upper case', { hash: `sha256:${HASH.toUpperCase()}` }, {}, true],
    ['another hash', { hash: `sha256:${OTHER_HASH}` }, {}, false],
    ['expiry in the future', { expires_at: soon }, {}, true],
    ['expiry reached', { expires_at: past }, {}, false],
    ['expiry in another zone, reached', { expires_at: '2026-12-01T11:00:00+01:00' }, {}, false],
    ['expiry null', { expires_at: null }, {}, true],
    ['key disabled', { disabled: true }, {}, false],
    ['key disabled: false', { disabled: false }, {}, true],
    ['workspace disabled', {}, { disabled: true }, false],
    [
      'rotated, in grace',
      { hash: `sha256:${OTHER_HASH}`, previous: { hash: `sha256:${HASH}`, expires_at: soon } },
      {},
      true,
    ],
    [
      'rotated, grace over',
      { hash: `sha256:${OTHER_HASH}`, previous: { hash: `sha256:${HASH}`, expires_at: past } },
      {},
      false,
    ],
    [
      'rotated, in grace, key expired',
      { hash: `sha256:${OTHER_HASH}`, expires_at: past, previous: { hash: `sha256:${HASH}`, expires_at: soon } },
      {},
      false,
    ],
    [
      'previous of another token',
      { hash: `sha256:${OTHER_HASH}`, previous: { hash: `sha256:${OTHER_HASH}`, expires_at: soon } },
      {},
      false,
    ],
    ['current hash, old grace', { previous: { hash: `sha256:${OTHER_HASH}`, expires_at: past } }, {}, true],
  ])('§2 %s', (_name, key, workspace, admitted) => {
    expect(checkApiKey(record(key, workspace), HASH, NOW).ok).toBe(admitted);
  });

  test('§2 a hash that differs in any one digit, or in length, is refused', () => {
    const digits = HASH.split('');
    for (let at = 0; at < digits.length; at += 1) {
      const other = digits.with(at, digits[at] === '0' ? '1' : '0').join('');
      expect(checkApiKey(record(), other, NOW).ok, `digit ${at}`).toBe(false);
    }
    for (const hash of ['', HASH.slice(1), `${HASH}0`, HASH + HASH])
      expect(checkApiKey(record(), hash, NOW).ok).toBe(false);
  });

  test('§3 every refusal reads the same, an unknown id too: no oracle', () => {
    const refusals = [
      checkApiKey(record(), OTHER_HASH, NOW),
      checkApiKey(record({ disabled: true }), HASH, NOW),
      checkApiKey(record({ expires_at: past }), HASH, NOW),
      checkApiKey(record({}, { disabled: true }), HASH, NOW),
    ];
    for (const refusal of refusals) expect(refusal).toEqual(refuseUnknownKey());
  });

  test('§1 a key without scopes has inference:write and models:read, and may call every model', () => {
    const result = checkApiKey(record(), HASH, NOW);
    expect(result).toEqual({
      ok: true,
      value: {
        keyId: 'prod-web',
        workspaceId: 'acme',
        scopes: ['inference:write', 'models:read'],
        models: ['*'],
        workspaceLimits: {},
        keyLimits: null,
        location: null,
        billing: 'postpaid',
      },
    });
  });

  test('§1 scopes given replace the default; one that lacks is 403 insufficient_scope', () => {
    const caller = checkApiKey(record({ scopes: ['receipts:read'], models: ['m'], limits: { rpm: 5 } }), HASH, NOW);
    if (!caller.ok) throw new Error('refused');
    expect(caller.value).toMatchObject({ scopes: ['receipts:read'], models: ['m'], keyLimits: { rpm: 5 } });
    expect(checkScope(caller.value, 'receipts:read').ok).toBe(true);
    const error = { kind: 'insufficient_scope', scope: 'inference:write' };
    expect(checkScope(caller.value, 'inference:write')).toEqual({ ok: false, error });
  });
});

describe('schemas', () => {
  const good = { workspace: 'acme', hash: `sha256:${HASH}` };
  test.each<[string, unknown, boolean]>([
    ['the required two', good, true],
    ['an unknown field', { ...good, note: 'x' }, true],
    ['no workspace', { hash: good.hash }, false],
    ['no hash', { workspace: 'acme' }, false],
    ['a hash without its algorithm', { ...good, hash: HASH }, false],
    ['a hash one digit short', { ...good, hash: good.hash.slice(0, -1) }, false],
    ['a workspace with a slash', { ...good, workspace: 'a/b' }, false],
    ['an expiry that is no time', { ...good, expires_at: 'tomorrow' }, false],
    ['an expiry without a zone', { ...good, expires_at: '2027-01-01T00:00:00' }, false],
    ['disabled as a string', { ...good, disabled: 'yes' }, false],
    ['scopes as a string', { ...good, scopes: 'models:read' }, false],
    ['a limit of null', { ...good, limits: { rpm: null } }, true],
    ['a limit of zero', { ...good, limits: { rpm: 0 } }, true],
    ['a negative limit', { ...good, limits: { rpm: -1 } }, false],
    ['a limit that is no integer', { ...good, limits: { tpm: 1.5 } }, false],
    ['previous without expiry', { ...good, previous: { hash: good.hash } }, false],
    ['null', null, false],
  ])('§2 key entry: %s', (_name, entry, valid) => {
    expect(apiKeySchema.safeParse(entry).success).toBe(valid);
  });

  test.each<[string, unknown, boolean]>([
    ['empty', {}, true],
    ['postpaid', { billing: 'postpaid', location: 'weur' }, true],
    ['prepaid', { billing: 'prepaid' }, true],
    ['billing unknown', { billing: 'free' }, false],
    ['location unknown', { location: 'mars' }, false],
    ['an array', [], false],
  ])('§2 workspace entry: %s', (_name, entry, valid) => {
    expect(workspaceSchema.safeParse(entry).success).toBe(valid);
  });

  test('§2 what limits leave out comes from the defaults; null is unlimited and stays so', () => {
    const fallback = { rpm: 600, tpm: 1_000_000, concurrency: 64 };
    expect(fillLimits({}, fallback)).toEqual(fallback);
    expect(fillLimits({ rpm: null, tpm: 0 }, fallback)).toEqual({ rpm: null, tpm: 0, concurrency: 64 });
    expect(fillLimits({ concurrency: 2 }, UNLIMITED)).toEqual({ rpm: null, tpm: null, concurrency: 2 });
  });
});
