// The command line of `npm start`: what each option means and what a mistyped one is told.

import { describe, expect, test } from 'vitest';

import { parseStartOptions } from '../../src/cli/start-options.ts';

function parse(...args: string[]) {
  const parsed = parseStartOptions(args);
  if (!parsed.ok) throw new Error(parsed.error);
  if (parsed.value.kind !== 'start') throw new Error(parsed.value.kind);
  return parsed.value.options;
}

describe('§11 npm start: options', () => {
  test('without any: port 8787, state in .turnpike, nothing cleared', () => {
    expect(parse()).toEqual({
      port: 8787,
      stateDir: '.turnpike',
      fresh: false,
      upstreams: [],
      catalogFile: undefined,
      keysFile: undefined,
      vars: {},
    });
  });

  test('all of them', () => {
    const args = ['--port', '9000', '--state', 'x', '--fresh', '--catalog', 'c.json', '--keys=k.json'];
    expect(parse(...args)).toEqual({
      port: 9000,
      stateDir: 'x',
      fresh: true,
      upstreams: [],
      catalogFile: 'c.json',
      keysFile: 'k.json',
      vars: {},
    });
  });

  test('--upstream is repeatable and keeps its order; a slash at the end means nothing', () => {
    const options = parse('--upstream', 'http://127.0.0.1:8000/v1/', '--upstream', 'https://b.example/v1');
    expect(options.upstreams).toEqual(['http://127.0.0.1:8000/v1', 'https://b.example/v1']);
  });

  test('--var NAME=VALUE splits at the first equals sign; the last of the same name counts', () => {
    const options = parse(
      '--var',
      'A=1',
      '--var',
      'DEFAULT_LIMITS={"rpm":1}',
      '--var',
      'B=x=y',
      '--var',
      'A=',
      '--var=C=2',
    );
    expect(options.vars).toEqual({ A: '', DEFAULT_LIMITS: '{"rpm":1}', B: 'x=y', C: '2' });
  });

  test.each([['--help'], ['-h'], ['--port', 'x', '--help']])('%s asks for help', (...args) => {
    expect(parseStartOptions(args)).toEqual({ ok: true, value: { kind: 'help' } });
  });

  test.each([
    [['--port', '0'], "--port must be a number from 1 to 65535, not '0'"],
    [['--port', '65536'], "--port must be a number from 1 to 65535, not '65536'"],
    [['--port', '80a'], "--port must be a number from 1 to 65535, not '80a'"],
    [['--port', ''], "--port must be a number from 1 to 65535, not ''"],
    [['--state', ''], '--state needs a folder'],
    [['--upstream', 'localhost:8000'], "--upstream must be an http(s) URL, not 'localhost:8000'"],
    [['--upstream', 'x'], "--upstream must be an http(s) URL, not 'x'"],
    [['--upstream', 'http://u:p@h/v1'], '--upstream must not hold a user or password'],
    [['--upstream', 'http://h/v1?a=b'], "--upstream must end at the path, such as /v1: 'http://h/v1?a=b'"],
    [['--var', 'A'], "--var must be NAME=VALUE, not 'A'"],
    [['--var', '=x'], "--var must be NAME=VALUE, not '=x'"],
    [['--bogus'], "Unknown option '--bogus'"],
    [['--port'], "Option '--port <value>' argument missing"],
    [['--fresh=yes'], "Option '--fresh' does not take an argument"],
  ])('%j is refused in one line', (args, line) => {
    expect(parseStartOptions(args)).toEqual({ ok: false, error: line });
  });

  test('a stray word is refused in one line', () => {
    const parsed = parseStartOptions(['serve']);
    expect(parsed.ok ? '' : parsed.error).toMatch(/^Unexpected argument 'serve'[^\n]*$/);
  });
});
