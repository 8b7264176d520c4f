// Reasoning effort: two client forms in, the engine's one form out (SPEC §4). The caller's own chat_template_kwargs are
// never overwritten.

import { readObject } from '../core/json-read.ts';
import { type Model } from '../core/model-catalog.ts';
import { type Effort } from './endpoint.ts';

const EFFORTS: readonly string[] = ['none', 'low', 'medium', 'high'] satisfies readonly Effort[];

/**
 * The effort a chat request asks for. `reasoning_effort` wins over `reasoning.effort`; null is absent; a value that is
 * not a level is `none`.
 *
 * @returns null when the engine decides.
 */
export function readEffort(body: Readonly<Record<string, unknown>>, model: Model): Effort | null {
  const asked = body['reasoning_effort'] ?? readObject(body['reasoning'])['effort'] ?? null;
  if (asked === null) return model.policy.reasoning_default === 'none' ? 'none' : null;
  return isEffort(asked) ? asked : 'none';
}

/** How an effort reaches the engine; both client forms are always removed first. */
export type EngineReasoning =
  | { readonly form: 'nothing' }
  | { readonly form: 'field'; readonly effort: Effort }
  | { readonly form: 'kwarg'; readonly name: string; readonly on: boolean };

/** The one form in which this model's engine takes an effort. */
export function toEngineReasoning(
  body: Readonly<Record<string, unknown>>,
  model: Model,
  effort: Effort | null,
): EngineReasoning {
  const reasoning = model.reasoning;
  if (effort === null || reasoning === null || reasoning.control === 'none') return { form: 'nothing' };
  if (reasoning.control === 'reasoning_effort') {
    return reasoning.levels.includes(effort) ? { form: 'field', effort } : { form: 'nothing' };
  }
  const own = readObject(body['chat_template_kwargs']);
  if (Object.hasOwn(own, reasoning.kwarg)) return { form: 'nothing' };
  return { form: 'kwarg', name: reasoning.kwarg, on: effort !== 'none' };
}

/** Whether thinking can be turned off. */
export function hasThinkingToggle({ reasoning }: Model): boolean {
  return reasoning !== null && reasoning.control !== 'none' && reasoning.levels.includes('none');
}

/** Whether a value is a level. */
export function isEffort(value: unknown): value is Effort {
  return typeof value === 'string' && EFFORTS.includes(value);
}
