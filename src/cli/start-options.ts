// The command line of `npm start`: text in, options out. Touches no file and no network.

import { parseArgs } from 'node:util';

import { err, ok, type Result } from '../core/result.ts';
import { toReason } from './start-error.ts';

export type StartOptions = {
  readonly port: number;
  readonly stateDir: string;
  readonly fresh: boolean;
  /** Base URLs in the order given: the n-th is the binding UPSTREAM_n. */
  readonly upstreams: readonly string[];
  readonly catalogFile: string | undefined;
  readonly keysFile: string | undefined;
  readonly vars: Readonly<Record<string, string>>;
};

export type StartCommand = { readonly kind: 'help' } | { readonly kind: 'start'; readonly options: StartOptions };

export const USAGE = `npm start -- [options]

  --port N           port on 127.0.0.1 (8787)
  --state DIR        where KV, D1 and Durable Objects are kept (.turnpike)
  --fresh            clear that state first
  --upstream URL     an OpenAI-compatible server, such as http://127.0.0.1:8000/v1; repeatable
  --catalog FILE     a model catalog of your own instead of the generated one
  --keys FILE        a JSON object of KV entries for KEYS
  --var NAME=VALUE   a var of the gateway; repeatable
  --help             this text`;

/**
 * Parses the arguments after `npm start --`.
 *
 * @returns the error as one line for the terminal.
 */
export function parseStartOptions(args: readonly string[]): Result<StartCommand, string> {
  const parsed = parseFlags(args);
  if (!parsed.ok) return parsed;
  const flags = parsed.value;
  if (flags.help) return ok({ kind: 'help' });
  const port = Number(flags.port);
  if (!/^\d+$/.test(flags.port) || port < 1 || port > 65_535) {
    return err(`--port must be a number from 1 to 65535, not '${flags.port}'`);
  }
  if (flags.state === '') return err('--state needs a folder');
  const upstreams = parseUpstreams(flags.upstream);
  if (!upstreams.ok) return upstreams;
  const vars = parseVars(flags.var);
  if (!vars.ok) return vars;
  return ok({
    kind: 'start',
    options: {
      port,
      stateDir: flags.state,
      fresh: flags.fresh,
      upstreams: upstreams.value,
      catalogFile: flags.catalog,
      keysFile: flags.keys,
      vars: vars.value,
    },
  });
}

type Flags = {
  port: string;
  state: string;
  fresh: boolean;
  help: boolean;
  upstream: string[];
  var: string[];
  catalog?: string;
  keys?: string;
};

function parseFlags(args: readonly string[]): Result<Flags, string> {
  try {
    const { values } = parseArgs({
      args: [...args],
      options: {
        port: { type: 'string', default: '8787' },
        state: { type: 'string', default: '.turnpike' },
        fresh: { type: 'boolean', default: false },
        help: { type: 'boolean', short: 'h', default: false },
        upstream: { type: 'string', multiple: true, default: [] },
        var: { type: 'string', multiple: true, default: [] },
        catalog: { type: 'string' },
        keys: { type: 'string' },
      },
    });
    return ok(values);
  } catch (error) {
    // parseArgs throws for what a person mistyped; the sentences after the first are advice for programmers.
    return err(toReason(error).split('. ')[0]?.split('\n')[0] ?? 'unreadable arguments');
  }
}

function parseUpstreams(texts: readonly string[]): Result<string[], string> {
  const urls: string[] = [];
  for (const text of texts) {
    const url = URL.parse(text);
    if (url === null || !/^https?:$/.test(url.protocol)) return err(`--upstream must be an http(s) URL, not '${text}'`);
    if (url.username !== '' || url.password !== '') return err('--upstream must not hold a user or password');
    if (url.search !== '' || url.hash !== '') return err(`--upstream must end at the path, such as /v1: '${text}'`);
    urls.push(text.replace(/\/+$/, ''));
  }
  return ok(urls);
}

function parseVars(texts: readonly string[]): Result<Record<string, string>, string> {
  const vars: Record<string, string> = {};
  for (const text of texts) {
    const match = /^([A-Za-z_]\w*)=(.*)$/s.exec(text);
    if (match === null) return err(`--var must be NAME=VALUE, not '${text}'`);
    vars[match[1] ?? ''] = match[2] ?? '';
  }
  return ok(vars);
}
