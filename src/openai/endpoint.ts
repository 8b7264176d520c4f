// The seam between an inference endpoint's wire shapes and the pipeline that serves all of them alike: what the
// pipeline needs to know of a request, and what an endpoint must be able to do. Types only.

import { type GatewayError } from '../core/errors.ts';
import { type JsonBody } from '../core/json-body.ts';
import { type JsonObject } from '../core/json-read.ts';
import { type Backend, type InferencePath, type Model, type ResolvedModel } from '../core/model-catalog.ts';
import { type Result } from '../core/result.ts';
import { type SseEvent } from '../core/sse.ts';
import { type Usage, type UsageSource } from '../core/usage.ts';

/** How much reasoning a request asks for; null leaves it to the engine. */
export type Effort = 'none' | 'low' | 'medium' | 'high';

/** A request that passed every check of its fields. */
export type InferenceRequest = {
  readonly body: JsonBody;
  readonly resolved: ResolvedModel;
  readonly stream: boolean;
  /** Whether the client asked for usage in the stream. */
  readonly usageRequested: boolean;
  /** Choices over all prompts. */
  readonly choices: number;
  /** Choices of each prompt: choice i belongs to prompt ⌊i / choicesPerPrompt⌋. */
  readonly choicesPerPrompt: number;
  /** Estimated tokens of all prompts. */
  readonly promptTokens: number;
  /** Tokens that no prompt of the request can exceed. */
  readonly promptTokensMax: number;
  /** Tokens that all prompts together cannot exceed. */
  readonly inputTokensMax: number;
  /** Output tokens per choice, from the client or the model's ceiling; null when neither sets one. */
  readonly outputLimit: number | null;
  readonly effort: Effort | null;
  readonly endUser: string | null;
  /** What the answer says again of the request; null where it says nothing. */
  readonly echo: RequestEcho | null;
};

/** What a response repeats of its request. */
export type RequestEcho = {
  /** Members of the response object. */
  readonly members: JsonObject;
  /** Ids of the tool calls in the input: a call in the answer must have another. */
  readonly callIds: ReadonlySet<string>;
};

/** What is fixed about the answer before it begins. */
export type AnswerContext = {
  /** Without its body: an answer is made long after the body was sent. */
  readonly request: Omit<InferenceRequest, 'body'>;
  readonly backend: Backend;
  readonly requestId: string;
  readonly createdSeconds: number;
  /** The time in milliseconds. */
  readonly now: () => number;
};

/** What has been seen of an answer so far; the receipt is made from it. */
export type Progress = {
  readonly usage: Usage;
  readonly usageSource: UsageSource;
  /** The reason that counts: the first choice's that is not `stop`, else `stop`; null before any. */
  readonly finishReason: FinishReason | null;
  readonly completionId: string | null;
  readonly servedModel: string | null;
  /** Whether any text, reasoning or tool call has been delivered. */
  readonly started: boolean;
};

/** The closed set of finish reasons (SPEC §7). */
export type FinishReason = 'stop' | 'length' | 'tool_calls' | 'content_filter';

/** What an upstream event turned out to be: text for the client (maybe none), the last of it, or a fault of the engine. */
export type Translated =
  | { readonly type: 'output'; readonly text: string }
  | { readonly type: 'done'; readonly text: string }
  | { readonly type: 'fault'; readonly error: GatewayError; readonly detail: string };

/** Turns one upstream stream into the client's, in the normal form of SPEC §7, and counts as it goes. */
export type StreamTranslator = {
  /**
   * Translates the event that begins at `from`, without parsing it, if it is like one that was pushed before; null when
   * it must be pushed. `end` is where the next event begins.
   */
  readonly pushAlike: (text: string, from: number) => { readonly text: string; readonly end: number } | null;
  /** Translates one event. After `done` or `fault` nothing more may be pushed. */
  readonly push: (event: SseEvent) => Translated;
  /** Whether the engine has said all it must, so that an end without [DONE] is a success. */
  readonly isComplete: () => boolean;
  /** The last bytes of a stream that went well: usage by policy, then the terminal marker. */
  readonly finish: () => string;
  /** The last bytes of a stream that did not: usage if known, the error, the terminal marker. */
  readonly fail: (error: GatewayError) => string;
  readonly progress: () => Progress;
};

/** A whole JSON answer in normal form. */
export type JsonAnswer = { readonly body: string; readonly progress: Progress };

/** What an endpoint must know of streams that reach the client as the engine wrote them (SPEC §7, native lane). */
export type NativeForm = {
  /** Whether policy and options of a request leave the engine's stream as it is. */
  readonly passesUnchanged: (request: InferenceRequest, backend: Backend) => boolean;
  /** Whether the text that begins the stream is in the normal form. */
  readonly isNormal: (text: string, backend: Backend) => boolean;
  /** The terminal marker, for an engine that forgot it. */
  readonly done: string;
};

/** One inference endpoint. */
export type Endpoint = {
  readonly path: InferencePath;
  /** The request field that a prompt too long is blamed on. */
  readonly promptParam: string;
  /** Checks the fields of a body whose model is known (order of SPEC §3). */
  readonly parseRequest: (body: JsonBody, resolved: ResolvedModel) => Result<InferenceRequest, GatewayError>;
  /** The path that a model's engines serve it under. */
  readonly toUpstreamPath: (model: Model) => InferencePath;
  /** The body for one backend: the client's text, edited by field. */
  readonly toUpstreamBody: (request: InferenceRequest, backend: Backend) => string;
  readonly createTranslator: (context: AnswerContext) => StreamTranslator;
  /** Null where every stream is written anew. */
  readonly nativeForm: NativeForm | null;
  /** Normalises an engine's JSON answer; an error object in it, or garbage, is an error. */
  readonly toJsonAnswer: (text: string, context: AnswerContext) => Result<JsonAnswer, UpstreamFault>;
  /** An engine's whole answer as the stream it stands for: some engines answer a streamed request that way. */
  readonly toStreamText: (answer: JsonObject) => string;
  /** The JSON answer that a translated stream amounts to. */
  readonly assembleAnswer: (streamText: string, context: AnswerContext) => string;
};

/** An engine's failure: what the client is told, and the detail for the log. */
export type UpstreamFault = { readonly error: GatewayError; readonly detail: string };
