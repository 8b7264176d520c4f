// The printed lines, as a shell reads them.

import { execFileSync } from 'node:child_process';

import { describe, expect, test } from 'vitest';

import { buildReadyLines, chooseCurlModel } from '../../src/cli/ready-message.ts';

describe('§11 npm start: prints one line that begins `ready on`, then a curl line', () => {
  test.each(['turnpike-demo', 'Qwen/Qwen3-8B@a', `it's "$HOME" \\ \`x\` ü`])(
    'the model %s survives the shell',
    (model) => {
      const [ready, curl, ...rest] = buildReadyLines('http://127.0.0.1:8787', model);
      expect(ready).toBe('ready on http://127.0.0.1:8787');
      expect(rest).toEqual([]);
      // A function in curl's place shows the arguments as curl would get them.
      const script = `curl() { printf '%s\\n' "$@"; }; ${curl ?? ''}`;
      const args = execFileSync('bash', ['-c', script], { encoding: 'utf8' }).trimEnd().split('\n');
      expect(args.slice(0, 3)).toEqual(['-N', 'http://127.0.0.1:8787/v1/chat/completions', '-H']);
      expect(args).toContain('authorization: Bearer tp_demo_local-only-demo-key-this-is-not-a-secret-00');
      expect(JSON.parse(args.at(-1) ?? '')).toMatchObject({ model, stream: true });
    },
  );

  test.each([
    ['{"models":{"a":{},"b":{}}}', 'b', 'b'],
    ['{"models":{"a":{},"b":{}}}', 'gone', 'a'],
    ['{"models":{"a":{},"turnpike-demo":{}}}', undefined, 'turnpike-demo'],
    ['{"models":{"a":{},"b":{}}}', undefined, 'a'],
    ['{"models":{}}', 'b', 'b'],
    ['{"models":null}', undefined, 'turnpike-demo'],
    ['not JSON', undefined, 'turnpike-demo'],
    [null, 'b', 'b'],
  ])('stored catalog %s, preferred %s: curl names %s', (catalog, preferred, model) => {
    expect(chooseCurlModel(catalog, preferred)).toBe(model);
  });
});
