// The demo engine: an inference server in miniature behind `npm start`, speaking vLLM's dialect of OpenAI's wire.
// No model, no GPU, no download, no network: its text is canned prose and says so.
// Like the bridge it is reached only by its named entrypoint; the default export answers 404.

import { WorkerEntrypoint } from 'cloudflare:workers';
import { toNotFound } from './engine-error.ts';
import { handleRequest } from './handle-request.ts';
import { parseTokensPerSecond, wait } from './pacer.ts';

interface DemoEnv {
  readonly TOKENS_PER_SECOND?: string | number;
}

/** The named entrypoint that a service binding asks for with `entrypoint = "Demo"`. */
export class Demo extends WorkerEntrypoint<DemoEnv> {
  override fetch(request: Request): Promise<Response> {
    return handleRequest(request, {
      tokensPerSecond: parseTokensPerSecond(this.env.TOKENS_PER_SECOND),
      nowMs: () => Date.now(),
      newId: () => crypto.randomUUID().replaceAll('-', ''),
      wait,
    });
  }
}

export default { fetch: () => toNotFound() };
