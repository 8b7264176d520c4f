// Pass-through to the letter (SPEC §4): the engine's text is the client's but for the fields the gateway edits, and no
// spelling of a field is a way round them.

import { reset } from 'cloudflare:test';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { CHAT_FIELDS } from '../../../src/openai/chat-fields.ts';
import { GATEWAY_OWNED_FIELDS } from '../../../src/openai/engine-quirks.ts';
import { TEXT_FIELDS } from '../../../src/openai/text-request.ts';
import { addKey, prepare, UNLIMITED } from '../fixtures.ts';
import { call, callWithText, type Fields } from './call.ts';

let token = '';
beforeAll(async () => {
  await prepare();
  token = await addKey('fidelity', {}, UNLIMITED);
});
afterAll(reset);

/** Those whose body goes up as it came; what becomes of a response's is told beside its translation. */
const ENDPOINTS = ['chat', 'text'] as const;
const INPUT: Readonly<Record<(typeof ENDPOINTS)[number], string>> = {
  chat: '"messages" : [ {"content":"\\u00e9 \\/ 🙂 \\ud83d\\ude42 \\ud83d","role":"user" , "own":{"z":1,"a":[1.50,-0]}} ]',
  text: '"prompt" : "\\u00e9 \\/ 🙂 \\ud83d\\ude42 \\ud83d"',
};
const REST =
  '"seed":9007199254740993 ,\n\t"made_up":{"b":{"a":[1.50,-0,1E+2,{"__proto__":null}]},"":""},"temperature" : 1.0,' +
  '"limit_like":1e400,"logit_bias":{"10":1E+1} , "user":"a\\/b","emoji 🙂":"\\ud83d\\ude42"';

describe.each(ENDPOINTS)('§4 what is not edited arrives as it was sent: %s', (endpoint) => {
  const send = async (body: string): Promise<string> => (await callWithText(token, endpoint, body)).sentText ?? '';
  const model = (text: string): string => text.replace('"no-preset"', '"engine-model"');

  it('§4 numbers, escapes, emoji, nesting, order and white space; only the model’s name differs', async () => {
    const body = `\r\n { "max_tokens" : 7 , ${REST},${INPUT[endpoint]}\t, "mod\\u0065l" :"no-preset" } \n`;
    expect(await send(body)).toBe(model(body));
  });

  it('§4 a member that is removed takes nothing with it, one that is added stands at the end', async () => {
    const head = `{ "max_tokens" : 7, "model": "no-preset",${INPUT[endpoint]} ,`;
    const body = `${head} "priority":5, ${REST} , "user_null":null, "stream" : true }`;
    const expected = `${head} ${REST} , "stream" : true ,"stream_options":{"include_usage":true,"continuous_usage_stats":true}}`;
    expect(await send(body)).toBe(model(expected));
  });

  it.each(['9007199254740993', '-9223372036854775809', '1e400', '1.0', '-0', '1E+2', '123456789012345678901234567890'])(
    '§4 a seed is spelled as the caller spelled it: %s',
    async (seed) => {
      expect(await send(`{"model":"no-preset",${INPUT[endpoint]},"seed":${seed},"max_tokens":1}`)).toContain(
        `"seed":${seed},`,
      );
    },
  );

  it('§4 a body of a mebibyte of escapes', async () => {
    const filler = '\\u0041\\/\\"\\\\'.repeat(80_000);
    const body = `{"x":"${filler}","model":"no-preset","max_tokens":1,${INPUT[endpoint]}}`;
    expect((await send(body)) === model(body)).toBe(true);
  });

  it.each(['support-agent', 'flint-alpha', 'llama-3.3-70b-instruct'])(
    '§4 under the preset of %s too',
    async (preset) => {
      const body = `{"model":"${preset}","max_tokens":7,"temperature":0.50,"top_p":1.0, ${INPUT[endpoint]},"x":1.0,"tools_":[ 1e2 ]`;
      const sent = await send(`${body}}`);
      expect(sent.startsWith(body.replace(`"${preset}"`, '"engine-model"'))).toBe(true);
    },
  );
});

