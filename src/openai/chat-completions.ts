// POST /v1/chat/completions: the endpoint's abilities, joined (SPEC §4, §7).

import { toStreamText } from './answer-as-stream.ts';
import { toChatChoice } from './chat-choice.ts';
import { toChatChunks, toLastChatChunk } from './chat-delta.ts';
import { parseChatRequest } from './chat-request.ts';
import { toChatUpstreamBody } from './chat-upstream.ts';
import { assembleAnswer } from './assemble-answer.ts';
import { toCompletionAnswer } from './completion-answer.ts';
import { type CompletionShape } from './completion-shape.ts';
import { createCompletionTranslator } from './completion-stream.ts';
import { type Endpoint } from './endpoint.ts';
import { createNativeForm } from './native-form.ts';

const shape: CompletionShape = {
  chunkObject: 'chat.completion.chunk',
  answerObject: 'chat.completion',
  idPrefix: 'chatcmpl',
  promptParam: 'messages',
  toChunks: toChatChunks,
  toLastChunk: toLastChatChunk,
  toChoice: toChatChoice,
};

/** The chat completions endpoint. */
export const chatCompletions: Endpoint = {
  path: '/v1/chat/completions',
  promptParam: shape.promptParam,
  parseRequest: parseChatRequest,
  toUpstreamPath: () => '/v1/chat/completions',
  toUpstreamBody: toChatUpstreamBody,
  createTranslator: (context) => createCompletionTranslator(context, shape),
  nativeForm: createNativeForm(shape.chunkObject),
  toJsonAnswer: (text, context) => toCompletionAnswer(text, context, shape),
  toStreamText,
  assembleAnswer: (streamText, context) => assembleAnswer(streamText, context, shape),
};
