// What every inference endpoint promises alike, by the same table over all of them, inside workerd: engine faults before
// and inside a stream, a client that leaves, and what is particular to text completions.

import { reset } from 'cloudflare:test';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { joinParts, parsePublishedResponses } from '../openai/published-responses.ts';
import { parsePublishedStream } from '../openai/published-schema.ts';
import {
  addKey,
  chat,
  type EngineScript,
  INFERENCE_PATHS,
  type InferencePath,
  post,
  prepare,
  readError,
  readEvents,
  readReceipt,
  readRecorded,
  toEngineChoice,
  toFieldsOf,
} from './fixtures.ts';

beforeAll(prepare);
afterAll(reset);

type Wire = {
  /** A request body. */
  readonly body: (fields: Record<string, unknown>, script?: EngineScript) => string;
  /** A choice of an engine's streamed chunk. */
  readonly delta: (text: string) => object;
  /** What the client has of a stream. */
  readonly read: (stream: string) => Seen;
};
type Seen = { readonly said: string; readonly usage: unknown; readonly code: string | null; readonly end: string };

function wireOf(path: InferencePath): Wire {
  return {
    body: (fields, script) => chat({ ...toFieldsOf(path), ...fields }, script),
    delta: (text) => toEngineChoice(path, text),
    read: path === '/v1/responses' ? readResponses : (stream) => readCompletions(path, stream),
  };
}

function readCompletions(path: InferencePath, stream: string): Seen {
  const { chunks, usage, error } = parsePublishedStream(stream, path === '/v1/completions' ? 'text' : 'chat');
  const choices = chunks.flatMap((chunk): readonly { readonly finish_reason: string | null }[] => chunk.choices);
  const said = choices.map((choice) => /"(?:content|text)":"([^"]*)"/.exec(JSON.stringify(choice))?.[1] ?? '').join('');
  const counts = usage === null ? null : [usage.prompt_tokens, usage.completion_tokens];
  return { said, usage: counts, code: error?.code ?? null, end: choices.at(-1)?.finish_reason ?? 'none' };
}

/** Codes are OpenAI's for a response; ours is on the receipt. */
function readResponses(stream: string): Seen {
  const { response } = parsePublishedResponses(stream);
  const { usage, incomplete_details: details } = response;
  return {
    said: joinParts(response, 'output_text'),
    usage: usage === null ? null : [usage.input_tokens, usage.output_tokens],
    code: response.error?.code ?? null,
    end: details?.reason === 'max_output_tokens' ? 'length' : response.status,
  };
}

/** Ids and times of a response and its items. */
function toOwn(answer: object): object {
  const { id, created_at, completed_at, output }: Record<string, unknown> = { ...answer };
  return output === undefined ? {} : { id, created_at, completed_at, output };
}

