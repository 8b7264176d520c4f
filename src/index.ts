// The door: the Worker's fetch handler, its crons, and the Durable Object class that wrangler.toml names.

import { composePorts } from './cloudflare/compose-ports.ts';
import { type Env } from './cloudflare/env.ts';
import { runCron } from './cloudflare/run-cron.ts';
import { createApp } from './http/create-app.ts';

export { Ledger } from './cloudflare/ledger-object.ts';

const apps = new WeakMap<Env, ReturnType<typeof createApp>>();

/** The application of this isolate; its caches live as long as its bindings. */
function appOf(env: Env): ReturnType<typeof createApp> {
  const before = apps.get(env);
  if (before !== undefined) return before;
  const app = createApp(composePorts(env));
  apps.set(env, app);
  return app;
}

export default {
  fetch: (request, env, context) => appOf(env).fetch(request, env, context),
  scheduled: (controller, env) => runCron(controller.cron, env, controller.scheduledTime),
} satisfies ExportedHandler<Env>;
