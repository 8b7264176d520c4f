// One choice of a JSON chat completion in the normal form of SPEC §4: every documented field there, every
// engine-internal one gone.

import { type JsonObject, readObject, readText } from '../core/json-read.ts';
import { mintCallId, toReasoningFields } from './chat-delta.ts';
import { type CompletionShape } from './completion-shape.ts';
import { type AnswerContext } from './endpoint.ts';
import { toFinishReason } from './finish-reason.ts';
import { toChatLogprobs } from './published-logprobs.ts';
import { spellNothingElse } from './shown-logprobs.ts';

/** An engine's whole choice. */
export const toChatChoice: CompletionShape['toChoice'] = (choice, index, context: AnswerContext) => {
  const message = readObject(choice['message']);
  const reasoning = readText(message['reasoning']) || readText(message['reasoning_content']);
  const calls = toToolCalls(message['tool_calls'], index, context.requestId);
  const said = readText(message['content']) || readText(message['refusal']);
  const shown = context.request.effort !== 'none' || (reasoning === '' && spellNothingElse(choice['logprobs'], said));
  return {
    index,
    message: {
      role: 'assistant',
      content: typeof message['content'] === 'string' ? message['content'] : null,
      refusal: typeof message['refusal'] === 'string' ? message['refusal'] : null,
      ...(reasoning === '' ? {} : toReasoningFields(reasoning, context)),
      ...(calls.length === 0 ? {} : { tool_calls: calls }),
    },
    logprobs: shown ? toChatLogprobs(choice['logprobs']) : null,
    finish_reason: toFinishReason(choice['finish_reason']) ?? (calls.length > 0 ? 'tool_calls' : 'stop'),
  };
};

function toToolCalls(value: unknown, choiceIndex: number, requestId: string): readonly JsonObject[] {
  if (!Array.isArray(value)) return [];
  return value.map((item: unknown, at) => {
    const call = readObject(item);
    const details = readObject(call['function']);
    const args = details['arguments'];
    return {
      id: readText(call['id']) || mintCallId(requestId, choiceIndex, at),
      type: 'function',
      function: {
        name: readText(details['name']),
        arguments: typeof args === 'string' ? args : JSON.stringify(args ?? {}),
      },
    };
  });
}
