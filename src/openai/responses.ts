// POST /v1/responses: the endpoint's abilities, joined (SPEC §8). Engines are asked by chat, or by their own /v1/responses
// where the catalog says so.

import { type Model } from '../core/model-catalog.ts';
import { toStreamText } from './answer-as-stream.ts';
import { assembleResponse } from './assemble-response.ts';
import { toChatUpstreamBody } from './chat-upstream.ts';
import { type Endpoint } from './endpoint.ts';
import { createNativeToResponses, toNativeAnswer } from './responses-native.ts';
import { parseResponsesRequest } from './responses-request.ts';
import { createChatToResponses, toResponsesAnswer } from './responses-stream.ts';
import { toNativeUpstreamBody } from './responses-upstream.ts';

const isNative = ({ responses: { mode } }: Model): boolean => mode === 'native';

/** The responses endpoint. */
export const responses: Endpoint = {
  path: '/v1/responses',
  promptParam: 'input',
  parseRequest: parseResponsesRequest,
  toUpstreamPath: (model) => (isNative(model) ? '/v1/responses' : '/v1/chat/completions'),
  toUpstreamBody: (request, backend) => {
    return isNative(request.resolved.model)
      ? toNativeUpstreamBody(request, backend)
      : toChatUpstreamBody(request, backend);
  },
  createTranslator: (context) => {
    return isNative(context.request.resolved.model) ? createNativeToResponses(context) : createChatToResponses(context);
  },
  nativeForm: null,
  toJsonAnswer: (text, context) => {
    return isNative(context.request.resolved.model) ? toNativeAnswer(text, context) : toResponsesAnswer(text, context);
  },
  toStreamText: (answer) => {
    if (!Array.isArray(answer['output'])) return toStreamText(answer);
    return `data: ${JSON.stringify({ type: 'response.completed', response: answer })}\n\n`;
  },
  assembleAnswer: assembleResponse,
};
