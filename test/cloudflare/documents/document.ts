// What the reference documents promise alike, for the tests that walk them: the errors, each in the envelope.

import { env } from 'cloudflare:workers';
import { expect, it } from 'vitest';
import { addKey, type EngineScript } from '../fixtures.ts';
import { call, type Called, callWithText, type Endpoint, type Fields } from './call.ts';

export type Document = { readonly name: string; readonly model: string; readonly endpoint: Endpoint };

/** Four fields, always all of them, of the right types, beside the given ones. */
export function expectError(called: Called, status: number, code: string | null, param: string | null = null): void {
  const { type, message } = called.error;
  expect(called.status).toBe(status);
  expect(called.error).toEqual({ message, type, param, code });
  expect([typeof type, typeof message]).toEqual(['string', 'string']);
  expect(called.headers.get('content-type')).toBe('application/json');
  expect(called.headers.get('x-request-id')).toMatch(/^req_[0-9a-z]{26}$/);
}

/** One test for each error that a document lists; call it within `describe`. */
export function addErrorTests({ name, model, endpoint }: Document): void {
  const ask = async (id: string, fields: Fields, script?: EngineScript): Promise<Called> => {
    return call(await addKey(`${name}-${id}`), endpoint, { model, ...fields }, script);
  };

  it('400: a body that is malformed', async () => {
    const token = await addKey(`${name}-400`);
    for (const body of ['', '{', '[]', '"text"', `{"model":"${model}"`, `{"model":"${model}","model":"${model}"}`]) {
      expectError(await callWithText(token, endpoint, body), 400, 'invalid_json');
    }
  });

  it('400: no model', async () => {
    expectError(await ask('400-model', { model: undefined }), 400, 'missing_required_parameter', 'model');
    expectError(await ask('400-model', { model: null }), 400, 'missing_required_parameter', 'model');
  });

  it('401: a key missing, malformed, unknown or revoked', async () => {
    const token = await addKey(`${name}-401`);
    for (const bad of [null, '', 'sk-1', 'tp_x', token.replace('-401', '-unknown'), `${token}x`]) {
      const called = await callWithText(bad, endpoint, JSON.stringify({ model }));
      expectError(called, 401, 'invalid_api_key');
      expect(called.headers.get('www-authenticate')).toBe('Bearer');
    }
    await env.DB.prepare('INSERT INTO revoked_keys (key_id) VALUES (?)').bind(`${name}-401`).run();
    expectError(await call(token, endpoint, { model }), 401, 'invalid_api_key');
  });

  it('403: a key that may not infer', async () => {
    const token = await addKey(`${name}-403`, { scopes: ['models:read', 'receipts:read'] });
    expectError(await call(token, endpoint, { model }), 403, 'insufficient_scope');
  });

  it('404: a model that does not exist', async () => {
    expectError(await ask('404', { model: `${model}-nope` }), 404, 'model_not_found', 'model');
    expectError(await ask('404', { model: `${model}@nope` }), 404, 'model_not_found', 'model');
  });

  it('413: a body over 5 MiB', async () => {
    const user = 'x'.repeat(5 * 1024 * 1024);
    expectError(await ask('413', { user }), 413, 'request_too_large');
  });

  it('429: the workspace’s requests of a minute are used up; Retry-After says when', async () => {
    const token = await addKey(`${name}-429r`, {}, { limits: { rpm: 1 } });
    expect((await call(token, endpoint, { model })).status).toBe(200);
    const refused = await call(token, endpoint, { model });
    expectError(refused, 429, 'rate_limit_exceeded');
    expect(refused.error['type']).toBe('requests');
    expect(Number(refused.headers.get('retry-after'))).toBeGreaterThanOrEqual(1);
    expect(refused.headers.get('x-should-retry')).toBe('true');
  });

  it('429: its tokens of a minute are used up', async () => {
    const token = await addKey(`${name}-429t`, {}, { limits: { tpm: 500 } });
    const usage = { prompt_tokens: 300, completion_tokens: 190, total_tokens: 490 };
    const choice = endpoint === 'text' ? { text: 'Hi' } : { message: { content: 'Hi' } };
    const script = { json: { choices: [{ index: 0, ...choice, finish_reason: 'stop' }], usage } };
    const limit = { [endpoint === 'responses' ? 'max_output_tokens' : 'max_tokens']: 200 };
    expect((await call(token, endpoint, { model, ...limit }, script)).status).toBe(200);
    const refused = await call(token, endpoint, { model, ...limit });
    expectError(refused, 429, 'rate_limit_exceeded');
    expect(refused.error['type']).toBe('tokens');
    expect(Number(refused.headers.get('retry-after'))).toBeGreaterThanOrEqual(1);
  });

  it('502: the engine cannot be reached, fails or is set up wrongly; nothing of it is named', async () => {
    expectError(await ask('502', {}, { throw: true }), 502, 'upstream_unreachable');
    const failed = await ask('502', {}, { status: 500, body: 'Traceback at http://10.1.2.3:8000' });
    expectError(failed, 502, 'upstream_error');
    expect(failed.text).not.toContain('10.1.2.3');
    expectError(await ask('502', { stream: true }, { status: 404, body: '{}' }), 502, 'upstream_misconfigured');
  });

  it('503: the key could not be checked: it is not at fault, and a retry may help', async () => {
    const token = await addKey(`${name}-503`, { hash: 'damaged' });
    const called = await call(token, endpoint, { model });
    expectError(called, 503, 'auth_unavailable');
    expect([called.headers.get('retry-after'), called.headers.get('x-should-retry')]).toEqual(['1', 'true']);
  });

  it('503: the engine has no room', async () => {
    const called = await ask('503-engine', {}, { status: 503, body: 'loading' });
    expectError(called, 503, 'server_is_overloaded');
    expect(called.error['type']).toBe('service_unavailable_error');
  });
}
