// POST /v1/responses: the endpoint's abilities, joined (SPEC §8). Engines are asked by chat.

import { toStreamText } from './answer-as-stream.ts';
import { toChatUpstreamBody } from './chat-upstream.ts';
import { type Endpoint } from './endpoint.ts';
import { assembleResponse } from './assemble-response.ts';
import { parseResponsesRequest } from './responses-request.ts';
import { createChatToResponses, toResponsesAnswer } from './responses-stream.ts';

/** The responses endpoint. */
export const responses: Endpoint = {
  path: '/v1/responses',
  promptParam: 'input',
  parseRequest: parseResponsesRequest,
  toUpstreamPath: () => '/v1/chat/completions',
  toUpstreamBody: toChatUpstreamBody,
  createTranslator: createChatToResponses,
  nativeForm: null,
  toJsonAnswer: toResponsesAnswer,
  toStreamText,
  assembleAnswer: assembleResponse,
};
