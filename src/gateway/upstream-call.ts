// One inference call on its way to the backends: what every attempt needs. Types only.

import { type AnswerContext, type Endpoint, type InferenceRequest } from '../openai/endpoint.ts';
import { type BackendHealth } from './backend-health.ts';
import { type HeldBytes } from './byte-budget.ts';
import { type Ports } from './ports.ts';
import { type Run } from './run.ts';

/** One inference call, ready to go up. */
export type UpstreamCall = {
  readonly ports: Ports;
  readonly endpoint: Endpoint;
  readonly run: Run;
  /** The request as it came, with what is fixed about its answer. */
  readonly context: Omit<AnswerContext, 'backend' | 'request'> & { readonly request: InferenceRequest };
  readonly held: HeldBytes;
  readonly health: BackendHealth;
  /** Time for all attempts together. */
  readonly deadlineMs: number;
  /** Aborts every attempt: the client left, or a deadline passed. */
  readonly signal: AbortSignal;
};
