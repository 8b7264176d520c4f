// Chat, text completions and responses as a client asks and reads, and as an engine answers, so that one table of tests runs
// over all of them. Only the shapes; what is sent when is the test's.

import { checkEnd, joinParts, parsePublishedResponses } from '../openai/published-responses.ts';
import { type PublishedResponse, responseSchema } from '../openai/published-response-schema.ts';
import { chatAnswerSchema, parsePublishedStream, textAnswerSchema } from '../openai/published-schema.ts';
import { type Script } from './scripted-upstream.ts';

/** One choice's share of an event: what is absent is not sent. */
export type EventParts = {
  readonly content?: string;
  readonly finish?: string;
  readonly index?: number;
  readonly usage?: unknown;
  /** Members beside `choices`. */
  readonly more?: object;
};

/** Counts as the client is shown them. */
export type ShownUsage = { readonly input: number; readonly output: number; readonly estimated: boolean };

/** What a client has of an answer that held to the published schema. */
export type Seen = {
  readonly said: string;
  /** The finish reason in chat's words; null where it failed. */
  readonly finish: string | null;
  /** The error it ended with; null where it went well. */
  readonly error: { readonly code: string | null } | null;
  readonly usage: ShownUsage | null;
  /** Deltas of text, streamed. */
  readonly deltas: number;
};

/** An endpoint on the wire. */
export type Wire = {
  readonly name: 'chat' | 'text' | 'responses';
  readonly path: '/v1/chat/completions' | '/v1/completions' | '/v1/responses';
  /** Whether several choices can be asked for. */
  readonly hasChoices: boolean;
  /** The field that bounds the output. */
  readonly limitField: 'max_tokens' | 'max_output_tokens';
  /** The code that a client is told in a stream: that of a response is one of OpenAI's own set. */
  readonly toShownCode: (code: string | null) => string | null;
  readonly readStream: (text: string) => Seen;
  readonly readAnswer: (text: string) => Seen;
  /** The client's request. */
  readonly ask: (model: string, stream: boolean, more?: object) => Readonly<Record<string, unknown>>;
  /** One event of the engine, blank line included. */
  readonly event: (parts: EventParts) => string;
  /** The engine's whole answer of one choice. */
  readonly answer: (content: string, more?: object) => object;
};

/** A script that suits either endpoint. */
export type WireScript = (exchange: Parameters<Script>[0], wire: Wire) => void | Promise<void>;

const HEAD = { id: 'cmpl-scripted', created: 1_796_083_200, model: 'engine/m' };

function writeEvent(object: string, choice: object | null, { usage, more = {} }: EventParts): string {
  const choices = choice === null ? [] : [choice];
  const counted = usage === undefined ? {} : { usage };
  return `data: ${JSON.stringify({ ...HEAD, object, choices, ...counted, ...more })}\n\n`;
}

const says = ({ content, finish }: EventParts): boolean => content !== undefined || finish !== undefined;

/** The text that an answer or a stream's deltas add up to. */
function readSaid(choices: readonly object[]): string {
  return choices.map((choice) => /"(?:content|text)":"([^"]*)"/.exec(JSON.stringify(choice))?.[1] ?? '').join('');
}

type Counts = {
  readonly prompt_tokens: number;
  readonly completion_tokens: number;
  readonly estimated?: true | undefined;
};

function toShown(usage: Counts): ShownUsage {
  return { input: usage.prompt_tokens, output: usage.completion_tokens, estimated: usage.estimated ?? false };
}

function readCompletions(name: 'chat' | 'text', text: string): Seen {
  const { chunks, error, usage } = parsePublishedStream(text, name);
  const choices = chunks.flatMap((chunk): readonly { readonly finish_reason: string | null }[] => chunk.choices);
  // Without a code it is the request that the engine refused.
  if (error !== null && error.type !== (error.code === null ? 'invalid_request_error' : 'server_error'))
    throw new Error(`${error.code} is a ${error.type}`);
  return {
    said: readSaid(choices),
    finish: error === null ? (choices.at(-1)?.finish_reason ?? 'none') : null,
    error,
    usage: usage === null ? null : toShown(usage),
    deltas: choices.length,
  };
}

function readCompletion(name: 'chat' | 'text', text: string): Seen {
  const body = (name === 'chat' ? chatAnswerSchema : textAnswerSchema).parse(JSON.parse(text));
  const finish = body.choices[0]?.finish_reason ?? 'none';
  return { said: readSaid(body.choices), finish, error: null, usage: toShown(body.usage), deltas: 0 };
}

const completions = (
  name: 'chat' | 'text',
): Pick<Wire, 'hasChoices' | 'limitField' | 'toShownCode' | 'readStream' | 'readAnswer'> => ({
  hasChoices: true,
  limitField: 'max_tokens',
  toShownCode: (code) => code,
  readStream: (stream) => readCompletions(name, stream),
  readAnswer: (answer) => readCompletion(name, answer),
});

const chat: Wire = {
  name: 'chat',
  path: '/v1/chat/completions',
  ...completions('chat'),
  ask: (model, stream, more = {}) => ({ model, stream, messages: [{ role: 'user', content: 'Say hello.' }], ...more }),
  event(parts) {
    const { content, finish = null, index = 0 } = parts;
    const delta = content === undefined ? {} : { content };
    return writeEvent('chat.completion.chunk', says(parts) ? { index, delta, finish_reason: finish } : null, parts);
  },
  answer: (content, more = {}) => ({
    ...HEAD,
    object: 'chat.completion',
    choices: [{ index: 0, message: { role: 'assistant', content }, finish_reason: 'stop' }],
    ...more,
  }),
};

const text: Wire = {
  name: 'text',
  path: '/v1/completions',
  ...completions('text'),
  ask: (model, stream, more = {}) => ({ model, stream, prompt: 'Say hello.', ...more }),
  event(parts) {
    const { content = '', finish = null, index = 0 } = parts;
    const choice = { index, text: content, logprobs: null, finish_reason: finish };
    return writeEvent('text_completion', says(parts) ? choice : null, parts);
  },
  answer: (content, more = {}) => ({
    ...HEAD,
    object: 'text_completion',
    choices: [{ index: 0, text: content, logprobs: null, finish_reason: 'stop' }],
    ...more,
  }),
};

const FINISHES = { completed: 'stop', incomplete: 'length', failed: null, in_progress: 'none' } as const;

function readResponse(response: PublishedResponse, deltas: number): Seen {
  const { status, error, usage } = response;
  return {
    said: joinParts(response, 'output_text'),
    finish: FINISHES[status],
    error,
    usage:
      usage === null
        ? null
        : { input: usage.input_tokens, output: usage.output_tokens, estimated: usage.estimated ?? false },
    deltas,
  };
}

/** Engines are asked by chat. */
const responses: Wire = {
  ...chat,
  name: 'responses',
  path: '/v1/responses',
  hasChoices: false,
  limitField: 'max_output_tokens',
  // A code that is null is an engine's refusal of the request.
  toShownCode: (code) => (code === null ? 'invalid_prompt' : 'server_error'),
  ask: (model, stream, more = {}) => ({ model, stream, input: 'Say hello.', ...more }),
  readStream(stream) {
    const { events, response } = parsePublishedResponses(stream);
    return readResponse(response, events.filter(({ type }) => type === 'response.output_text.delta').length);
  },
  readAnswer(answer) {
    const response = responseSchema.parse(JSON.parse(answer));
    checkEnd(response);
    return readResponse(response, 0);
  },
};

/** All endpoints. */
export const WIRES: readonly Wire[] = [chat, text, responses];
