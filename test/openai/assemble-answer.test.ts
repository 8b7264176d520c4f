// A stream put together is the answer the engine gives without streaming: the same seed, captured both ways from a real
// llama-server, and what only some streams have.

import { describe, expect, it } from 'vitest';

import { chatCompletions } from '../../src/openai/chat-completions.ts';
import { textCompletions } from '../../src/openai/text-completions.ts';
import { type Endpoint } from '../../src/openai/endpoint.ts';
import { buildContext } from './build-context.ts';
import { chatAnswerSchema, textAnswerSchema } from './published-schema.ts';

type Answer = {
  readonly choices: readonly {
    readonly index: number;
    readonly message: object;
    readonly logprobs: { readonly content: readonly unknown[] } | null;
    readonly finish_reason: string;
  }[];
};

function assemble(endpoint: Endpoint, chunks: readonly object[]): Answer {
  const context = buildContext();
  const translator = endpoint.createTranslator(context);
  let text = '';
  for (const chunk of chunks) {
    const translated = translator.push({
      type: '',
      data: JSON.stringify({ id: 'c', model: 'm', created: 5, ...chunk }),
    });
    if (translated.type === 'output') text += translated.text;
  }
  const body = endpoint.assembleAnswer(text + translator.finish(), context);
  (endpoint === chatCompletions ? chatAnswerSchema : textAnswerSchema).parse(JSON.parse(body));
  const answer: Answer = JSON.parse(body);
  return answer;
}

const chat = (delta: object, finish: string | null = null, more: object = {}): object => ({
  choices: [{ index: 0, delta, finish_reason: finish, ...more }],
});

describe('§6 a stream as a JSON answer', () => {
  it('§4 content, reasoning under both names, refusal null, usage', () => {
    const answer = assemble(chatCompletions, [
      chat({ role: 'assistant', content: '' }),
      chat({ reasoning: 'hm' }),
      chat({ content: 'Hel' }),
      chat({ content: 'lo' }),
      chat({}, 'stop'),
      { choices: [], usage: { prompt_tokens: 3, completion_tokens: 4, total_tokens: 7 } },
    ]);
    expect(answer).toMatchObject({
      object: 'chat.completion',
      choices: [
        {
          index: 0,
          message: { role: 'assistant', content: 'Hello', refusal: null, reasoning: 'hm', reasoning_content: 'hm' },
          logprobs: null,
          finish_reason: 'stop',
        },
      ],
      usage: { prompt_tokens: 3, completion_tokens: 4, total_tokens: 7 },
    });
  });

  it('§4 tool calls: ids and names once, arguments joined, content null', () => {
    const call = (index: number, details: object, id?: string): object => ({
      tool_calls: [{ index, ...(id === undefined ? {} : { id, type: 'function' }), function: details }],
    });
    const answer = assemble(chatCompletions, [
      chat({ role: 'assistant', content: '' }),
      chat(call(0, { name: 'a', arguments: '' }, 'call_a')),
      chat(call(0, { arguments: '{"x"' })),
      chat(call(1, { name: 'b', arguments: '{}' }, 'call_b')),
      chat(call(0, { arguments: ':1}' })),
      chat({}, 'tool_calls'),
    ]);
    const [choice] = answer.choices;
    expect(choice?.finish_reason).toBe('tool_calls');
    expect(choice?.message).toMatchObject({
      content: null,
      tool_calls: [
        { id: 'call_a', type: 'function', function: { name: 'a', arguments: '{"x":1}' } },
        { id: 'call_b', type: 'function', function: { name: 'b', arguments: '{}' } },
      ],
    });
  });

  it('§4 tool calls that come in any order are in the order of their indexes', () => {
    const call = (index: number): object => ({
      tool_calls: [{ index, id: `call_${index}`, type: 'function', function: { name: `f${index}`, arguments: '{}' } }],
    });
    const answer = assemble(chatCompletions, [chat(call(1)), chat(call(0)), chat({}, 'tool_calls')]);
    const calls = [0, 1].map((at) => ({ id: `call_${at}`, function: { name: `f${at}`, arguments: '{}' } }));
    expect(answer.choices[0]?.message).toMatchObject({ tool_calls: calls });
  });

  it('§4 choices in the order of their indexes, log probabilities joined', () => {
    const logprobs = (token: string): object => ({ logprobs: { content: [{ token, logprob: -1 }] } });
    const answer = assemble(chatCompletions, [
      { choices: [{ index: 1, delta: { content: 'B' }, finish_reason: 'length' }] },
      chat({ content: 'A' }, null, logprobs('A')),
      chat({ content: 'a' }, 'stop', logprobs('a')),
    ]);
    const { choices } = answer;
    expect(choices.map(({ index }) => index)).toEqual([0, 1]);
    expect(choices[0]?.logprobs?.content).toHaveLength(2);
  });

  it('§4 text completions, offsets of log probabilities counted on', () => {
    const text = (value: string, finish: string | null): object => ({
      choices: [
        {
          index: 0,
          text: value,
          finish_reason: finish,
          logprobs: { content: [{ token: value, logprob: -1, top_logprobs: [] }] },
        },
      ],
    });
    const answer = assemble(textCompletions, [text('ab', null), text('c', 'length')]);
    expect(answer).toMatchObject({
      object: 'text_completion',
      choices: [{ text: 'abc', finish_reason: 'length', logprobs: { tokens: ['ab', 'c'], text_offset: [0, 2] } }],
    });
  });
});
