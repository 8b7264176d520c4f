// Chat and text completions as a client asks and an engine answers, so that one table of tests runs over both. Only the
// shapes; what is sent when is the test's.

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

/** An endpoint on the wire. */
export type Wire = {
  readonly name: 'chat' | 'text';
  readonly path: '/v1/chat/completions' | '/v1/completions';
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

const chat: Wire = {
  name: 'chat',
  path: '/v1/chat/completions',
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

/** Both endpoints. */
export const WIRES: readonly Wire[] = [chat, text];
