// The door: the Worker's fetch handler, its daily run, and the Durable Object class that wrangler.toml names.

import { composePorts } from './cloudflare/compose-ports.ts';
import { type Env } from './cloudflare/env.ts';
import { runDaily } from './cloudflare/run-daily.ts';
import { REPLAY_CRON, runReplays } from './cloudflare/run-replays.ts';
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
  scheduled: (controller, env) =>
    controller.cron === REPLAY_CRON ? runReplays(env, Date.now) : runDaily(env, controller.scheduledTime),
} satisfies ExportedHandler<Env>;
