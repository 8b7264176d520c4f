// Backends behind Fetcher bindings: a bridge Worker, a VPC service and a test's auxiliary Worker are the same here.

import { type Backends } from '../gateway/ports.ts';
import { isFetcher } from './env.ts';

/** The host names nothing: a binding decides where the request goes. */
const ORIGIN = 'https://upstream.invalid';

/** The backends among a Worker's bindings. */
export function createServiceBackends(env: object): Backends {
  return {
    async send(binding, { path, body, headers, signal }) {
      const fetcher: unknown = Reflect.get(env, binding);
      if (!isFetcher(fetcher)) throw new Error(`there is no binding ${binding}`);
      return fetcher.fetch(ORIGIN + path, {
        method: 'POST',
        body,
        headers: { ...headers },
        signal,
        redirect: 'manual',
      });
    },
  };
}
