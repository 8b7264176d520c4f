// An engine's errors in every shape of WIRE §4e: what the client is told, and that nothing internal is in it.

import { describe, expect, test } from 'vitest';
import { readEmbeddedError, readUpstreamStatus } from '../../src/openai/upstream-error.ts';
import { readCapture } from './build-context.ts';

const told = (status: number, text: string | object): unknown =>
  readUpstreamStatus(status, typeof text === 'string' ? text : JSON.stringify(text), 'messages').error;
const rejected = (message: string, param: string | null = null): object => ({
  kind: 'upstream_rejected',
  message,
  param,
  code: null,
});
const DEFAULT = rejected('The model did not accept this request.');

describe('by status', () => {
  test.each([
    [401, 'upstream_misconfigured'],
    [403, 'upstream_misconfigured'],
    [404, 'upstream_misconfigured'],
    [429, 'server_is_overloaded'],
    [503, 'server_is_overloaded'],
    [301, 'upstream_error'],
    [304, 'upstream_error'],
    [402, 'upstream_error'],
    [408, 'upstream_error'],
    [413, 'upstream_error'],
    [418, 'upstream_error'],
    [500, 'upstream_error'],
    [502, 'upstream_error'],
    [504, 'upstream_error'],
  ])('§3 %i is %s, and no word of the engine reaches the client', (status, failure) => {
    expect(told(status, { error: { message: 'secret detail', code: status } })).toEqual({ kind: 'upstream', failure });
  });
});

describe('400 and 422: the engine’s own words, in every shape', () => {
  test.each<[string, string | object, object]>([
    ['nested', { error: { message: 'bad n', type: 'BadRequestError', param: 'n', code: 400 } }, rejected('bad n', 'n')],
    ['nested, param null', { error: { message: 'bad', type: 'x', param: null, code: null } }, rejected('bad')],
    ['nested, param no string', { error: { message: 'bad', param: 5 } }, rejected('bad')],
    [
      'top-level (SGLang, old vLLM)',
      { object: 'error', message: 'bad', type: 'BadRequest', param: 'stop', code: 400 },
      rejected('bad', 'stop'),
    ],
    ['error as text (TGI)', { error: 'bad', error_type: 'validation' }, rejected('bad')],
    ['detail as text (FastAPI)', { detail: 'bad' }, rejected('bad')],
    [
      'detail as list (FastAPI)',
      { detail: [{ loc: ['body', 'n'], msg: 'bad', type: 'x' }, { msg: 'second' }] },
      rejected('bad'),
    ],
    ['message', { message: 'bad' }, rejected('bad')],
    ['plain text', 'bad', rejected('bad')],
    ['HTML', '<html><body>nginx/1.2</body></html>', DEFAULT],
    ['HTML after white space', '\n <!DOCTYPE html>', DEFAULT],
    ['empty', '', DEFAULT],
    ['an empty object', {}, DEFAULT],
    ['an array', '[1]', rejected('[1]')],
    ['llama-server, a true one', readCapture('err-bad-messages'), rejected("Expected 'messages' to be an array")],
    ['llama-server, another', readCapture('err-no-messages'), rejected("'messages' is required")],
  ])('§3 %s', (_name, text, expected) => {
    for (const status of [400, 422]) expect(told(status, text)).toEqual(expected);
  });

  test('§3 a message is cut at 500 characters', () => {
    expect(told(400, { message: 'x'.repeat(5000) })).toMatchObject({ message: 'x'.repeat(500) });
  });
});

describe('context overflow, in each engine’s wording', () => {
  test.each<[string, number, string | object]>([
    [
      'vLLM',
      400,
      {
        error: {
          message:
            "This model's maximum context length is 4096 tokens. However, you requested 5000 tokens (4000 in the messages, 1000 in the completion).",
          type: 'BadRequestError',
          code: 400,
        },
      },
    ],
    [
      'vLLM, newer',
      400,
      {
        error: {
          message:
            "'max_tokens' or 'max_completion_tokens' is too large: 9000. This model's maximum context length is 4096 tokens and your request has 12 input tokens.",
          code: 400,
        },
      },
    ],
    [
      'vLLM, from the engine core',
      400,
      {
        error: {
          message:
            'The decoder prompt (length 5000) is longer than the maximum model length of 4096. Make sure that `max_model_len` is no smaller than the number of text tokens.',
          code: 400,
        },
      },
    ],
    [
      'SGLang',
      400,
      {
        object: 'error',
        message: "The input (5000 tokens) is longer than the model's context length (4096 tokens).",
        code: 400,
      },
    ],
    [
      'SGLang, with the output',
      400,
      {
        object: 'error',
        message: "Requested token count exceeds the model's maximum context length of 4096 tokens.",
        code: 400,
      },
    ],
    ['llama.cpp, a true one', 400, readCapture('err-context')],
    [
      'llama.cpp, its type alone',
      400,
      { error: { code: 400, message: 'too many', type: 'exceed_context_size_error' } },
    ],
    [
      'TGI',
      422,
      {
        error:
          'Input validation error: `inputs` tokens + `max_new_tokens` must be <= 4096. Given: 5000 `inputs` tokens and 100 `max_new_tokens`',
        error_type: 'validation',
      },
    ],
    ['an OpenAI-like code', 400, { error: { message: 'Too long.', code: 'context_length_exceeded' } }],
  ])('§3 %s', (_name, status, text) => {
    for (const param of ['messages', 'prompt', 'input']) {
      const body = typeof text === 'string' ? text : JSON.stringify(text);
      expect(readUpstreamStatus(status, body, param).error).toMatchObject({
        kind: 'invalid_parameter',
        code: 'context_length_exceeded',
        param,
      });
      const embedded: Record<string, unknown> = JSON.parse(body);
      expect(readEmbeddedError(embedded, param)?.error).toMatchObject({
        code: 'context_length_exceeded',
        param,
      });
    }
  });
});

