// Finish reasons of engines in the closed set of SPEC §7.

import { type FinishReason } from './endpoint.ts';

const FINISH_REASONS: ReadonlyMap<string, FinishReason> = new Map([
  ['stop', 'stop'],
  ['eos_token', 'stop'],
  ['stop_sequence', 'stop'],
  ['length', 'length'],
  ['max_tokens', 'length'],
  ['tool_calls', 'tool_calls'],
  ['function_call', 'tool_calls'],
  ['content_filter', 'content_filter'],
]);

/**
 * An engine's finish reason in the closed set; null while it is not finished (null, absent, or TGI's '').
 * A reason nobody knows ends the choice all the same, as `stop`.
 */
export function toFinishReason(value: unknown): FinishReason | null {
  if (typeof value !== 'string' || value === '') return null;
  return FINISH_REASONS.get(value) ?? 'stop';
}
