// The upstream body of a text completion: the common edits, and log probabilities as the integer engines know (SPEC §4).

import { type Backend } from '../core/model-catalog.ts';
import { type InferenceRequest } from './endpoint.ts';
import { TEXT_FIELDS } from './text-request.ts';
import { applyFieldChanges, buildCommonChanges } from './upstream-body.ts';

/** The upstream body of a text completion request for one backend. */
export function toTextUpstreamBody(request: InferenceRequest, backend: Backend): string {
  const changes = buildCommonChanges(request, backend, '/v1/completions', TEXT_FIELDS);
  const { logprobs, top_logprobs: top } = request.body.value;
  changes.set('top_logprobs', null);
  if (logprobs === true) changes.set('logprobs', String(typeof top === 'number' ? top : 0));
  if (logprobs === false) changes.set('logprobs', null);
  if (request.body.value['suffix'] === '') changes.set('suffix', null);
  return applyFieldChanges(request, changes);
}
