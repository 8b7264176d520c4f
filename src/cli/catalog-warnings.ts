// What `npm start` says at once of a catalog it was given: otherwise only the log of the first request would tell.

import { parseModelCatalog } from '../core/model-catalog.ts';

/** A line for each thing in a catalog that will answer 503. */
export function listCatalogWarnings(text: string, bindings: ReadonlySet<string>): readonly string[] {
  const catalog = parseModelCatalog(text, bindings);
  if (!catalog.ok) return [`catalog: ${catalog.error}; every request will answer 503`];
  return [...catalog.value.faulty].map(([model, fault]) => `catalog: ${model} will answer 503: ${fault}`);
}
