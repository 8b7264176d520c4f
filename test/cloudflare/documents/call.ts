// One call through the Worker's door and everything there is to see of it: the answer, the envelope of its error, and
// what the engine got.

import {
  chatAnswerSchema,
  errorEnvelopeSchema,
  parsePublishedStream,
  textAnswerSchema,
} from '../../openai/published-schema.ts';
import { responseSchema } from '../../openai/published-response-schema.ts';
import { checkEnd, parsePublishedResponses } from '../../openai/published-responses.ts';
import { type EngineScript, post, readRecorded } from '../fixtures.ts';

export type Fields = Readonly<Record<string, unknown>>;
export type Endpoint = 'chat' | 'text' | 'responses';

const PATHS = { chat: '/v1/chat/completions', text: '/v1/completions', responses: '/v1/responses' } as const;
const BODIES: Readonly<Record<Endpoint, Fields>> = {
  chat: { messages: [{ role: 'user', content: 'Say hello.' }] },
  text: { prompt: 'Once upon a time' },
  responses: { input: 'Say hello.' },
};

export type Called = {
  readonly status: number;
  readonly headers: Headers;
  readonly response: Response;
  /** The answer as it came. */
  readonly text: string;
  /** The JSON answer; empty for a stream. */
  readonly answer: Fields;
  /** The error of the envelope; empty when there is none. */
  readonly error: Fields;
  /** The chunks or events of a stream, [DONE] left out. */
  readonly chunks: readonly Fields[];
  /** The body that the engine got, as text and as a value; null when it got none. */
  readonly sentText: string | null;
  readonly sent: Fields | null;
};

/** Calls an endpoint with fields beside the smallest body it takes. */
export async function call(
  token: string,
  endpoint: Endpoint,
  fields: Fields,
  script?: EngineScript,
  headers: Record<string, string> = {},
): Promise<Called> {
  const body = { ...BODIES[endpoint], ...(script === undefined ? {} : { x_script: script }), ...fields };
  return callWithText(token, endpoint, JSON.stringify(body), headers);
}

/** Calls an endpoint with a text. Whatever the answer is, it is as published, or this throws. */
export async function callWithText(
  token: string | null,
  endpoint: Endpoint,
  body: string,
  headers: Record<string, string> = {},
): Promise<Called> {
  const response = await post(token, body, headers, PATHS[endpoint]);
  const text = await response.text();
  const streamed = (response.headers.get('content-type') ?? '').startsWith('text/event-stream');
  checkPublished(endpoint, response.status, streamed, text);
  const answer: Fields = streamed ? {} : JSON.parse(text);
  const sentText = (await readRecorded(response))?.text ?? null;
  const events = streamed ? text.split('\n').filter((line) => line.startsWith('data: {')) : [];
  return {
    status: response.status,
    headers: response.headers,
    response,
    text,
    answer,
    error: toFields(answer['error']),
    chunks: events.map((line): Fields => JSON.parse(line.slice('data: '.length))),
    sentText,
    sent: sentText === null ? null : JSON.parse(sentText),
  };
}

function checkPublished(endpoint: Endpoint, status: number, streamed: boolean, text: string): void {
  if (status !== 200) errorEnvelopeSchema.parse(JSON.parse(text));
  else if (endpoint === 'responses') {
    if (streamed) parsePublishedResponses(text, text.endsWith('data: [DONE]\n\n'));
    else checkEnd(responseSchema.parse(JSON.parse(text)));
  } else if (streamed) parsePublishedStream(text, endpoint);
  else (endpoint === 'chat' ? chatAnswerSchema : textAnswerSchema).parse(JSON.parse(text));
}

/** A value as fields; empty when it is no object. */
export function toFields(value: unknown): Fields {
  return typeof value === 'object' && value !== null ? { ...value } : {};
}

/** The first choice of an answer or chunk. */
export function firstChoice(answer: Fields | undefined): Fields {
  const choices = answer?.['choices'];
  return toFields(Array.isArray(choices) ? choices[0] : undefined);
}

/** The deltas of a stream's chunks that have a choice. */
export function readDeltas({ chunks }: Called): readonly Fields[] {
  return chunks.filter(({ choices }) => Array.isArray(choices) && choices.length > 0).map(readDelta);
}

function readDelta(chunk: Fields): Fields {
  return toFields(firstChoice(chunk)['delta']);
}
