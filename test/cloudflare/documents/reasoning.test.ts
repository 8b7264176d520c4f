// Reasoning, streamed and not (SPEC §4): two client forms, one engine form per model, names by policy, and with effort
// none nothing of it comes out.

import { reset } from 'cloudflare:test';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { addKey, type EngineScript, prepare, readReceipt, UNLIMITED } from '../fixtures.ts';
import { call, type Called, callWithText, type Fields, firstChoice, readDeltas, toFields } from './call.ts';

let token = '';
beforeAll(async () => {
  await prepare();
  token = await addKey('reasoning', {}, UNLIMITED);
});
afterAll(reset);

const THOUGHT = 'Secretly two and two.';
const USAGE = {
  prompt_tokens: 5,
  completion_tokens: 9,
  total_tokens: 14,
  completion_tokens_details: { reasoning_tokens: 6 },
};
const logprobsOf = (...tokens: readonly string[]): Fields => ({
  content: tokens.map((text) => ({ token: text, logprob: -0.1, bytes: null, top_logprobs: [] })),
});
const NO_LOGPROBS: Fields = {};

/** An engine that thinks, its reasoning under the given fields. */
function thinking(names: readonly string[], logprobs = NO_LOGPROBS, stream = false): EngineScript {
  const thought = Object.fromEntries(names.map((name) => [name, THOUGHT]));
  const shown = logprobs === NO_LOGPROBS ? {} : { logprobs };
  if (!stream) {
    const message = { role: 'assistant', content: 'Four.', ...thought };
    return { json: { id: 'c', choices: [{ index: 0, message, ...shown, finish_reason: 'stop' }], usage: USAGE } };
  }
  const chunk = (delta: Fields, rest: Fields = {}, reason: string | null = null): Fields => ({
    json: { choices: [{ index: 0, delta, ...rest, finish_reason: reason }] },
  });
  return {
    stream: [
      chunk({ role: 'assistant', content: '' }),
      chunk(thought, shown),
      chunk({ content: 'Four.' }, logprobs === NO_LOGPROBS ? {} : { logprobs: logprobsOf('Four.') }),
      chunk({}, {}, 'stop'),
      { json: { choices: [], usage: USAGE } },
      { data: '[DONE]' },
    ],
  };
}

/** What of an answer's message, or of a stream's deltas joined, stands under a name; undefined when the name is absent. */
function readMessage(called: Called, name: string): string | undefined {
  if (called.chunks.length === 0) {
    const value = toFields(firstChoice(called.answer)['message'])[name];
    return typeof value === 'string' ? value : undefined;
  }
  const parts = readDeltas(called).flatMap((delta) => (typeof delta[name] === 'string' ? [delta[name]] : []));
  return parts.length === 0 ? undefined : parts.join('');
}

/** The members of the engine's body that have to do with reasoning. */
function readSentReasoning({ sent }: Called): Fields {
  const names = ['chat_template_kwargs', 'reasoning_effort', 'reasoning'];
  return Object.fromEntries(Object.entries(sent ?? {}).filter(([name]) => names.includes(name)));
}

const on = { chat_template_kwargs: { enable_thinking: true } };
const off = { chat_template_kwargs: { enable_thinking: false } };

