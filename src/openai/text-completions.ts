// POST /v1/completions: the endpoint's abilities, joined (SPEC §4, §7).

import { toStreamText } from './answer-as-stream.ts';
import { assembleAnswer } from './assemble-answer.ts';
import { toCompletionAnswer } from './completion-answer.ts';
import { type CompletionShape } from './completion-shape.ts';
import { createCompletionTranslator } from './completion-stream.ts';
import { type Endpoint } from './endpoint.ts';
import { createNativeForm } from './native-form.ts';
import { toLastTextChunk, toTextChoice, toTextChunks } from './text-choice.ts';
import { parseTextRequest } from './text-request.ts';
import { toTextUpstreamBody } from './text-upstream.ts';

const shape: CompletionShape = {
  chunkObject: 'text_completion',
  answerObject: 'text_completion',
  idPrefix: 'cmpl',
  promptParam: 'prompt',
  toChunks: toTextChunks,
  toLastChunk: toLastTextChunk,
  toChoice: toTextChoice,
};

/** The text completions endpoint. */
export const textCompletions: Endpoint = {
  path: '/v1/completions',
  promptParam: shape.promptParam,
  parseRequest: parseTextRequest,
  toUpstreamPath: () => '/v1/completions',
  toUpstreamBody: toTextUpstreamBody,
  createTranslator: (context) => createCompletionTranslator(context, shape),
  nativeForm: createNativeForm(shape.chunkObject),
  toJsonAnswer: (text, context) => toCompletionAnswer(text, context, shape),
  toStreamText,
  assembleAnswer: (streamText, context) => assembleAnswer(streamText, context, shape),
};
