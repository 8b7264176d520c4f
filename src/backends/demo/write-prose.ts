// What the engine says: that no model is running, a short echo of the question, then prose from a stock of phrases.
// The same prompt, seed and choice give the same sentences. A pure token source: it knows no limits, stops or wire.

import { createRandom, hashText } from './seeded-random.ts';
import { tokenize } from './tokenize.ts';

/** What decides about the text. A null seed stands for one derived from the prompt. */
export interface ProseInput {
  readonly prompt: string;
  readonly question: string;
  readonly seed: number | null;
  readonly choiceIndex: number;
  readonly endless: boolean;
}

const openings = [
  'By the roadside',
  'At first light',
  'Past the second bend',
  'Where the two roads meet',
  'Under the old lime trees',
  'Half a mile from the gate',
  'On market days',
  'When the bridge is wet',
  'Late in the evening',
  'Behind the white barrier',
];
const subjects = [
  'the toll keeper',
  'a carter',
  'the surveyor',
  'a tired courier',
  'the ferryman',
  'the clerk',
  'a drover',
  'the lamplighter',
  'a pair of mules',
  'the night watch',
];
const actions = [
  'counts',
  'waits for',
  'writes down',
  'remembers',
  'lets through',
  'looks after',
  'weighs',
  'listens for',
  'points out',
  'turns back for',
];
const objects = [
  'every wagon',
  'the last lantern',
  'a copper coin',
  'the morning post',
  'three barrels of salt',
  'the long queue',
  'a torn ticket',
  'the sound of hooves',
  'an empty cart',
  'the milestone',
];
const endings = [
  'without hurry',
  'before the rain comes',
  'and keeps the receipt',
  'as on any other day',
  'while the kettle sings',
  'and nobody minds',
  'until the bell rings',
  'with great care',
  'and the road goes on',
  'for the second time',
];

const echoTokensMax = 16;
// A text ends with the first sentence that reaches its length; a sentence has at most 20 tokens.
const lengthTokensMin = 40;
const lengthTokensSpread = 60;

/** Generates the tokens of one choice; an endless one never comes to its natural end. */
export function* writeProse(input: ProseInput): Generator<string, void> {
  const seed = input.seed ?? hashText(input.prompt);
  const random = createRandom(hashText(`${seed}/${input.choiceIndex}/${input.prompt}`));
  const lengthTokens = lengthTokensMin + random(lengthTokensSpread);
  let count = 0;
  for (const sentence of writeSentences(input.question, random)) {
    for (const token of tokenize(sentence)) {
      yield token;
      count += 1;
    }
    if (!input.endless && count >= lengthTokens) return;
  }
}

function* writeSentences(question: string, random: (limit: number) => number): Generator<string, never> {
  yield "This is Turnpike's demo engine: no model is running.";
  yield ` ${echoQuestion(question)}`;
  const pick = (stock: readonly string[]): string => stock[random(stock.length)] ?? '';
  while (true) yield ` ${pick(openings)} ${pick(subjects)} ${pick(actions)} ${pick(objects)} ${pick(endings)}.`;
}

function echoQuestion(question: string): string {
  // Cut before the splitting: a question may have megabytes, its echo has a line.
  const tokens = tokenize(question.slice(0, 1000).replace(/\s+/g, ' ').trim());
  if (tokens.length === 0) return 'You asked nothing in words.';
  const cut = tokens.length > echoTokensMax || question.length > 1000;
  return `You asked: “${tokens.slice(0, echoTokensMax).join('')}${cut ? '…' : ''}”.`;
}
