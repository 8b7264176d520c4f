// Runs one text completion: prose that goes on from each prompt, as server-sent events or as one JSON answer. Choice i
// belongs to prompt ⌊i / n⌋, as in vLLM; the prompts are counted once.

import { buildUsage, type AnswerHead, type Usage } from './chat-wire.ts';
import { decodeChoices, type ChoiceStep, type Finish } from './decode.ts';
import { inventLogprob } from './invent-logprobs.ts';
import type { TextRequest } from './parse-text-request.ts';
import type { NextTurn } from './run-chat.ts';
import { tokenize } from './tokenize.ts';
import { writeProse } from './write-prose.ts';

const outputTokensMax = 32_768;

/** Generates the events of a streamed answer, each one complete with its blank line. */
export async function* streamText(
  request: TextRequest,
  head: AnswerHead,
  turn: NextTurn,
): AsyncGenerator<string, void> {
  const choices = createChoices(request);
  for (const choice of choices) {
    if (!request.echo) continue;
    const logprobs = takePromptLogprobs(request, choice);
    yield toEvent(buildChunk(head, choice, choice.prompt, logprobs, null, runningUsage(request, choice)));
  }
  for (const steps of startDecoding(request, choices)) {
    await turn();
    for (const step of steps) {
      const choice = choices[step.index];
      if (choice === undefined) continue;
      const logprobs = takeLogprobs(request, choice, step);
      choice.tokens = step.tokens;
      const usage = runningUsage(request, choice);
      if (step.text !== '' || step.finish || logprobs !== null) {
        yield toEvent(buildChunk(head, choice, step.text, logprobs, step.finish, usage));
      }
    }
  }
  if (request.includeUsage) yield toEvent({ ...toHead(head), choices: [], usage: totalUsage(request, choices) });
  yield 'data: [DONE]\n\n';
}

/** Generates the whole answer, taking as long as a stream of it would. */
export async function completeText(request: TextRequest, head: AnswerHead, turn: NextTurn): Promise<object> {
  const choices = createChoices(request);
  for (const choice of choices) {
    const logprobs = request.echo ? takePromptLogprobs(request, choice) : null;
    if (logprobs !== null) choice.logprobs.push(logprobs);
  }
  for (const steps of startDecoding(request, choices)) {
    await turn();
    for (const step of steps) {
      const choice = choices[step.index];
      if (choice === undefined) continue;
      const logprobs = takeLogprobs(request, choice, step);
      if (logprobs !== null) choice.logprobs.push(logprobs);
      choice.text += step.text;
      choice.tokens = step.tokens;
      choice.finish = step.finish ?? choice.finish;
    }
  }
  return {
    ...toHead(head),
    choices: choices.map(({ index, prompt, text, finish, logprobs }) => ({
      index,
      text: (request.echo ? prompt : '') + text,
      logprobs: request.topLogprobs === null ? null : joinLogprobs(logprobs),
      finish_reason: finish?.reason ?? 'stop',
      stop_reason: finish?.stopReason ?? null,
    })),
    usage: totalUsage(request, choices),
  };
}

/** Log probabilities in the legacy shape; a prompt's first token follows nothing and has none. */
interface LegacyLogprobs {
  readonly tokens: readonly string[];
  readonly token_logprobs: readonly (number | null)[];
  readonly top_logprobs: readonly (Readonly<Record<string, number>> | null)[];
  readonly text_offset: readonly number[];
}

interface TextChoice {
  readonly index: number;
  readonly prompt: string;
  readonly logprobs: LegacyLogprobs[];
  text: string;
  offset: number;
  tokens: number;
  finish: Finish | null;
}

function createChoices({ prompts, choicesPerPrompt }: TextRequest): readonly TextChoice[] {
  return prompts.flatMap((prompt, at) =>
    Array.from({ length: choicesPerPrompt }, (_, choice): TextChoice => {
      const index = at * choicesPerPrompt + choice;
      return { index, prompt, logprobs: [], text: '', offset: 0, tokens: 0, finish: null };
    }),
  );
}

function startDecoding(request: TextRequest, choices: readonly TextChoice[]): Iterable<readonly ChoiceStep[]> {
  const { seed, choicesPerPrompt, ignoreEos: endless } = request;
  const sources = choices.map(({ prompt, index }) => {
    return writeProse({ prompt, question: prompt, seed, choiceIndex: index % choicesPerPrompt, endless });
  });
  const maxTokens = Math.min(request.maxTokens ?? outputTokensMax, outputTokensMax);
  return decodeChoices(sources, { maxTokens, stops: request.stops });
}

function takeLogprobs({ topLogprobs }: TextRequest, choice: TextChoice, { token }: ChoiceStep): LegacyLogprobs | null {
  return topLogprobs === null || token === '' ? null : listToken(choice, token, topLogprobs);
}

/** Those of an echoed prompt, as vLLM gives them. */
function takePromptLogprobs({ topLogprobs }: TextRequest, choice: TextChoice): LegacyLogprobs | null {
  if (topLogprobs === null) return null;
  const listed = joinLogprobs(tokenize(choice.prompt).map((token) => listToken(choice, token, topLogprobs)));
  return {
    ...listed,
    token_logprobs: listed.token_logprobs.map((logprob, at) => (at === 0 ? null : logprob)),
    top_logprobs: listed.top_logprobs.map((top, at) => (at === 0 ? null : top)),
  };
}

function listToken(choice: TextChoice, token: string, topLogprobs: number): LegacyLogprobs {
  const { logprob, top_logprobs: top } = inventLogprob(token, topLogprobs);
  const offset = choice.offset;
  // In code points: vLLM counts as Python does.
  choice.offset += Array.from(token).length;
  return {
    tokens: [token],
    token_logprobs: [logprob],
    top_logprobs: [Object.fromEntries(top.map((entry) => [entry.token, entry.logprob]))],
    text_offset: [offset],
  };
}

function joinLogprobs(parts: readonly LegacyLogprobs[]): LegacyLogprobs {
  return {
    tokens: parts.flatMap(({ tokens }) => tokens),
    token_logprobs: parts.flatMap((part) => part.token_logprobs),
    top_logprobs: parts.flatMap((part) => part.top_logprobs),
    text_offset: parts.flatMap((part) => part.text_offset),
  };
}

function buildChunk(
  head: AnswerHead,
  { index }: TextChoice,
  text: string,
  logprobs: LegacyLogprobs | null,
  finish: Finish | null,
  usage: Usage | null,
): object {
  const choice = {
    index,
    text,
    logprobs,
    finish_reason: finish?.reason ?? null,
    stop_reason: finish?.stopReason ?? null,
  };
  return { ...toHead(head), choices: [choice], ...(usage === null ? {} : { usage }) };
}

/** vLLM's running count is that of the chunk's own choice and prompt. */
function runningUsage({ continuousUsage }: TextRequest, { prompt, tokens }: TextChoice): Usage | null {
  return continuousUsage ? buildUsage(tokenize(prompt).length, tokens) : null;
}

function totalUsage({ prompts }: TextRequest, choices: readonly TextChoice[]): Usage {
  const promptTokens = prompts.reduce((sum, prompt) => sum + tokenize(prompt).length, 0);
  return buildUsage(
    promptTokens,
    choices.reduce((sum, { tokens }) => sum + tokens, 0),
  );
}

function toHead({ id, created, model }: AnswerHead): object {
  return { id, object: 'text_completion', created, model };
}

function toEvent(chunk: object): string {
  return `data: ${JSON.stringify(chunk)}\n\n`;
}
