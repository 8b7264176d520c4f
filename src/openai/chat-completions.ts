// POST /v1/chat/completions: the endpoint's four abilities, joined (SPEC §4, §7).

import { toChatAnswer } from './chat-answer.ts';
import { parseChatRequest } from './chat-request.ts';
import { createChatTranslator } from './chat-stream.ts';
import { toChatUpstreamBody } from './chat-upstream.ts';
import { type Endpoint } from './endpoint.ts';

/** The chat completions endpoint. */
export const chatCompletions: Endpoint = {
  path: '/v1/chat/completions',
  promptParam: 'messages',
  parseRequest: parseChatRequest,
  toUpstreamBody: toChatUpstreamBody,
  createTranslator: createChatTranslator,
  toJsonAnswer: toChatAnswer,
};