describe('§4 where something inside a field is edited, the rest of the field stays to the letter', () => {
  const send = async (members: string, model = 'no-preset'): Promise<string> => {
    const body = `{"model":"${model}","max_tokens":1,${members}}`;
    const { sentText } = await callWithText(token, 'chat', body);
    return sentText?.replace('{"model":"engine-model","max_tokens":1,', '').slice(0, -1) ?? '';
  };
  const MESSAGES = '"messages":[{"role":"user","content":"x"}]';

  it.each([
    [
      'a developer',
      '"messages" : [ { "content":"\\u00e9 \\/" , "role" : "dev\\u0065loper","x":1.0 } , {"role":"user","content":"\\/"} ]',
      '"messages" : [ { "content":"\\u00e9 \\/" , "role" : "system","x":1.0 } , {"role":"user","content":"\\/"} ]',
    ],
    [
      'nulls in a message',
      '"messages":[{"role":"user" ,"name":null, "content":"\\/","tool_calls" : null,"x":null,"y":1E2}]',
      '"messages":[{"role":"user" , "content":"\\/","x":null,"y":1E2}]',
    ],
    [
      'nulls in a tool',
      `"tools":[ {"type":"function","function":{"strict":null,"name":"\\u0066", "parameters":{"a":1.0,"b":null} ,"description":null}, "strict":null} ],${MESSAGES}`,
      `"tools":[ {"type":"function","function":{"name":"\\u0066", "parameters":{"a":1.0,"b":null} }, "strict":null} ],${MESSAGES}`,
    ],
    [
      'nulls in a schema',
      `"response_format":{"type":"json_schema","json_schema":{"name":"a", "schema":{"a":1.0,"strict":null},"strict":null},"schema":null},${MESSAGES}`,
      `"response_format":{"type":"json_schema","json_schema":{"name":"a", "schema":{"a":1.0,"strict":null}},"schema":null},${MESSAGES}`,
    ],
    [
      'a format without a schema',
      `"response_format":{"json_schema":null, "type":"json_object","x":1.0},${MESSAGES}`,
      `"response_format":{ "type":"json_object","x":1.0},${MESSAGES}`,
    ],
    [
      'options of a stream',
      `"stream":true,"stream_options": { "x":1.0 ,"include_us\\u0061ge":false , "y":"\\/" },${MESSAGES}`,
      `"stream":true,"stream_options": { "x":1.0 ,"include_us\\u0061ge":true , "y":"\\/" ,"continuous_usage_stats":true},${MESSAGES}`,
    ],
  ])('§4 %s', async (_name, members, expected) => {
    expect(await send(members)).toBe(expected);
  });

  it('§4 strict that the model has not', async () => {
    const tools = '"tools":[{"type":"function" ,"function":{ "strict" : true , "name":"f","p":1.0}}]';
    const expected = '"tools":[{"type":"function" ,"function":{ "name":"f","p":1.0}}]';
    expect(await send(`${tools},${MESSAGES}`, 'no-strict-tools')).toBe(`${expected},${MESSAGES}`);
  });
});

describe.each(ENDPOINTS)('§3 no second spelling of a field on %s', (endpoint) => {
  const known = endpoint === 'chat' ? CHAT_FIELDS : TEXT_FIELDS;
  const names = [...new Set([...CHAT_FIELDS, ...TEXT_FIELDS, ...GATEWAY_OWNED_FIELDS, 'made_up'])];
  const spell = (name: string, at: number): string => {
    const code = name.charCodeAt(at).toString(16).padStart(4, '0');
    return `${name.slice(0, at)}\\u${code}${name.slice(at + 1)}`;
  };
  const base = `"model":"no-preset",${INPUT[endpoint]}`;

  it.each(names)('§3 %s twice, plainly or with escapes, is invalid_json and goes nowhere', async (name) => {
    const inBase = ['model', endpoint === 'chat' ? 'messages' : 'prompt'].includes(name);
    for (const other of [name, spell(name, 0), spell(name, name.length - 1)]) {
      const first = inBase ? '' : `"${name}":null,`;
      const body = `{${first}${base},"${other}":"x"}`;
      const { status, error, sent } = await callWithText(token, endpoint, body);
      expect([status, error['code'], error['param'], sent === null]).toEqual([400, 'invalid_json', null, true]);
    }
  });

  it.each([...GATEWAY_OWNED_FIELDS])('§4 %s spelled with an escape is removed all the same', async (name) => {
    const body = `{${base},"${spell(name, 0)}":1,"${spell('kept', 2)}":1}`;
    const { status, sent } = await callWithText(token, endpoint, body);
    expect(status).toBe(200);
    expect(sent).not.toHaveProperty(name);
    expect(sent).toMatchObject({ kept: 1 });
  });

  it.each([...known].filter((name) => name !== 'reasoning' && name !== 'reasoning_effort'))(
    '§4 %s spelled with an escape is checked all the same',
    async (name) => {
      const own = ['model', 'messages', 'prompt'].includes(name);
      const body = own
        ? `{${base.replace(`"${name}"`, `"${spell(name, name.length - 1)}"`)}}`
        : `{${base},"${spell(name, name.length - 1)}":[[]]}`;
      const { status, error } = await callWithText(token, endpoint, body);
      // No field of the documents takes a list of lists.
      expect([status, error['code']]).toEqual(own ? [200, undefined] : [400, 'invalid_type']);
    },
  );

  it.each([
    ['stream_options', '"include_usage":true,"include_us\\u0061ge":false'],
    ['reasoning', '"effort":"none","effort":"high"'],
    ['chat_template_kwargs', '"enable_thinking":false,"enable_thinkin\\u0067":true'],
  ])('§3 nor inside %s', async (name, members) => {
    const { status, error } = await callWithText(token, endpoint, `{${base},"stream":true,"${name}": {${members}}}`);
    expect([status, error['code']]).toEqual([400, 'invalid_json']);
  });
});

