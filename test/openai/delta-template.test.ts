// Events translated by copying their string: what fits a template comes out as if it were parsed, everything else does
// not fit.

import { describe, expect, it } from 'vitest';

import { chatCompletions } from '../../src/openai/chat-completions.ts';
import { type StreamTranslator } from '../../src/openai/endpoint.ts';
import { buildContext, chunk } from './build-context.ts';

const counts = (output: number): object => ({ prompt_tokens: 7, total_tokens: 7 + output, completion_tokens: output });
const toEvent = (value: unknown): string => `data: ${JSON.stringify(value)}\n\n`;

/** A translator that has seen a role and two words. */
function begin(): StreamTranslator {
  const translator = chatCompletions.createTranslator(buildContext());
  for (const [at, content] of ['', 'one', 'two'].entries()) {
    const delta = at === 0 ? { role: 'assistant', content } : { content };
    translator.push({ type: '', data: JSON.stringify({ ...chunk(delta), usage: counts(at) }) });
  }
  return translator;
}

describe('§7 events like the one before', () => {
  it.each([
    ['a word', 'three'],
    ['a quote, a backslash, a line break', '"\\\n\t'],
    ['other alphabets and emoji', 'é日本👩‍👩‍👧'],
    ['what looks like JSON', '"},"finish_reason":"stop"}]'],
  ])('§7 %s: the same text and counts as when it is parsed', (_name, content) => {
    const event = { ...chunk({ content }), usage: counts(3) };
    const [copied, parsed] = [begin(), begin()];
    const alike = copied.pushAlike(`x${toEvent(event)}rest`, 1);
    const pushed = parsed.push({ type: '', data: JSON.stringify(event) });
    expect(alike).toEqual({ text: pushed.type === 'output' ? pushed.text : '', end: toEvent(event).length + 1 });
    expect(copied.progress()).toEqual(parsed.progress());
    expect(copied.progress().usage.output_tokens).toBe(3);
  });

  it.each<[string, string]>([
    ['an empty string', toEvent({ ...chunk({ content: '' }), usage: counts(3) })],
    ['a finish reason', toEvent({ ...chunk({ content: 'x' }, { finish_reason: 'stop' }), usage: counts(3) })],
    ['another choice', toEvent({ ...chunk({ content: 'x' }, { index: 1 }), usage: counts(3) })],
    ['reasoning', toEvent({ ...chunk({ reasoning: 'x' }), usage: counts(3) })],
    ['no counts', toEvent(chunk({ content: 'x' }))],
    ['more in the counts', toEvent({ ...chunk({ content: 'x' }), usage: { ...counts(3), estimated: true } })],
    ['an error beside it', toEvent({ ...chunk({ content: 'x' }), usage: counts(3), error: { message: 'boom' } })],
    [
      'an escape that JSON.stringify would not write',
      toEvent({ ...chunk({ content: 'x' }), usage: counts(3) }).replace('"x"', '"\\u0078"'),
    ],
    ['a raw control character', toEvent({ ...chunk({ content: 'x' }), usage: counts(3) }).replace('"x"', '"\tx"')],
    ['a number with a needless zero', toEvent({ ...chunk({ content: 'x' }), usage: counts(3) }).replace(':3}', ':03}')],
    ['half an event', toEvent({ ...chunk({ content: 'x' }), usage: counts(3) }).slice(0, -1)],
    ['half a string', toEvent({ ...chunk({ content: 'x' }), usage: counts(3) }).slice(0, -90)],
    ['CRLF', toEvent({ ...chunk({ content: 'x' }), usage: counts(3) }).replaceAll('\n', '\r\n')],
    ['nothing', ''],
  ])('§7 %s is not alike', (_name, text) => {
    const translator = begin();
    expect(translator.pushAlike(text, 0)).toBeNull();
    expect(translator.progress().usage.output_tokens).toBe(2);
  });

  it('§7 a choice that has ended takes no more', () => {
    const translator = begin();
    translator.push({ type: '', data: JSON.stringify({ ...chunk({}, { finish_reason: 'stop' }), usage: counts(2) }) });
    expect(translator.pushAlike(toEvent({ ...chunk({ content: 'x' }), usage: counts(3) }), 0)).toBeNull();
  });

  it('§4 with effort none reasoning that is alike vanishes too, and is counted', () => {
    const translator = chatCompletions.createTranslator(buildContext({ body: { reasoning_effort: 'none' } }));
    const words = ['a', 'b', 'c'].map((reasoning, at) => ({ ...chunk({ reasoning }), usage: counts(at + 1) }));
    const texts = words.map((word) => translator.pushAlike(toEvent(word), 0)?.text ?? pushText(translator, word));
    expect(texts.join('')).not.toContain('reasoning');
    expect(translator.progress().usage.output_tokens).toBe(3);
  });
});

function pushText(translator: StreamTranslator, value: unknown): string {
  const pushed = translator.push({ type: '', data: JSON.stringify(value) });
  return pushed.type === 'output' ? pushed.text : '';
}
