// Decides what a chat answer consists of: reasoning, prose, a JSON document, or tool calls; and gives it as tokens. Pure:
// the same request, seed and choice give the same answer.

import type { LaneToken } from './decode.ts';
import { isSchema } from './flatten-schema.ts';
import { inventJson } from './invent-json.ts';
import type { ChatRequest, DemoTool } from './parse-chat-request.ts';
import { createRandom, hashText } from './seeded-random.ts';
import { tokenize } from './tokenize.ts';
import { writeProse } from './write-prose.ts';

const thought =
  'No model is running, so there is nothing to think about; these words only stand where reasoning would.';

/** The tokens of one choice. */
export function* planAnswer(request: ChatRequest, choiceIndex: number): Generator<LaneToken, void> {
  const seed = request.seed ?? hashText(request.prompt);
  const random = createRandom(hashText(`${seed}/${choiceIndex}/answer`));
  if (request.thinking) for (const text of tokenize(thought)) yield { lane: { kind: 'reasoning' }, text };
  const tools = chooseTools(request);
  if (tools.length > 0) {
    for (const [index, tool] of tools.entries()) yield* writeCall(index, tool, random);
    return;
  }
  for (const text of writeContent(request, choiceIndex, random)) yield { lane: { kind: 'content' }, text };
}

/** The tools this request is answered with; none when it is answered in text. */
export function chooseTools({
  tools,
  toolChoice,
  question,
  parallelToolCalls,
  lastRole,
}: ChatRequest): readonly DemoTool[] {
  if (toolChoice === 'none' || tools.length === 0) return [];
  if (typeof toolChoice === 'object') return tools.filter(({ name }) => name === toolChoice.name).slice(0, 1);
  const asked = lastRole === 'tool' ? [] : tools.filter(({ name }) => question.includes(name));
  const called = asked.length === 0 && toolChoice === 'required' ? tools.slice(0, 1) : asked;
  return parallelToolCalls ? called : called.slice(0, 1);
}

function* writeCall(
  index: number,
  { name, parameters }: DemoTool,
  random: (limit: number) => number,
): Generator<LaneToken> {
  yield { lane: { kind: 'call', index, opens: name }, text: '' };
  const made = inventJson({ type: 'object', ...(isSchema(parameters) ? parameters : {}) }, random);
  // Arguments are an object, whatever the schema says.
  const text = JSON.stringify(isSchema(made) ? made : {});
  for (const token of tokenize(text)) yield { lane: { kind: 'call', index, opens: null }, text: token };
}

function writeContent(request: ChatRequest, choiceIndex: number, random: (limit: number) => number): Iterable<string> {
  const { format, prompt, question, seed, ignoreEos: endless } = request;
  if (format.type === 'json_object') return tokenize(JSON.stringify(inventJson(undefined, random)));
  if (format.type === 'json_schema') return tokenize(JSON.stringify(inventJson(format.schema, random)));
  const subject = request.lastRole === 'tool' ? `what the tool said: ${request.lastText}` : question;
  return writeProse({ prompt, question: subject, seed, choiceIndex, endless });
}