describe.each([false, true])('stream: %s', (stream) => {
  const ask = async (model: string, fields: Fields, names = ['reasoning'], logprobs = NO_LOGPROBS): Promise<Called> => {
    return call(token, 'chat', { model, stream, ...fields }, thinking(names, logprobs, stream));
  };

  it.each<[string, Fields, boolean]>([
    ['neither form: off by default', {}, false],
    ['the field', { reasoning_effort: 'high' }, true],
    ['the object', { reasoning: { effort: 'high' } }, true],
    ['the object with more in it', { reasoning: { effort: 'low', summary: 'auto' } }, true],
    ['both: the field wins, on', { reasoning_effort: 'low', reasoning: { effort: 'none' } }, true],
    ['both: the field wins, off', { reasoning_effort: 'none', reasoning: { effort: 'high' } }, false],
    ['the field null: the object counts', { reasoning_effort: null, reasoning: { effort: 'medium' } }, true],
    [
      'a field of no known level wins too, and is none',
      { reasoning_effort: 'max', reasoning: { effort: 'high' } },
      false,
    ],
    ['the object null', { reasoning: null }, false],
    ['its effort null', { reasoning: { effort: null } }, false],
    ['no known level', { reasoning: { effort: 'minimal' } }, false],
    ['a level in capitals', { reasoning_effort: 'HIGH' }, false],
    ['a number', { reasoning_effort: 3 }, false],
  ])('§4 Springboards, %s', async (_name, fields, wanted) => {
    const called = await ask('flint-alpha', fields);
    expect(readSentReasoning(called)).toEqual(wanted ? on : off);
    expect(readMessage(called, 'reasoning_content')).toBe(wanted ? THOUGHT : undefined);
    expect(readMessage(called, 'reasoning')).toBeUndefined();
    expect(readMessage(called, 'content')).toBe('Four.');
  });

  it.each<[string, string, Fields, Fields]>([
    ['support-agent', 'not asked: the engine decides', {}, {}],
    ['support-agent', 'a switch by its usual name', { reasoning_effort: 'low' }, on],
    ['support-agent', 'a switch, off', { reasoning_effort: 'none' }, off],
    [
      'kwarg-named',
      'a switch by another name',
      { reasoning_effort: 'low' },
      { chat_template_kwargs: { thinking: true } },
    ],
    ['kwarg-named', 'off', { reasoning: { effort: 'none' } }, { chat_template_kwargs: { thinking: false } }],
    ['no-preset', 'the level itself', { reasoning: { effort: 'medium' } }, { reasoning_effort: 'medium' }],
    ['no-preset', 'a level unknown is none', { reasoning_effort: 'xhigh' }, { reasoning_effort: 'none' }],
    ['few-levels', 'a level it has', { reasoning_effort: 'high' }, { reasoning_effort: 'high' }],
    ['few-levels', 'a level it lacks is not sent', { reasoning_effort: 'none' }, {}],
    ['reasoning-uncontrolled', 'no control', { reasoning_effort: 'high', reasoning: { effort: 'low' } }, {}],
    ['reasoning-unknown', 'nothing said of reasoning', { reasoning_effort: 'high' }, {}],
  ])('§4 %s: %s', async (model, _name, fields, expected) => {
    const called = await ask(model, fields);
    expect(readSentReasoning(called)).toEqual(expected);
    const hidden = JSON.stringify(fields).includes('none') || JSON.stringify(fields).includes('xhigh');
    expect(called.text.includes('Secretly')).toBe(!hidden);
  });

  it.each<[string, readonly string[]]>([
    ['support-agent', ['reasoning', 'reasoning_content']],
    ['llama-3.3-70b-instruct', ['reasoning', 'reasoning_content']],
    ['field-reasoning', ['reasoning']],
    ['field-reasoning-content', ['reasoning_content']],
  ])('§4 %s shows it as %j, whatever the engine calls it; never empty beside full', async (model, wanted) => {
    for (const names of [['reasoning'], ['reasoning_content'], ['reasoning', 'reasoning_content']]) {
      const called = await ask(model, { reasoning_effort: 'high' }, names);
      for (const name of ['reasoning', 'reasoning_content']) {
        expect(readMessage(called, name)).toBe(wanted.includes(name) ? THOUGHT : undefined);
      }
      expect(called.text).not.toMatch(/"reasoning(_content)?":(""|null)/);
    }
  });

  const NAMES = [
    ['reasoning'],
    ['reasoning_content'],
    ['reasoning', 'reasoning_content'],
    ['reasoning', 'thinking', 'reasoning_text'],
  ];
  it.each(['support-agent', 'flint-alpha', 'llama-3.3-70b-instruct', 'no-preset', 'reasoning-unknown'])(
    '§4 %s, effort none: nothing of it leaves, not through log probabilities either; it is billed',
    async (model) => {
      for (const names of NAMES) {
        const logprobs = logprobsOf('Secretly', ' two');
        const called = await ask(model, { reasoning_effort: 'none', logprobs: true }, names, logprobs);
        expect(called.status).toBe(200);
        expect(called.text).not.toContain('Secretly');
        expect(called.text).not.toMatch(/"reasoning(_content)?":/);
        expect(readMessage(called, 'content')).toBe('Four.');
        const receipt = await readReceipt(token, called.response);
        expect(receipt['usage']).toMatchObject({ output_tokens: 9, reasoning_tokens: 6 });
      }
    },
  );

  it('§4 log probabilities that are asked for are shown where reasoning is', async () => {
    const logprobs = logprobsOf('Secretly', ' two');
    const called = await ask('support-agent', { reasoning_effort: 'high', logprobs: true }, ['reasoning'], logprobs);
    expect(called.text).toContain('"token":"Secretly"');
  });

  it('§4 the caller’s own switch is never overwritten; what the effort hides stays hidden', async () => {
    const kwargs = { enable_thinking: true };
    const called = await ask('flint-alpha', { chat_template_kwargs: kwargs });
    expect(readSentReasoning(called)).toEqual({ chat_template_kwargs: kwargs });
    expect(called.text).not.toContain('Secretly');
    const shown = await ask('flint-alpha', {
      chat_template_kwargs: { enable_thinking: false },
      reasoning_effort: 'low',
    });
    expect(readSentReasoning(shown)).toEqual(off);
    expect(shown.text).toContain('Secretly');
  });
});