describe.each(INFERENCE_PATHS)('§3, §7 engine faults on %s', (path) => {
  const { delta, body, read } = wireOf(path);

  it.each([
    ['unreachable', { throw: true } as const, 502, 'upstream_unreachable', 2],
    ['500', { status: 500, body: 'stack at http://10.0.0.5/x' } as const, 502, 'upstream_error', 1],
    ['503', { status: 503, body: '' } as const, 503, 'server_is_overloaded', 1],
    ['429', { status: 429, body: '' } as const, 503, 'server_is_overloaded', 1],
    ['401', { status: 401, body: '{"error":"Unauthorized"}' } as const, 502, 'upstream_misconfigured', 1],
    ['404', { status: 404, body: '' } as const, 502, 'upstream_misconfigured', 1],
    ['302', { status: 302, body: '' } as const, 502, 'upstream_error', 1],
    ['200 with a JSON error', { json: { error: { message: 'boom', code: 500 } } }, 502, 'upstream_error', 1],
  ])(
    '§3 %s, stream and not: an HTTP error, a failed receipt, no cost',
    async (_name, script, status, code, attempts) => {
      const token = await addKey(`faults${path.replaceAll('/', '-')}`, {}, {});
      for (const stream of [false, true]) {
        const response = await post(token, body({ stream }, script), {}, path);
        const error = await readError(response);
        expect([response.status, error['code'], error['param']]).toEqual([status, code, null]);
        expect(JSON.stringify(error)).not.toContain('10.0.0.5');
        expect(await readReceipt(token, response)).toMatchObject({
          status: 'failed',
          http_status: status,
          error_code: code,
          attempts,
          cost_usd: '0.000000000',
        });
      }
    },
  );

  it('§3 an engine 400 is the caller’s: its message, its param; context overflow has its code', async () => {
    const token = await addKey(`engine400${path.replaceAll('/', '-')}`);
    const text = '{"error":{"message":"min_p must be in [0, 1]","type":"BadRequestError","param":"min_p","code":400}}';
    const refused = await post(token, body({}, { status: 400, body: text }), {}, path);
    expect([refused.status, await readError(refused)]).toEqual([
      400,
      { message: 'min_p must be in [0, 1]', type: 'invalid_request_error', param: 'min_p', code: null },
    ]);
    const overflow = '{"object":"error","message":"This model\'s maximum context length is 10 tokens.","code":400}';
    const long = await post(token, body({ stream: true }, { status: 400, body: overflow }), {}, path);
    expect(await readError(long)).toMatchObject({
      code: 'context_length_exceeded',
      param: { '/v1/chat/completions': 'messages', '/v1/completions': 'prompt', '/v1/responses': 'input' }[path],
    });
  });

  it.each([
    ['cut between events', [{ wait: 50, cut: true }], 'upstream_disconnected'],
    ['cut in mid-event', [{ raw: 'data: {"id":"c1","obj' }, { cut: true }], 'upstream_disconnected'],
    ['clean end without finish', [], 'upstream_disconnected'],
    ['an engine error', [{ data: '{"error":{"message":"boom","code":500}}' }, { data: '[DONE]' }], 'upstream_error'],
    ['garbage', [{ data: 'not json' }], 'upstream_error'],
  ])('§7 §8 %s: deltas, usage, error, the end; a failed receipt with the counts', async (_name, tail, code) => {
    const token = await addKey(`cuts${path.replaceAll('/', '-')}`, {}, {});
    const usage = { prompt_tokens: 3, completion_tokens: 1, total_tokens: 4 };
    const head = { json: { choices: [delta('Hi')], usage } };
    const response = await post(token, body({ stream: true }, { stream: [head, ...tail] }), {}, path);
    expect(response.status).toBe(200);
    const shown = path === '/v1/responses' ? 'server_error' : code;
    expect(read(await response.text())).toMatchObject({ said: 'Hi', usage: [3, 1], code: shown });
    expect(await readReceipt(token, response)).toMatchObject({
      status: 'failed',
      http_status: 200,
      error_code: code,
      usage: { input_tokens: 3, output_tokens: 1 },
      usage_source: 'engine_running',
      cost_usd: '0.000000000',
    });
  });

  it('§7 a whole JSON answer to a streamed request is relayed as the stream it stands for', async () => {
    const token = await addKey(`whole${path.replaceAll('/', '-')}`);
    const choice = path === '/v1/completions' ? { text: 'Hi' } : { message: { role: 'assistant', content: 'Hi' } };
    const json = {
      id: 'c',
      model: 'engine-model',
      choices: [{ index: 0, ...choice, finish_reason: 'length' }],
      usage: { prompt_tokens: 3, completion_tokens: 2, total_tokens: 5 },
    };
    const response = await post(token, body({ stream: true }, { json }), {}, path);
    expect(response.headers.get('content-type')).toBe('text/event-stream; charset=utf-8');
    expect(read(await response.text())).toEqual({ said: 'Hi', usage: [3, 2], code: null, end: 'length' });
    expect(await readReceipt(token, response)).toMatchObject({ status: 'incomplete', usage_source: 'engine' });
  });

  it('§7 a client that stops reading: the engine is aborted, the receipt is interrupted and billed', async () => {
    const token = await addKey(`leaver${path.replaceAll('/', '-')}`);
    const usage = { prompt_tokens: 3, completion_tokens: 1, total_tokens: 4 };
    const step = { json: { choices: [delta('Hi')], usage }, wait: 20 };
    const steps = Array.from({ length: 50 }, () => step);
    const response = await post(token, body({ stream: true }, { stream: steps }), {}, path);
    const reader = response.body?.getReader();
    await reader?.read();
    await reader?.cancel();
    const receipt = await readReceipt(token, response);
    expect(receipt).toMatchObject({ status: 'interrupted', http_status: 200, usage: { output_tokens: 1 } });
    expect(receipt['cost_usd']).not.toBe('0.000000000');
    expect((await readRecorded(response))?.aborted).toBe(true);
  });
});

