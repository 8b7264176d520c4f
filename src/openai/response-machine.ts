// The one state machine behind every response, streamed or not (SPEC §8): what an engine says goes in piece by piece, events
// with ids of the gateway's own come out, numbered without gaps, with exactly one terminal event. It knows no engine's shape.

import { type GatewayError } from '../core/errors.ts';
import { type JsonObject } from '../core/json-read.ts';
import { toOpenAIError } from '../core/openai-error.ts';
import { type AnswerContext, type FinishReason } from './endpoint.ts';
import { type PartType, type ResponseEvent, toItemObject } from './response-items.ts';
import { buildResponseObject, type ResponseState } from './response-object.ts';
import { type CallPiece, createResponseOutput } from './response-output.ts';
import { type Metered } from './usage-meter.ts';

/** The machine of one response. Each method gives the events it leads to, as text for the client. */
export type ResponseMachine = {
  readonly id: string;
  readonly hasBegun: () => boolean;
  /** The engine has spoken: the response is there. Only the first call says anything. */
  readonly begin: (model: string) => string;
  /** More text. Another `key` than before begins a new item of the same kind. */
  readonly say: (part: PartType, delta: string, key?: string) => string;
  /** More of a tool call; a `key` that was not seen before begins one. */
  readonly call: (key: string, piece: CallPiece) => string;
  /** The end of an answer that went well, or was cut short for the reason given. */
  readonly complete: (reason: FinishReason | null, metered: Metered) => string;
  /** The end of one that did not: what there is of it stays. */
  readonly fail: (error: GatewayError, metered: Metered | null) => string;
  /** The response as it stands. */
  readonly toObject: () => JsonObject;
};

/** OpenAI's own reasons why a response is incomplete. */
const INCOMPLETE_REASONS: Readonly<Record<FinishReason, string | null>> = {
  stop: null,
  tool_calls: null,
  length: 'max_output_tokens',
  content_filter: 'content_filter',
};

/** Creates the machine of one response. */
export function createResponseMachine(context: AnswerContext): ResponseMachine {
  const { requestId, request } = context;
  const tail = requestId.replace(/^req_/, '');
  const output = createResponseOutput(tail, request.echo?.callIds ?? []);
  const state: ResponseState = {
    id: `resp_${tail}`,
    model: request.resolved.requestedModel,
    status: 'in_progress',
    completedAtMs: null,
    incompleteReason: null,
    error: null,
    metered: null,
  };
  let sequence = 0;
  let begun = false;

  const toObject = (): JsonObject => buildResponseObject(context, state, output.items.map(toItemObject));

  function write(events: readonly ResponseEvent[]): string {
    return events
      .map(({ type, ...members }) => {
        const text = JSON.stringify({ type, sequence_number: sequence, ...members });
        sequence += 1;
        return `event: ${type}\ndata: ${text}\n\n`;
      })
      .join('');
  }

  function begin(model: string): string {
    if (begun) return '';
    begun = true;
    state.model = model;
    const response = toObject();
    return write([
      { type: 'response.created', response },
      { type: 'response.in_progress', response },
    ]);
  }

  const end = (): string => write([{ type: `response.${state.status}`, response: toObject() }]);

  return {
    id: state.id,
    hasBegun: () => begun,
    begin,
    toObject,
    say: (part, delta, key = '') => begin(state.model) + write(output.say(part, delta, key)),
    call: (key, piece) => begin(state.model) + write(output.call(key, piece)),
    complete(reason, metered) {
      const incompleteReason = reason === null ? null : INCOMPLETE_REASONS[reason];
      const status = incompleteReason === null ? 'completed' : 'incomplete';
      const opening = begin(state.model);
      // Who reads an answer that went well finds a message or a call in it.
      const isEmpty = output.items.length === 0 && status === 'completed';
      const last = write([...(isEmpty ? output.say('output_text', '', '') : []), ...output.close(status)]);
      Object.assign(state, { status, incompleteReason, metered });
      if (status === 'completed') state.completedAtMs = context.now();
      return opening + last + end();
    },
    fail(error, metered) {
      const opening = begin(state.model);
      output.abandon();
      Object.assign(state, { status: 'failed', error: toResponseError(error), metered });
      return opening + end();
    },
  };
}

/** OpenAI's codes for a response are a closed set: whose fault it was. Which of ours it is the receipt says. */
function toResponseError(error: GatewayError): ResponseState['error'] {
  const isRefusal = error.kind === 'upstream_rejected' || error.kind === 'invalid_parameter';
  const { message } = toOpenAIError(error).body.error;
  return { code: isRefusal ? 'invalid_prompt' : 'server_error', message };
}
