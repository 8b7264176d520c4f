// What one isolate keeps between requests: its byte budget, what it has learned of its backends, and what its ledgers
// have just refused. Nothing here is shared or stored; another isolate learns for itself.

import { type BackendHealth, createBackendHealth } from './backend-health.ts';
import { type ByteBudget, createByteBudget } from './byte-budget.ts';
import { type Ports } from './ports.ts';
import { createRefusalMemory, type RefusalMemory } from './refusal-memory.ts';

/** The memory of an isolate. */
export type Isolate = {
  readonly budget: ByteBudget;
  readonly health: BackendHealth;
  readonly refusals: RefusalMemory;
};

/** A fresh isolate's memory. */
export function createIsolate({ settings, now }: Ports): Isolate {
  return {
    budget: createByteBudget(settings.isolateBytesMax),
    health: createBackendHealth(now),
    refusals: createRefusalMemory(now),
  };
}