describe('streams whose reasoning comes in odd ways', () => {
  const stream = async (model: string, fields: Fields, choices: readonly Fields[]): Promise<Called> => {
    const steps = choices.map((choice) => ({ json: { choices: [{ index: 0, finish_reason: null, ...choice }] } }));
    const script = { stream: [...steps, { data: '[DONE]' }] };
    return call(token, 'chat', { model, stream: true, ...fields }, script);
  };
  const END = { delta: {}, finish_reason: 'stop' };
  const BOTH = { delta: { reasoning: 'Secretly.', content: 'Four.' }, logprobs: logprobsOf('Secretly', '.', 'Four.') };

  it('§7 reasoning before content: a delta with both becomes two', async () => {
    const called = await stream('field-reasoning', {}, [BOTH, END]);
    expect(readDeltas(called)).toEqual([{ role: 'assistant', reasoning: 'Secretly.' }, { content: 'Four.' }, {}]);
  });

  it('§4 effort none, reasoning and content in one delta: the content alone, without log probabilities', async () => {
    const called = await stream('flint-alpha', { logprobs: true }, [BOTH, END]);
    expect(readDeltas(called)).toEqual([{ role: 'assistant', content: 'Four.' }, {}]);
    expect(called.text).not.toContain('Secretly');
  });

  it('§4 effort none: log probabilities of tokens that are not content are not shown', async () => {
    const swallowed = { delta: {}, logprobs: logprobsOf('Secretly') };
    const empty = { delta: { content: '' }, logprobs: logprobsOf('Secretly') };
    const said = { delta: { content: 'Four.' }, logprobs: logprobsOf('Four.') };
    const cut = { delta: {}, logprobs: logprobsOf('Secretly'), finish_reason: 'length' };
    const called = await stream('flint-alpha', { logprobs: true }, [swallowed, empty, said, cut]);
    expect(called.text).not.toContain('Secretly');
    expect(called.text).toContain('"token":"Four."');
  });

  it('§4 effort none: from where the answer begins its log probabilities are shown, however it is cut', async () => {
    const called = await stream('flint-alpha', { logprobs: true }, [
      { delta: { content: 'Fo' }, logprobs: logprobsOf('Secretly', '</think>', 'Fo') },
      { delta: { content: 'ur' }, logprobs: logprobsOf('ur.', 'END') },
      { delta: { content: '.' }, logprobs: logprobsOf('<|im_end|>'), finish_reason: 'stop' },
    ]);
    expect(called.text).not.toContain('Secretly');
    for (const text of ['ur.', 'END', '<|im_end|>']) expect(called.text).toContain(`"token":"${text}"`);
  });

  it('§4 effort none and nothing but reasoning: the stream still has its role, its end and its usage', async () => {
    const called = await stream('support-agent', { reasoning_effort: 'none' }, [
      { delta: { role: 'assistant', reasoning: 'Secretly.' } },
      { delta: {}, finish_reason: 'length' },
    ]);
    expect(readDeltas(called)[0]).toEqual({ role: 'assistant', content: '' });
    expect(called.text).toContain('"finish_reason":"length"');
    expect(called.text).not.toContain('Secretly');
    expect(called.chunks.at(-1)).toMatchObject({ choices: [] });
  });
});

