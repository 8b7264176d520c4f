// The lines that `npm start` prints: what is demo, where it is ready, and a curl command to paste. Pure text.

import { DEMO_TOKEN } from './demo-key.ts';
import { DEMO_MODEL } from './local-catalog.ts';

/** Says that the demo engine is no model and its key no secret. */
export function buildDemoLine(): string {
  return `demo: the model ${DEMO_MODEL} is a seeded text generator (no GPU, no model), the key ${DEMO_TOKEN} works only locally`;
}

/** The ready line, on which a script may wait, and a curl that streams a chat completion. */
export function buildReadyLines(url: string, model: string): string[] {
  const body = JSON.stringify({ model, stream: true, messages: [{ role: 'user', content: 'Hello' }] });
  const headers = `-H 'authorization: Bearer ${DEMO_TOKEN}' -H 'content-type: application/json'`;
  return [`ready on ${url}`, `curl -N ${url}/v1/chat/completions ${headers} -d ${quoteForShell(body)}`];
}

/**
 * Chooses the model for the curl line: the preferred one where the stored catalog has it, else the catalog's first.
 *
 * @param catalogText null or unreadable means that nothing is known of it
 */
export function chooseCurlModel(catalogText: string | null, preferred: string | undefined): string {
  const ids = readModelIds(catalogText);
  const wanted = preferred ?? DEMO_MODEL;
  return ids.includes(wanted) ? wanted : (ids[0] ?? wanted);
}

function readModelIds(catalogText: string | null): string[] {
  try {
    const document: unknown = JSON.parse(catalogText ?? '{}');
    const hasModels = typeof document === 'object' && document !== null && 'models' in document;
    return hasModels && typeof document.models === 'object' ? Object.keys(document.models ?? {}) : [];
  } catch {
    // The operator's own text; the gateway says what is wrong with it.
    return [];
  }
}

// Model ids come from a server and may hold anything; within single quotes only the quote itself needs care.
function quoteForShell(text: string): string {
  return `'${text.replaceAll("'", `'\\''`)}'`;
}
