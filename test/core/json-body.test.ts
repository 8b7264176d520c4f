// A request body as bytes: what is refused as invalid_json, and that what passes keeps its text.

import { describe, expect, test } from 'vitest';
import { parseJsonBody } from '../../src/core/json-body.ts';

function parse(body: string | Uint8Array): ReturnType<typeof parseJsonBody> {
  return parseJsonBody(typeof body === 'string' ? new TextEncoder().encode(body) : body);
}

const nested = (depth: number): string => `{"a":${'['.repeat(depth - 1)}${']'.repeat(depth - 1)}}`;

describe('§3 refused as invalid_json', () => {
  test.each<[string, string | Uint8Array]>([
    ['empty', ''],
    ['white space', ' \n'],
    ['not JSON', '{"a":'],
    ['two documents', '{}{}'],
    ['a trailing comma', '{"a":1,}'],
    ['single quotes', "{'a':1}"],
    ['a comment', '{"a":1}//'],
    ['NaN', '{"a":NaN}'],
    ['an array', '[{"a":1}]'],
    ['a string', '"a"'],
    ['null', 'null'],
    ['nested 129 deep', nested(129)],
    ['100,000 brackets', '['.repeat(100_000)],
    ['100,000 brackets in an object', nested(100_000)],
    ['not UTF-8', Uint8Array.of(0x7b, 0x22, 0xff, 0x22, 0x3a, 0x31, 0x7d)],
    ['a surrogate in UTF-8', Uint8Array.of(0x7b, 0x22, 0xed, 0xa0, 0x80, 0x22, 0x3a, 0x31, 0x7d)],
    ['UTF-8 cut short', Uint8Array.of(0x7b, 0x22, 0xc3, 0x22, 0x3a, 0x31, 0x7d)],
    ['UTF-16', Uint8Array.of(0xff, 0xfe, 0x7b, 0, 0x7d, 0)],
    ['two byte order marks', '\uFEFF\uFEFF{}'],
    ['a key twice', '{"model":"a","model":"b"}'],
    ['a key twice, once escaped', '{"model":"a","mod\\u0065l":"b"}'],
    ['__proto__ twice', '{"__proto__":1,"__proto__":2}'],
    ['a key twice in stream_options', '{"stream_options":{"include_usage":true,"include_usage":false}}'],
    ['a key twice in reasoning', '{"reasoning":{"effort":"low","\\u0065ffort":"high"}}'],
    ['a key twice in chat_template_kwargs', '{"chat_template_kwargs": {"a":1 , "a":2}}'],
  ])('%s', (_name, body) => {
    const result = parse(body);
    expect(result).toMatchObject({ ok: false, error: { kind: 'invalid_json' } });
    if (!result.ok && result.error.kind === 'invalid_json')
      expect(result.error.reason).toMatch(/^The JSON|^The body|^We could/);
  });
});

describe('accepted, text and value', () => {
  test.each<[string, string]>([
    ['empty', '{}'],
    ['white space around', ' \r\n\t{ } '],
    ['nested 128 deep', nested(128)],
    ['numbers no double can hold', '{"seed":9007199254740993,"x":1e400,"y":1.0}'],
    ['a lone surrogate, escaped', '{"a":"\\ud800"}'],
    ['names of Object.prototype', '{"__proto__":{"x":1},"constructor":null,"toString":1}'],
    ['a key twice further down', '{"metadata":{"a":1,"a":2},"tools":[{"a":1,"a":2}]}'],
    ['a guarded name that holds an array', '{"reasoning":[1,2],"stream_options":[],"chat_template_kwargs":[[],[]]}'],
    ['a guarded name that holds a string or null', '{"reasoning":"x","stream_options":null}'],
  ])('§4 %s: the text is the client’s own', (_name, text) => {
    const result = parse(text);
    if (!result.ok) throw new Error(JSON.stringify(result.error));
    expect(result.value.text).toBe(text);
    expect(result.value.value).toEqual(JSON.parse(text));
    expect(text[result.value.open]).toBe('{');
    expect(result.value.pieces.map(({ key }) => key)).toEqual(Object.keys(result.value.value));
  });

  test('§3 a byte order mark is dropped', () => {
    const result = parse('\uFEFF{"a":1}');
    expect(result).toMatchObject({ ok: true, value: { text: '{"a":1}', value: { a: 1 }, open: 0 } });
  });

  test('§10 a __proto__ key is a key and no prototype', () => {
    const result = parse('{"__proto__":{"stream":true}}');
    expect(result.ok && 'stream' in result.value.value).toBe(false);
    expect(Object.getPrototypeOf({})).toBe(Object.prototype);
  });
});
