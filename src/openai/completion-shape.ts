// What chat and text completions share and where they differ on the wire, so that one translator and one answer builder
// serve both. Types, and the common members of chunks and answers.

import { type JsonObject, readText } from '../core/json-read.ts';
import { type AnswerContext, type FinishReason } from './endpoint.ts';
import { ENGINE_QUIRKS } from './engine-quirks.ts';

/** What of a choice must be remembered between chunks. */
export type ChoiceState = {
  roleSent: boolean;
  finishReason: FinishReason | null;
  /** Deltas with text, reasoning or tool calls, for engines that report no usage. */
  deltas: number;
  toolCalls: number;
  /** The indexes of the tool calls that have begun: an engine may take them in any order. */
  readonly toolIndexes: Set<number>;
  /** The engine's id of the latest tool call. */
  toolCallId: string;
  /** Characters of text delivered: for log probabilities without offsets, and to know that the answer has begun. */
  textLength: number;
};

/** A choice as an outgoing chunk or answer carries it. */
export type OutChoice = { readonly index: number; readonly finish_reason: FinishReason | null } & JsonObject;

/** The differences between the two endpoints. */
export type CompletionShape = {
  readonly chunkObject: 'chat.completion.chunk' | 'text_completion';
  readonly answerObject: 'chat.completion' | 'text_completion';
  readonly idPrefix: 'chatcmpl' | 'cmpl';
  /** The request field that a prompt too long is blamed on. */
  readonly promptParam: 'messages' | 'prompt' | 'input';
  /** An engine's streamed choice as the chunks it becomes: none, one, or two. Updates `state`. */
  readonly toChunks: (
    choice: JsonObject,
    index: number,
    state: ChoiceState,
    context: AnswerContext,
  ) => readonly OutChoice[];
  /** The chunk that ends a choice whose engine never ended it. */
  readonly toLastChunk: (index: number, state: ChoiceState, finishReason: FinishReason) => OutChoice;
  /** An engine's whole choice. */
  readonly toChoice: (
    choice: JsonObject,
    index: number,
    context: AnswerContext,
  ) => OutChoice & { readonly finish_reason: FinishReason };
};

/** What every chunk of a stream, and an answer, has besides choices and usage. */
export type CompletionHead = {
  readonly id: string;
  readonly object: CompletionShape['chunkObject'] | CompletionShape['answerObject'];
  readonly created: number;
  readonly model: string;
  readonly system_fingerprint?: string;
};

/** A choice nothing has been said of. */
export function createChoiceState(): ChoiceState {
  return {
    roleSent: false,
    finishReason: null,
    deltas: 0,
    toolCalls: 0,
    toolIndexes: new Set(),
    toolCallId: '',
    textLength: 0,
  };
}

/**
 * The common members, from the engine's where it gives them. A stream keeps those of its first chunk: some engines
 * change `created`, some send no id.
 */
export function buildCompletionHead(
  context: AnswerContext,
  shape: CompletionShape,
  object: CompletionHead['object'],
  source: JsonObject,
): CompletionHead {
  const { resolved } = context.request;
  const created = source['created'];
  const engineModel = readText(source['model']);
  const fingerprint = readText(source['system_fingerprint']);
  const engineId = ENGINE_QUIRKS[context.backend.engine].repeatsIds ? '' : readText(source['id']);
  return {
    id: engineId || `${shape.idPrefix}-${context.requestId.replace(/^req_/, '')}`,
    object,
    created:
      typeof created === 'number' && Number.isSafeInteger(created) && created > 0 ? created : context.createdSeconds,
    model:
      resolved.model.policy.response_model === 'engine' && engineModel !== '' ? engineModel : resolved.requestedModel,
    ...(fingerprint === '' ? {} : { system_fingerprint: fingerprint }),
  };
}

/** The finish reason that tells most: the first that is not `stop`, else the first. */
export function readTellingReason(reasons: readonly (FinishReason | null)[]): FinishReason | null {
  const ended = reasons.filter((reason) => reason !== null);
  return ended.find((reason) => reason !== 'stop') ?? ended[0] ?? null;
}
