// What requests of one conversation have in common: everything up to and including its first user message. Requests with
// the same prefix may go to the same backend, whose cache then serves them (SPEC §6).

import { readObject } from '../core/json-read.ts';
import { type InferenceRequest } from './endpoint.ts';

const CHARACTERS_MAX = 4096;

/** The prefix of a chat request or of a response's input, or of a text completion's first prompt. */
export function readConversationPrefix({ body }: InferenceRequest): string {
  const { messages, input, instructions, prompt } = body.value;
  const turns = messages ?? input;
  if (!Array.isArray(turns)) return JSON.stringify([instructions, input ?? prompt]).slice(0, CHARACTERS_MAX);
  const firstUser = turns.findIndex((turn: unknown) => readObject(turn)['role'] === 'user');
  return JSON.stringify([instructions, ...turns.slice(0, firstUser + 1)]).slice(0, CHARACTERS_MAX);
}
