// GET /health of the bridge: whether its inference server answers, which models it says it has, and how busy it is where
// it tells. Only ids and counts of what the engine answers are passed on; an engine that tells no load is no worse for it.

import * as z from 'zod';
import { type EngineLoad, findLoad, type FoundLoad, LOAD_PATHS } from './engine-load.ts';
import { parseJson } from './parse-json.ts';
import type { SendUpstream } from './send-upstream.ts';

/** What the bridge says of its engine. */
export type EngineHealth = {
  readonly status: 'ok' | 'failing' | 'unreachable';
  /** The engine's HTTP status; null when it did not answer. */
  readonly http_status: number | null;
  readonly models: readonly string[];
  /** The engine as known by how it tells its load: vllm, sglang, llamacpp, tgi, ollama; null when it tells none. */
  readonly engine: string | null;
  readonly load: EngineLoad | null;
};

/** The whole report, whatever the engine does. */
const DEADLINE_MS = 5000;
/** What is read of one answer. A page of metrics has some 100 KB; a longer answer is not used at all. */
const ANSWER_BYTES_MAX = 1024 * 1024;

const modelsSchema = z.object({ data: z.array(z.object({ id: z.string() })) });
const UNREACHABLE: EngineHealth = { status: 'unreachable', http_status: null, models: [], engine: null, load: null };

type Answer = { readonly status: number; readonly text: string | null };
type Ask = (url: string) => Promise<Answer | null>;

/**
 * Asks the engine, in at most `deadlineMs` milliseconds. Never rejects.
 *
 * @param baseUrl what stands before /models; the server's root is what is left without a last /v1
 */
export async function reportHealth(
  baseUrl: string,
  headers: Headers,
  send: SendUpstream,
  deadlineMs = DEADLINE_MS,
): Promise<EngineHealth> {
  const signal = AbortSignal.timeout(deadlineMs);
  const ask: Ask = async (url) => {
    try {
      const response = await send(url, { method: 'GET', headers, redirect: 'manual', signal });
      return { status: response.status, text: await readBounded(response).catch(() => null) };
    } catch {
      return null;
    }
  };
  const listing = await ask(`${baseUrl}/models`);
  if (listing === null) return UNREACHABLE;
  const models = modelsSchema.safeParse(parseJson(listing.text));
  const isOk = listing.status === 200 && models.success;
  const found = isOk ? await askLoad(baseUrl.replace(/\/v1$/, ''), ask) : null;
  return {
    status: isOk ? 'ok' : 'failing',
    http_status: listing.status,
    models: models.success ? models.data.data.map(({ id }) => id) : [],
    engine: found?.engine ?? null,
    load: found?.load ?? null,
  };
}

/** Round by round, until the engine has told something. */
async function askLoad(rootUrl: string, ask: Ask): Promise<FoundLoad | null> {
  for (const paths of LOAD_PATHS) {
    const answers = new Map<string, string>();
    const askOne = async (path: string): Promise<void> => {
      const answer = await ask(rootUrl + path);
      if (answer?.status === 200 && answer.text !== null) answers.set(path, answer.text);
    };
    await Promise.all(paths.map(askOne));
    const found = findLoad(answers);
    if (found !== null) return found;
  }
  return null;
}

/** The body as text; null, and the rest unread, when it is too long. Rejects when it breaks off. */
async function readBounded({ body }: Response): Promise<string | null> {
  if (body === null) return '';
  const reader = body.getReader();
  const decoder = new TextDecoder();
  let text = '';
  let bytes = 0;
  for (;;) {
    const { done, value } = await reader.read();
    if (done) return text + decoder.decode();
    bytes += value.byteLength;
    if (bytes > ANSWER_BYTES_MAX) {
      await reader.cancel();
      return null;
    }
    text += decoder.decode(value, { stream: true });
  }
}