describe('§7 an engine that counts nothing: the gateway counts what it generated, shown or not', () => {
  const THOUGHT_LONG = 'Secretly, two and two is four.'.repeat(4);
  const ask = async (model: string, message: Fields, effort = 'high'): Promise<unknown> => {
    const json = { choices: [{ index: 0, message, finish_reason: 'stop' }] };
    const { answer } = await call(token, 'chat', { model, reasoning_effort: effort }, { json });
    return toFields(answer['usage'])['completion_tokens'];
  };

  it('§7 text by its length alone', async () => {
    expect(await ask('support-agent', { content: 'x' })).toBe(1);
    expect(await ask('support-agent', { content: 'Four.'.repeat(8) })).toBe(10);
    expect(await ask('support-agent', { content: null })).toBe(1);
  });

  it('§7 tool calls by their names and arguments', async () => {
    const tool_calls = [{ id: 'call_1', type: 'function', function: { name: 'look', arguments: '{"at":"home"}' } }];
    expect(await ask('support-agent', { content: null, tool_calls })).toBe(5);
  });

  it.each(['reasoning', 'reasoning_content'])('§7 reasoning under %s, whatever is shown of it', async (name) => {
    const message = { content: 'Four', [name]: THOUGHT_LONG };
    for (const model of ['support-agent', 'flint-alpha', 'field-reasoning']) {
      expect(await ask(model, message)).toBe(31);
      expect(await ask(model, message, 'none')).toBe(31);
    }
  });
});

// Engines can be told to keep reasoning to themselves and still spell it out in log probabilities.
describe('§4 effort none, reasoning that the engine swallowed: its log probabilities are not shown', () => {
  const ask = async (model: string, stream: boolean, content: string, tokens: readonly string[]): Promise<Called> => {
    const fields = { reasoning_effort: 'none', chat_template_kwargs: { enable_thinking: true }, logprobs: true };
    const logprobs = logprobsOf(...tokens);
    const body = { index: 0, logprobs, finish_reason: content === '' ? 'length' : 'stop' };
    const json = { choices: [{ ...body, message: { role: 'assistant', content } }], usage: USAGE };
    const steps = [{ json: { choices: [{ ...body, delta: { content } }] } }, { data: '[DONE]' }];
    const streams = stream || model === 'thinking-assembled';
    return call(token, 'chat', { model, stream, ...fields }, streams ? { stream: steps } : { json });
  };

  describe.each(['support-agent', 'flint-alpha', 'thinking-assembled'])('%s', (model) => {
    it.each([
      [false, 'before the answer', 'Four.', ['Secretly', ' two', '</think>', '\n\n', 'Four', '.']],
      [true, 'before the answer', 'Four.', ['Secretly', ' two', '</think>', '\n\n', 'Four', '.']],
      [false, 'instead of an answer', '', ['Secretly', ' two']],
      [true, 'instead of an answer', '', ['Secretly', ' two']],
      [false, 'as the answer begins', 'Secretly, four.', ['Secretly', ' two', '</think>', 'Secretly', ', four.']],
      [true, 'as the answer begins', 'Secretly, four.', ['Secretly', ' two', '</think>', 'Secretly', ', four.']],
    ])('§4 stream %s, %s', async (stream, _name, content, tokens) => {
      const called = await ask(model, stream, content, tokens);
      expect(called.status).toBe(200);
      expect(called.text).not.toContain('"token":" two"');
      expect(called.text).not.toContain('"token":"Secretly"');
    });

    it.each([
      [false, 'Four.', ['Four', '.']],
      [true, 'Four.', ['Four', '.']],
      [false, 'Four.', ['\n\n', 'Four', '.', '<|im_end|>']],
      [true, 'Four.', ['Four', '.', '<|im_end|>']],
      [false, 'Fo🙂ur.', ['Fo', '\ufffd', '', 'ur', '.']],
      [true, 'Fo🙂ur.', ['Fo', '\ufffd', '', 'ur', '.']],
    ])('§4 stream %s, those of the answer are: %s from %j', async (stream, content, tokens) => {
      const called = await ask(model, stream, content, tokens);
      for (const text of tokens) expect(called.text).toContain(`"token":${JSON.stringify(text)}`);
    });
  });
});

