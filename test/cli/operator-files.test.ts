// --keys and --catalog: the files an operator hands in.

import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

import { afterAll, describe, expect, test } from 'vitest';

import { readCatalogFile, readKeysFile } from '../../src/cli/operator-files.ts';

const dir = mkdtempSync(join(tmpdir(), 'turnpike-test-'));
afterAll(() => rmSync(dir, { recursive: true, force: true }));

function write(text: string): string {
  const path = join(dir, 'file.json');
  writeFileSync(path, text);
  return path;
}

describe('§11 --keys FILE is a JSON object of KV entries', () => {
  test('an object value is stringified, a string put verbatim', () => {
    const path = write('{"key:a": {"workspace": "w"}, "key:b": "{ damaged", "workspace:w": {}}');
    expect(readKeysFile(path)).toEqual({ 'key:a': '{"workspace":"w"}', 'key:b': '{ damaged', 'workspace:w': '{}' });
  });

  test.each([
    ['[]', 'must be a JSON object of KV entries'],
    ['"x"', 'must be a JSON object of KV entries'],
    ['{"a": 1}', "the entry 'a' is neither an object nor a string"],
    ['{"a": [1]}', "the entry 'a' is neither an object nor a string"],
    ['{', '--keys'],
  ])('%s is refused', (text, line) => {
    expect(() => readKeysFile(write(text))).toThrow(line);
  });

  test('a missing file is named', () => {
    expect(() => readKeysFile(join(dir, 'none.json'))).toThrow(/--keys .*none\.json: ENOENT/);
  });
});

describe('§11 --catalog FILE uses a catalog of one’s own', () => {
  test('as it is, to the byte', () => {
    expect(readCatalogFile(write('{ "version": 1,\n "models": {} }\n'))).toBe('{ "version": 1,\n "models": {} }\n');
  });

  test('what is not JSON is refused', () => {
    expect(() => readCatalogFile(write('models:'))).toThrow('--catalog');
  });
});