describe('nothing internal leaks', () => {
  test.each<[string, string, string]>([
    ['a URL', 'failed at http://10.0.0.7:8000/v1/x?key=1 today', '10.0.0.7'],
    ['a URL in quotes', 'see "https://gpu-7.internal/model"', 'gpu-7'],
    ['another scheme', 'tcp://gpu-7:5555 closed', 'gpu-7'],
    ['an IP', 'peer 192.168.1.20 gone', '192.168'],
    ['an IP and port', 'peer 192.168.1.20:8000 gone', '8000'],
    ['an IPv6 and port', 'peer [fd00::12]:8000 gone', 'fd00'],
    ['a host and port', 'connect gpu-7.internal:8000 refused', 'gpu-7'],
    ['localhost and port', 'connect localhost:8000 refused', 'localhost'],
    ['a path after a space', 'cannot open /home/ops/models/x.gguf', 'ops'],
    ['its first directory too', 'cannot open /home/ops/models/x.gguf', 'home'],
    ['a path in quotes', "No such file: '/usr/lib/python3/site.py'", 'usr'],
    ['a path after an equals sign', 'model=/models/secret.gguf', 'secret'],
    [
      'a stack trace',
      'bad value\nTraceback (most recent call last):\n  File "engine.py", line 5, in step',
      'engine.py',
    ],
    ['a key', 'token sk-abcdefghijklmnop rejected', 'abcdef'],
    ['a bearer token', 'Authorization: Bearer abc.def-ghi failed', 'abc.def'],
  ])('§3 %s', (_name, message, secret) => {
    const { error } = readUpstreamStatus(400, JSON.stringify({ error: { message } }), 'messages');
    expect(error).toMatchObject({ message: expect.stringMatching(/./) });
    expect(JSON.stringify(error)).not.toContain(secret);
  });

  test.each([
    "Invalid 'max_tokens': must be >= 1, got 0.",
    'temperature must be in [0, 2], or and/or left out',
    'Expected a value like 1.5 at line 12:30',
    'model org/Model-7B does not support tools',
  ])('§3 what is not an address stays: %s', (message) => {
    expect(told(400, { message })).toMatchObject({ message });
  });

  test('§10 the detail for the log says the status and no more than the error’s kind: it may repeat the prompt', () => {
    const { detail } = readUpstreamStatus(
      400,
      JSON.stringify({ error: { message: 'prompt: my secret', type: 'BadRequestError' } }),
      'messages',
    );
    expect(detail).toContain('400');
    expect(detail).not.toContain('secret');
  });
});

describe('readEmbeddedError', () => {
  test.each([
    {},
    { error: null },
    { error: undefined },
    { error: false },
    { object: 'chat.completion' },
    { choices: [] },
  ])('§3 %j carries no error', (value) => {
    expect(readEmbeddedError(value, 'messages')).toBeNull();
  });

  test.each<[string, Readonly<Record<string, unknown>>, object]>([
    ['without a code', { error: { message: 'x' } }, { kind: 'upstream', failure: 'upstream_error' }],
    ['text', { error: 'x' }, { kind: 'upstream', failure: 'upstream_error' }],
    ['code 400', { error: { message: 'x', code: 400 } }, rejected('x')],
    ['code 404', { error: { message: 'x', code: 404 } }, { kind: 'upstream', failure: 'upstream_misconfigured' }],
    ['code 503', { error: { message: 'x', code: 503 } }, { kind: 'upstream', failure: 'server_is_overloaded' }],
    ['a code as text', { error: { message: 'x', code: 'boom' } }, { kind: 'upstream', failure: 'upstream_error' }],
    ['http_status_code (TGI)', { error: { message: 'x', http_status_code: 422 } }, rejected('x')],
    ['an error object at the top', { object: 'error', message: 'x', code: 400 }, rejected('x')],
  ])('§3 %s', (_name, value, expected) => {
    expect(readEmbeddedError(value, 'messages')?.error).toEqual(expected);
  });
});