describe('§4 reasoning of earlier turns is renamed, its text stays as it was spelled', () => {
  const ask = async (message: string): Promise<string> => {
    const body = `{"model":"no-preset","messages":[{"role":"assistant","content":"x",${message}}],"max_tokens":1}`;
    return (await callWithText(token, 'chat', body)).sentText ?? '';
  };
  const SPELLED = '"\\u00e9 \\/ 🙂 \\ud83d"';

  it.each([
    `"reasoning":${SPELLED}`,
    `"reasoning_content":${SPELLED}`,
    `"reasoning":${SPELLED},"reasoning_content":"y"`,
    `"reasoning_content":"y","reasoning":${SPELLED}`,
    `"reasoning":null,"reasoning_content":${SPELLED}`,
  ])('§4 %s', async (message) => {
    const sent = await ask(message);
    expect(sent).toContain(`"reasoning":${SPELLED}`);
    expect(sent).not.toContain('reasoning_content');
  });
});

describe('§4 chat_template_kwargs go up to the letter', () => {
  const KWARGS = '{ "big":9007199254740993 , "huge" : 1e400,\n"text":"\\u00e9 \\/ 🙂","deep":{"a":[1.0,null,{}]}}';
  const ask = async (model: string, kwargs: string, rest = ''): Promise<string> => {
    const body = `{"model":"${model}","messages":[{"role":"user","content":"x"}],"chat_template_kwargs": ${kwargs}${rest}}`;
    return (await callWithText(token, 'chat', body)).sentText ?? '';
  };

  it.each(['no-preset', 'support-agent', 'llama-3.3-70b-instruct', 'reasoning-unknown'])('§4 %s', async (model) => {
    expect(await ask(model, KWARGS)).toContain(`"chat_template_kwargs": ${KWARGS}`);
  });

  it('§4 with the switch added at the end, the rest untouched', async () => {
    const added = `${KWARGS.slice(0, -1)},"enable_thinking":false}`;
    expect(await ask('flint-alpha', KWARGS)).toContain(`"chat_template_kwargs": ${added}`);
    const thinks = `${KWARGS.slice(0, -1)},"enable_thinking":true}`;
    expect(await ask('support-agent', KWARGS, ',"reasoning_effort":"low"')).toContain(
      `"chat_template_kwargs": ${thinks}`,
    );
    expect(await ask('flint-alpha', '{ }')).toContain('"chat_template_kwargs": {"enable_thinking":false');
  });

  it.each(['{"enable_thinking" :null}', '{"enable_think\\u0069ng":"yes"}', '{"a":1,"enable_thinking":[ ]}'])(
    '§4 the caller’s own key stays: %s',
    async (kwargs) => {
      expect(await ask('flint-alpha', kwargs)).toContain(`"chat_template_kwargs": ${kwargs}`);
      expect(await ask('support-agent', kwargs, ',"reasoning_effort":"high"')).toContain(kwargs);
    },
  );
});
