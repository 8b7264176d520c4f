// Translates an engine's chat stream, or its whole chat answer, into a response (SPEC §8): the chat reader brings it into
// normal form, the state machine tells it as events.

import { type GatewayError } from '../core/errors.ts';
import { isObject, type JsonObject, readCount, readObject, readText } from '../core/json-read.ts';
import { ok, type Result } from '../core/result.ts';
import { toChatChoice } from './chat-choice.ts';
import { toChatChunks, toLastChatChunk } from './chat-delta.ts';
import { readCompletionAnswer } from './completion-answer.ts';
import { createCompletionReader } from './completion-reader.ts';
import { buildCompletionHead, type CompletionShape } from './completion-shape.ts';
import {
  type AnswerContext,
  type JsonAnswer,
  type StreamTranslator,
  type Translated,
  type UpstreamFault,
} from './endpoint.ts';
import { createResponseMachine, type ResponseMachine } from './response-machine.ts';

/** Chat as the engines of a response speak it: what they find fault with is its input. */
const shape: CompletionShape = {
  chunkObject: 'chat.completion.chunk',
  answerObject: 'chat.completion',
  idPrefix: 'chatcmpl',
  promptParam: 'input',
  toChunks: toChatChunks,
  toLastChunk: toLastChatChunk,
  toChoice: toChatChoice,
};

const DONE = 'data: [DONE]\n\n';

/** Creates the translator of one stream of chat chunks. */
export function createChatToResponses(context: AnswerContext): StreamTranslator {
  const reader = createCompletionReader(context, shape);
  const machine = createResponseMachine(context);
  const last = readLastWords(context);
  return {
    // The events of a response are numbered: none is like the one before.
    pushAlike: () => null,
    push(event): Translated {
      const read = reader.push(event);
      if (read.type === 'nothing') return { type: 'output', text: '' };
      if (read.type === 'done') return { type: 'done', text: '' };
      if (read.type !== 'chunk') return read;
      // One answer was asked for; what an engine makes beyond it is not shown.
      const choices = read.choices.filter(({ index }) => index === 0);
      if (choices.length === 0) return { type: 'output', text: '' };
      const { model } = buildCompletionHead(context, shape, shape.chunkObject, read.source);
      const begun = machine.begin(model);
      const said = choices.map((choice) => sayMessage(machine, readObject(choice['delta'])));
      return { type: 'output', text: begun + said.join('') };
    },
    isComplete: reader.isComplete,
    finish() {
      reader.finish();
      return machine.complete(reader.progress().finishReason, reader.total()) + last;
    },
    fail(error: GatewayError) {
      return machine.fail(error, reader.isCounted() ? reader.total() : null) + last;
    },
    progress: () => ({ ...reader.progress(), completionId: machine.hasBegun() ? machine.id : null }),
  };
}

/** An engine's whole chat answer as a response. */
export function toResponsesAnswer(text: string, context: AnswerContext): Result<JsonAnswer, UpstreamFault> {
  const read = readCompletionAnswer(text, context, shape);
  if (!read.ok) return read;
  const { choices, metered, source, progress } = read.value;
  const machine = createResponseMachine(context);
  machine.begin(buildCompletionHead(context, shape, shape.answerObject, source).model);
  const first = choices.find(({ index }) => index === 0) ?? choices[0];
  if (first !== undefined) sayMessage(machine, readObject(first['message']));
  machine.complete(progress.finishReason, metered);
  return ok({ body: JSON.stringify(machine.toObject()), progress: { ...progress, completionId: machine.id } });
}

/** What follows the terminal event. */
export function readLastWords({ request }: AnswerContext): string {
  return request.resolved.model.responses.done ? DONE : '';
}

/** Says a delta or a whole message in normal form: reasoning first, tool calls last. */
function sayMessage(machine: ResponseMachine, message: JsonObject): string {
  const reasoning = readText(message['reasoning']) || readText(message['reasoning_content']);
  const calls: unknown = message['tool_calls'];
  return [
    sayIfAny(machine, 'reasoning_text', reasoning),
    sayIfAny(machine, 'output_text', readText(message['content'])),
    sayIfAny(machine, 'refusal', readText(message['refusal'])),
    ...(Array.isArray(calls) ? calls : []).filter(isObject).map((call, at) => {
      const { name, arguments: args } = readObject(call['function']);
      const piece = { id: readText(call['id']), name: readText(name), arguments: readText(args) };
      return machine.call(String(readCount(call['index']) ?? at), piece);
    }),
  ].join('');
}

function sayIfAny(machine: ResponseMachine, part: Parameters<ResponseMachine['say']>[0], text: string): string {
  return text === '' ? '' : machine.say(part, text);
}
