// GET /health of the bridge: whether its inference server answers, and which models it says it has. It asks the one
// listing the bridge may call anyway; nothing of the answer but the ids is passed on.

import * as z from 'zod';
import type { SendUpstream } from './send-upstream.ts';

/** What the bridge says of its engine. */
export type EngineHealth = {
  readonly status: 'ok' | 'failing' | 'unreachable';
  /** The engine's HTTP status; null when it did not answer. */
  readonly http_status: number | null;
  readonly models: readonly string[];
};

const DEADLINE_MS = 5000;
const modelsSchema = z.object({ data: z.array(z.object({ id: z.string() })) });

/** Asks the engine. Never rejects. */
export async function reportHealth(modelsUrl: string, headers: Headers, send: SendUpstream): Promise<EngineHealth> {
  try {
    const signal = AbortSignal.timeout(DEADLINE_MS);
    const response = await send(modelsUrl, { method: 'GET', headers, redirect: 'manual', signal });
    const models = modelsSchema.safeParse(await response.json().catch(() => null));
    const ok = response.status === 200 && models.success;
    return {
      status: ok ? 'ok' : 'failing',
      http_status: response.status,
      models: models.success ? models.data.data.map(({ id }) => id) : [],
    };
  } catch {
    return { status: 'unreachable', http_status: null, models: [] };
  }
}