describe.each(INFERENCE_PATHS)('§6 upstream_stream on %s: the engine streams, the client gets JSON', (path) => {
  const { delta, body } = wireOf(path);
  const ask = async (id: string, script?: EngineScript): Promise<[string, Response]> => {
    const token = await addKey(`${id}${path.replaceAll('/', '-')}`);
    return [token, await post(token, body({ model: 'streamed' }, script), {}, path)];
  };

  it('§6 the same answer as from an engine that does not stream', async () => {
    const [token, response] = await ask('assembled');
    const plain = await post(token, body({}), {}, path);
    const [assembled, whole] = [await response.json<object>(), await plain.json<object>()];
    // What is a response's own differs with the request and the clock.
    const own = { model: 'streamed', ...toOwn(assembled) };
    expect(assembled).toEqual({ ...whole, ...own });
    expect(response.headers.get('content-type')).toBe('application/json');
    expect((await readRecorded(response))?.text).toContain('"stream":true');
    expect(await readReceipt(token, response)).toMatchObject({ status: 'completed', stream: false, http_status: 200 });
  });

  it.each([
    ['cut', [{ wait: 50, cut: true }], 502, 'upstream_error'],
    ['an engine error', [{ data: '{"error":{"message":"boom","code":500}}' }], 502, 'upstream_error'],
    ['an end without finish', [], 502, 'upstream_error'],
  ])(
    '§3 %s: an HTTP error, since the client has seen nothing; the tokens are recorded',
    async (name, tail, status, code) => {
      const usage = { prompt_tokens: 3, completion_tokens: 1, total_tokens: 4 };
      const [token, response] = await ask(`assembled-${name.length}`, {
        stream: [{ json: { choices: [delta('Hi')], usage } }, ...tail],
      });
      expect([response.status, (await readError(response))['code']]).toEqual([status, code]);
      expect(await readReceipt(token, response)).toMatchObject({
        status: 'failed',
        http_status: status,
        usage: { output_tokens: 1 },
        cost_usd: '0.000000000',
      });
    },
  );
});