describe.each(ENDPOINTS)('§4 unknown and gateway-owned fields on %s', (endpoint) => {
  const unknown: Fields = { top_k: 5, min_p: 0.1, metadata: { a: [1] }, made_up: '', guided: false };

  it.each(['no-preset', 'support-agent', 'flint-alpha', 'llama-3.3-70b-instruct'])('§4 pass: %s', async (model) => {
    expect((await call(token, endpoint, { model, ...unknown })).sent).toMatchObject(unknown);
  });

  it('§4 drop: they do not arrive, what is known does', async () => {
    const { status, sent } = await call(token, endpoint, { model: 'unknown-drop', temperature: 1, ...unknown });
    expect([status, sent?.['temperature']]).toEqual([200, 1]);
    for (const name of Object.keys(unknown)) expect(sent).not.toHaveProperty(name);
  });

  it.each(Object.entries(unknown))('§4 reject: %s', async (name, value) => {
    const { status, error, sent } = await call(token, endpoint, { model: 'unknown-reject', [name]: value });
    expect([status, error['code'], error['param'], sent]).toEqual([400, 'unknown_parameter', name, null]);
  });

  it('§4 reject: null is absent, every field of the endpoint is known', async () => {
    expect((await call(token, endpoint, { model: 'unknown-reject', made_up: null })).status).toBe(200);
    const fields = Object.fromEntries(
      [...(endpoint === 'chat' ? CHAT_FIELDS : TEXT_FIELDS)].map((name) => [name, null]),
    );
    const own = endpoint === 'chat' ? { messages: [{ role: 'user', content: 'x' }] } : { prompt: 'x' };
    expect((await call(token, endpoint, { ...fields, ...own, model: 'unknown-reject' })).status).toBe(200);
  });

  it('§4 reject: a field of the other endpoint is unknown here', async () => {
    const other = endpoint === 'chat' ? { prompt: 'x' } : { messages: [] };
    const { error } = await call(token, endpoint, { model: 'unknown-reject', ...other });
    expect(error).toMatchObject({ code: 'unknown_parameter', param: Object.keys(other)[0] });
  });

  const owned = Object.fromEntries([...GATEWAY_OWNED_FIELDS].map((name) => [name, { any: 'thing' }]));
  it.each(['no-preset', 'support-agent', 'flint-alpha', 'llama-3.3-70b-instruct', 'unknown-drop', 'unknown-reject'])(
    '§4 fields that the gateway owns never arrive, and are no error: %s',
    async (model) => {
      for (const stream of [false, true]) {
        const { status, sent } = await call(token, endpoint, { ...owned, model, stream, user: 'u' });
        expect([status, sent?.['user']]).toEqual([200, 'u']);
        expect(Object.keys(sent ?? {}).filter((name) => GATEWAY_OWNED_FIELDS.has(name))).toEqual([]);
      }
    },
  );
});

// Go matches member names without regard to case, so there `Model` is a second `model`. Other engines do not: to them it
// is a field nobody knows.
describe.each(ENDPOINTS)('issue 3, item 4: names that an engine reads in any case, on %s', (endpoint) => {
  const upper = (name: string): string => name.slice(0, -1) + name.slice(-1).toUpperCase();
  const known = endpoint === 'chat' ? CHAT_FIELDS : TEXT_FIELDS;
  const names = [...known, ...GATEWAY_OWNED_FIELDS];
  const ask = async (model: string, key: string): Promise<Fields | null> => {
    return (await callWithText(token, endpoint, `{"model":"${model}",${INPUT[endpoint]},"${key}":"x","Kept":1}`)).sent;
  };

  it.each(['ollama-served', 'openai-served'])('§4 %s gets none of them', async (model) => {
    for (const name of names) {
      for (const key of [upper(name), name.toUpperCase(), name.replace('s', '\u017f').replace('k', '\u212a')]) {
        if (key === name) continue;
        const sent = await ask(model, key);
        expect(sent, key).toMatchObject({ model: 'engine-model', Kept: 1 });
        expect(Object.keys(sent ?? {}), key).not.toContain(key);
      }
    }
  });

  it('§4 nor inside stream_options and messages', async () => {
    const { sent } = await call(token, endpoint, {
      model: 'ollama-served',
      stream: true,
      stream_options: { Include_Usage: false, include_usage: true, INCLUDE_USAGE: false },
      messages: [{ role: 'user', content: 'x', Role: 'system', CONTENT: [{ type: 'image_url' }], Own: 1 }],
    });
    expect(sent?.['stream_options']).toEqual({ include_usage: true });
    if (endpoint === 'chat') expect(sent?.['messages']).toEqual([{ role: 'user', content: 'x', Own: 1 }]);
  });

  it('§4 vLLM gets them as they are', async () => {
    expect(await ask('no-preset', 'Model')).toMatchObject({ model: 'engine-model', Model: 'x' });
  });
});
