// The isolate's byte budget: what is held, given back, and refused when it is spent.

import { describe, expect, it } from 'vitest';

import { createByteBudget } from '../../src/gateway/byte-budget.ts';
import { createStreamTranslation } from '../../src/gateway/stream-translation.ts';
import { createTextReader } from '../../src/gateway/text-reader.ts';
import { chatCompletions } from '../../src/openai/chat-completions.ts';
import { buildContext } from '../openai/build-context.ts';

describe('§6 one byte budget per isolate', () => {
  it('§6 spent only when more than all of it is held; given back, it is there again', () => {
    const budget = createByteBudget(100);
    const [first, second] = [budget.open(), budget.open()];
    expect(first.add(60)).toBe(true);
    expect(second.add(40)).toBe(true);
    expect(budget.isSpent()).toBe(false);
    expect(second.add(1)).toBe(false);
    expect(budget.isSpent()).toBe(true);
    first.drop(10);
    expect(budget.isSpent()).toBe(false);
    first.free();
    second.free();
    expect(budget.open().add(100)).toBe(true);
  });

  it('§6 nothing is given back twice, and what comes after the end is not counted', () => {
    const budget = createByteBudget(100);
    const held = budget.open();
    held.add(50);
    held.drop(80);
    held.free();
    held.free();
    held.drop(10);
    expect(held.add(1000)).toBe(true);
    expect(budget.isSpent()).toBe(false);
    expect(budget.open().add(101)).toBe(false);
  });

  it('§6 a partial event counts while it is partial', async () => {
    const budget = createByteBudget(1000);
    const encoder = new TextEncoder();
    const seen: boolean[] = [];
    const pieces = [`data: {"id":"${'x'.repeat(900)}`, 'y'.repeat(200), '"}\n\n', 'data: {}\n\n'];
    const body = new ReadableStream<Uint8Array>(
      {
        pull(controller) {
          seen.push(budget.isSpent());
          const piece = pieces.shift();
          if (piece === undefined) controller.close();
          else controller.enqueue(encoder.encode(piece));
        },
      },
      { highWaterMark: 0 },
    );
    const translation = createStreamTranslation(
      chatCompletions.createTranslator(buildContext()),
      10_000,
      budget.open(),
    );
    const reader = createTextReader(body);
    for (let text = 0; text < 4; text += 1) translation.push((await reader.read()).text);
    expect(await reader.read()).toMatchObject({ type: 'end', broken: false });
    expect(seen).toEqual([false, false, true, false, false]);
  });
});
