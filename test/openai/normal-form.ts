// The normal form of SPEC §7 as one assertion, for every stream that any test lets through.

import { expect } from 'vitest';
import { type Relayed } from './build-context.ts';

const CHUNK_KEYS = new Set(['id', 'object', 'created', 'model', 'choices', 'usage', 'system_fingerprint']);
const DELTA_KEYS = new Set(['role', 'content', 'refusal', 'reasoning', 'reasoning_content', 'tool_calls']);
const FINISH_REASONS = new Set(['stop', 'length', 'tool_calls', 'content_filter']);

/** Holds for a stream that went well with this many choices, and, but for the finish, for one that broke. */
export function expectNormalForm(relayed: Relayed, choiceCount = 1): void {
  const { chunks, errors, usages, outcome, text } = relayed;
  const heads = new Set(chunks.map(({ id, object, created, model }) => JSON.stringify([id, object, created, model])));
  expect(heads.size, 'one constant identity').toBeLessThanOrEqual(1);
  expect(usages.length, 'usage at most once').toBeLessThanOrEqual(1);
  expect(errors.length, 'one error, or none').toBe(outcome === 'failed' ? 1 : 0);
  expect(text).not.toMatch(/"(error|usage|tool_calls|role|content|reasoning|reasoning_content|logprobs)":null/);
  expect(text).not.toMatch(/"(reasoning|reasoning_content)":""/);
  for (const [at, chunk] of chunks.entries()) {
    expect(chunk.object).toBe('chat.completion.chunk');
    expect(chunk.id).toMatch(/./);
    expect(chunk.model).toMatch(/./);
    expect(Number.isInteger(chunk.created)).toBe(true);
    expect(Object.keys(chunk).filter((key) => !CHUNK_KEYS.has(key))).toEqual([]);
    if (chunk.usage === undefined) expect(chunk.choices).toHaveLength(1);
    else expect([at, chunk.choices], 'usage directly before the end').toEqual([chunks.length - 1, []]);
  }
  for (let index = 0; index < choiceCount; index += 1) expectChoice(relayed, index);
  const indexes = chunks.flatMap(({ choices }) => choices.map(({ index }) => index));
  expect(indexes.every((index) => index >= 0 && index < choiceCount)).toBe(true);
}

function expectChoice({ chunks, outcome }: Relayed, index: number): void {
  const said = chunks.flatMap(({ choices }) => choices).filter((choice) => choice.index === index);
  const reasons = said.map((choice) => choice.finish_reason).filter((reason) => reason !== null);
  if (outcome === 'finished') expect(reasons, `one finish of choice ${index}`).toHaveLength(1);
  for (const reason of reasons) expect(FINISH_REASONS).toContain(reason);
  if (reasons.length > 0) expect(said.at(-1)?.finish_reason, 'the finish is last').toBe(reasons[0]);
  for (const [at, { delta }] of said.entries()) {
    expect(delta['role'], `role of choice ${index} first and only there`).toBe(at === 0 ? 'assistant' : undefined);
    expect(Object.keys(delta).filter((key) => !DELTA_KEYS.has(key))).toEqual([]);
    const thinks = 'reasoning' in delta || 'reasoning_content' in delta;
    expect(thinks && ('content' in delta || 'tool_calls' in delta), 'reasoning on its own').toBe(false);
  }
}
