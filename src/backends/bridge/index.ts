// The bridge: one small Worker per inference server, reached only through the gateway's service binding.
// It holds the server's address and secret. It has no route, no preview and no address of its own, and the default
// export answers 404, so that even a route added by mistake opens nothing.

import { WorkerEntrypoint } from 'cloudflare:workers';
import { forwardRequest, toNotFound } from './forward-request.ts';
import type { BridgeEnv } from './parse-bridge-config.ts';

/** The named entrypoint that a service binding asks for with `entrypoint = "Bridge"`. */
export class Bridge extends WorkerEntrypoint<BridgeEnv> {
  override fetch(request: Request): Promise<Response> {
    return forwardRequest(request, this.env, (url, init) => fetch(url, init));
  }
}

export default { fetch: () => toNotFound() };
