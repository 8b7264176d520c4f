// The gateway in one isolate of its own inside workerd, on the real stores: with vars of the test's, and the calls to its
// ledgers open to be counted or spoilt. It asserts nothing.

import { env } from 'cloudflare:workers';
import { createExecutionContext, waitOnExecutionContext } from 'cloudflare:test';
import { composePorts } from '../../src/cloudflare/compose-ports.ts';
import { type Ledger, type LogEntry } from '../../src/gateway/ports.ts';
import { createApp } from '../../src/http/create-app.ts';

export type IsolateOptions = {
  readonly vars?: Readonly<Record<string, string>>;
  /** Stands between the gateway and its ledgers. */
  readonly wrapLedger?: (ledger: Ledger) => Ledger;
  readonly log?: (entry: LogEntry) => void;
};

export type PostOptions = {
  readonly path?: string;
  readonly signal?: AbortSignal;
  readonly headers?: Readonly<Record<string, string>>;
};

export type Isolate = {
  readonly post: (token: string, body: string, options?: PostOptions) => Promise<Response>;
  /** Posts; `over` resolves when all work behind the answer is done, the settlement included. */
  readonly postWhole: (
    token: string,
    body: string,
    options?: PostOptions,
  ) => Promise<{ readonly response: Response; readonly over: Promise<void> }>;
};

/** Starts one. Nothing of it outlives the test. */
export function startIsolate({ vars = {}, wrapLedger, log }: IsolateOptions = {}): Isolate {
  const ports = composePorts({ ...env, ...vars });
  const ledger = wrapLedger === undefined ? ports.ledger : wrapLedger(ports.ledger);
  const app = createApp({ ...ports, ledger, log: log ?? (() => undefined) });
  const postWhole: Isolate['postWhole'] = async (token, body, options = {}) => {
    const { path = '/v1/chat/completions', signal } = options;
    const headers = { 'content-type': 'application/json', authorization: `Bearer ${token}`, ...options.headers };
    const init = { method: 'POST', headers, body, ...(signal === undefined ? {} : { signal }) };
    const context = createExecutionContext();
    const response = await app.fetch(new Request(`https://turnpike.test${path}`, init), env, context);
    return { response, over: waitOnExecutionContext(context) };
  };
  return { postWhole, post: async (...call) => (await postWhole(...call)).response };
}