describe('§4 text completions', () => {
  const path = '/v1/completions';
  const { body } = wireOf(path);
  const ask = async (token: string, fields: Record<string, unknown>, script?: EngineScript): Promise<Response> => {
    return post(token, body(fields, script), {}, path);
  };

  it('§4 a JSON answer in normal form, and a receipt that names the endpoint', async () => {
    const token = await addKey('text-plain');
    const response = await ask(token, {});
    expect(await response.json()).toEqual({
      id: 'chatcmpl-engine',
      object: 'text_completion',
      created: 1789516800,
      model: 'test-model',
      choices: [{ index: 0, text: 'Hi', logprobs: null, finish_reason: 'stop' }],
      usage: { prompt_tokens: 3, completion_tokens: 2, total_tokens: 5 },
    });
    expect(await readReceipt(token, response)).toMatchObject({ endpoint: path, status: 'completed' });
    expect((await readRecorded(response))?.path).toBe(path);
  });

  it('§7 a stream: text, finish, one usage chunk, [DONE]', async () => {
    const token = await addKey('text-stream');
    const events = await readEvents(await ask(token, { stream: true }));
    const chunks = events.slice(0, -1).map((event): Record<string, unknown> => JSON.parse(event));
    expect(events.at(-1)).toBe('[DONE]');
    expect(chunks.map((chunk) => chunk['object'])).toEqual(Array.from({ length: 3 }, () => 'text_completion'));
    expect(chunks.map((chunk) => chunk['choices'])).toEqual([
      [{ index: 0, text: 'Hi', logprobs: null, finish_reason: null }],
      [{ index: 0, text: '', logprobs: null, finish_reason: 'stop' }],
      [],
    ]);
  });

  it('§7 prompts counted each for itself: running counts add up, the last of each choice counts', async () => {
    const token = await addKey('text-prompts');
    const step = (index: number, prompt: number, output: number, reason: string | null): Record<string, unknown> => ({
      json: {
        choices: [{ index, text: 'x', finish_reason: reason }],
        usage: { prompt_tokens: prompt, completion_tokens: output, total_tokens: prompt + output },
      },
    });
    const steps = [
      step(1, 5, 1, null),
      step(0, 3, 1, null),
      step(1, 5, 2, 'stop'),
      step(0, 3, 4, 'length'),
      { data: '[DONE]' },
    ];
    const response = await ask(token, { prompt: ['a', 'b'], stream: true }, { stream: steps });
    const events = await readEvents(response);
    expect(JSON.parse(events.at(-2) ?? '')['usage']).toEqual({
      prompt_tokens: 8,
      completion_tokens: 6,
      total_tokens: 14,
    });
    expect(await readReceipt(token, response)).toMatchObject({ usage: { input_tokens: 8, output_tokens: 6 } });
  });

  it.each([
    [{ logprobs: true, top_logprobs: 3 }, '"logprobs":3'],
    [{ logprobs: true }, '"logprobs":0'],
    [{ logprobs: 5 }, '"logprobs":5'],
    [{}, '"max_tokens":1024'],
  ])('§4 %j goes up as %s', async (fields, expected) => {
    const token = await addKey('text-up');
    const recorded = await readRecorded(await ask(token, { model: 'capable', ...fields }));
    expect(recorded?.text).toContain(expected);
    expect(recorded?.text).not.toContain('top_logprobs');
  });

  it('§4 a seed of any size goes up as it was spelled', async () => {
    const token = await addKey('text-seed');
    for (const seed of ['9007199254740993', '1e400', '-1.0']) {
      const response = await post(token, body({}).replace('{', `{"seed":${seed},`), {}, path);
      expect(response.status).toBe(200);
      expect((await readRecorded(response))?.text).toContain(`"seed":${seed},`);
    }
  });

  it('§2 without any limit vLLM is asked for the rest of the context, not for its default of 16', async () => {
    const token = await addKey('text-rest');
    const recorded = await readRecorded(await ask(token, { model: 'unlimited-model' }));
    expect(recorded?.text).toContain('"max_tokens":null');
  });

  it.each([
    ['token ids', { prompt: [1, 2] }, 'invalid_type', 'prompt[0]'],
    ['no prompt', { prompt: null }, 'missing_required_parameter', 'prompt'],
    ['no prompts', { prompt: [] }, 'empty_array', 'prompt'],
    ['129 prompts', { prompt: Array.from({ length: 129 }, () => 'a') }, 'array_above_max_length', 'prompt'],
    ['echo', { echo: true }, 'unsupported_parameter', 'echo'],
    ['suffix', { suffix: 'x' }, 'unsupported_parameter', 'suffix'],
    ['logprobs', { logprobs: 1 }, 'unsupported_parameter', 'logprobs'],
    ['too many logprobs', { logprobs: 21 }, 'integer_above_max_value', 'logprobs'],
  ])('§4 %s is refused', async (_name, fields, code, param) => {
    const token = await addKey('text-refused');
    const response = await ask(token, fields);
    expect(response.status).toBe(400);
    expect(await readError(response)).toMatchObject({ code, param });
  });

  it('§4 log probabilities leave in the legacy shape although the engine sends those of chat', async () => {
    const token = await addKey('text-logprobs');
    const content = [
      { token: 'H', logprob: -0.5, top_logprobs: [{ token: 'H', logprob: -0.5 }] },
      { token: 'i', logprob: -1, top_logprobs: [{ token: 'i', logprob: -1 }] },
    ];
    const json = { choices: [{ index: 0, text: 'Hi', logprobs: { content }, finish_reason: 'stop' }] };
    const answer = await (await ask(token, { model: 'capable', logprobs: 1 }, { json })).json<{ choices: unknown[] }>();
    expect(answer.choices[0]).toMatchObject({
      logprobs: {
        tokens: ['H', 'i'],
        token_logprobs: [-0.5, -1],
        top_logprobs: [{ H: -0.5 }, { i: -1 }],
        text_offset: [0, 1],
      },
    });
  });
});
