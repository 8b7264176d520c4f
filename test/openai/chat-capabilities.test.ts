// Capabilities as gates: what is needed and absent is refused, what asks for nothing never is (SPEC §4).

import { describe, expect, test } from 'vitest';
import { ALL_CAPABILITIES, parseRequest } from './build-context.ts';

type Fields = Readonly<Record<string, unknown>>;

function verdict(body: Fields, capabilities: object, preset?: 'springboards'): string {
  const request = parseRequest(body, { entry: { capabilities }, ...(preset === undefined ? {} : { preset }) });
  if (request.ok) return 'passes';
  return request.error.kind === 'invalid_parameter'
    ? `${request.error.code} ${request.error.param}`
    : request.error.kind;
}

const tools = [{ type: 'function', function: { name: 'f' } }];
const named = (name: string): object => ({ type: 'function', function: { name } });
const content = (...parts: readonly object[]): Fields => ({ messages: [{ role: 'user', content: parts }] });
const image = (url: unknown): Fields => content({ type: 'text', text: 'x' }, { type: 'image_url', image_url: { url } });
const schema = { type: 'json_schema', json_schema: { name: 'n' } };

describe('a capability that is absent', () => {
  test.each<[string, Fields, keyof typeof ALL_CAPABILITIES, unknown, string]>([
    ['tools', { tools }, 'tools', false, 'unsupported_parameter tools'],
    [
      'tool_choice required',
      { tools, tool_choice: 'required' },
      'tool_choice_required',
      false,
      'unsupported_value tool_choice',
    ],
    [
      'parallel_tool_calls false',
      { tools, parallel_tool_calls: false },
      'parallel_tool_calls',
      false,
      'unsupported_parameter parallel_tool_calls',
    ],
    [
      'json_object',
      { response_format: { type: 'json_object' } },
      'response_formats',
      ['text', 'json_schema'],
      'unsupported_value response_format.type',
    ],
    [
      'json_schema',
      { response_format: schema },
      'response_formats',
      ['text', 'json_object'],
      'unsupported_value response_format.type',
    ],
    ['logprobs', { logprobs: true }, 'logprobs', false, 'unsupported_parameter logprobs'],
    ['images', image('data:image/png;base64,AA=='), 'images', false, 'unsupported_value messages[0].content[1].type'],
  ])('§4 %s is refused without it, and passes with it', (_name, body, capability, absent, expected) => {
    expect(verdict(body, { ...ALL_CAPABILITIES, [capability]: absent })).toBe(expected);
    expect(verdict(body, ALL_CAPABILITIES)).toBe('passes');
  });

  test.each<[string, Fields]>([
    ['tools []', { tools: [] }],
    ['tools null', { tools: null, tool_choice: null }],
    ['tool_choice none', { tool_choice: 'none' }],
    ['tool_choice auto', { tools: [], tool_choice: 'auto' }],
    ['parallel_tool_calls without tools', { parallel_tool_calls: false }],
    ['parallel_tool_calls true', { tools: [], parallel_tool_calls: true }],
    ['logprobs false', { logprobs: false, top_logprobs: 0 }],
    ['type text', { response_format: { type: 'text' } }],
    ['response_format null', { response_format: null }],
    ['text parts', content({ type: 'text', text: 'x' })],
    ['no parts', content()],
  ])('§4 %s asks for nothing and trips no gate', (_name, body) => {
    expect(verdict(body, {})).toBe('passes');
  });

  test('§4 strict without strict_tools is dropped in chat, not refused', () => {
    const strict = [{ type: 'function', function: { name: 'f', strict: true } }];
    expect(verdict({ tools: strict }, { ...ALL_CAPABILITIES, strict_tools: false })).toBe('passes');
  });

  test('§4 fields that are not listed pass ungated under `listed`; images are gated there too', () => {
    const body = { tools, tool_choice: 'required', logprobs: true, response_format: schema };
    expect(verdict(body, {}, 'springboards')).toBe('passes');
    expect(verdict(image('data:,'), {}, 'springboards')).toBe('unsupported_value messages[0].content[1].type');
  });
});

describe('choices that contradict themselves', () => {
  test('§4 top_logprobs without logprobs: not there, or there but pointless', () => {
    expect(verdict({ top_logprobs: 2 }, {})).toBe('unsupported_parameter top_logprobs');
    expect(verdict({ top_logprobs: 2 }, ALL_CAPABILITIES)).toBe('invalid_value top_logprobs');
    expect(verdict({ top_logprobs: 2, logprobs: true }, ALL_CAPABILITIES)).toBe('passes');
  });

  test.each<[string, Fields, string]>([
    ['a name among the tools', { tools, tool_choice: named('f') }, 'passes'],
    ['a name not among the tools', { tools, tool_choice: named('g') }, 'invalid_value tool_choice.function.name'],
    ['required without tools', { tool_choice: 'required' }, 'invalid_value tool_choice'],
    ['required with tools []', { tools: [], tool_choice: 'required' }, 'invalid_value tool_choice'],
    ['a name without tools', { tool_choice: named('f') }, 'invalid_value tool_choice'],
  ])('§4 tool_choice: %s', (_name, body, expected) => {
    expect(verdict(body, ALL_CAPABILITIES)).toBe(expected);
  });
});

describe('image parts', () => {
  const url = 'messages[0].content[1].image_url.url';
  test.each<[string, unknown, string]>([
    ['data:', 'data:image/png;base64,AA==', 'passes'],
    ['DATA:', 'DATA:image/png;base64,AA==', 'passes'],
    ['https:', 'https://example.com/a.png', `unsupported_value ${url}`],
    ['http: in the metadata range', 'http://169.254.169.254/', `unsupported_value ${url}`],
    ['file:', 'file:///etc/passwd', `unsupported_value ${url}`],
    ['a space before data:', ' data:image/png', `unsupported_value ${url}`],
    ['no scheme', '//example.com/a.png', `unsupported_value ${url}`],
    ['absent', undefined, `missing_required_parameter ${url}`],
    ['of a wrong type', 5, `invalid_type ${url}`],
  ])('§4 only data: URLs pass: %s', (_name, value, expected) => {
    expect(verdict(image(value), ALL_CAPABILITIES)).toBe(expected);
  });

  test.each(['input_audio', 'file', 'image', 'video_url'])(
    '§4 a part of type %s is refused whatever the model can',
    (type) => {
      expect(verdict(content({ type }), ALL_CAPABILITIES)).toBe('unsupported_value messages[0].content[0].type');
    },
  );
});
