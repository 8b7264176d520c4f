// Reads a client's stream of /v1/responses as strictly as OpenAI publishes it (SPEC §8): framing, numbers, ids, the life of
// each item, one terminal event, texts that add up. What single events hold is in the schema.

import {
  eventSchema,
  type PublishedEvent,
  type PublishedItem,
  type PublishedResponse,
} from './published-response-schema.ts';

const TERMINAL = /^response\.(completed|incomplete|failed)$/;

/** A stream that held to the schema. */
export type PublishedResponses = { readonly events: readonly PublishedEvent[]; readonly response: PublishedResponse };

/**
 * Reads a client's whole stream; throws at the first thing that SPEC §8 or OpenAI's schema does not allow: framing, a
 * member, a number, an id that changes, an event out of its item's life, a text that does not add up, an end that is not
 * one.
 *
 * @param done Whether [DONE] must follow the terminal event.
 */
export function parsePublishedResponses(stream: string, done = false): PublishedResponses {
  const blocks = stream.split('\n\n').filter((block) => !block.startsWith(':'));
  if (blocks.pop() !== '') throw new Error(`no blank line at the end: ${stream.slice(-200)}`);
  if (done && blocks.pop() !== 'data: [DONE]') throw new Error('no [DONE]');
  const events = blocks.map((block, at) => {
    const [name, data, ...more] = block.split('\n');
    if (more.length > 0 || !name?.startsWith('event: ') || !data?.startsWith('data: {'))
      throw new Error(`not an event: ${block}`);
    const event = eventSchema.parse(JSON.parse(data.slice('data: '.length)));
    if (name !== `event: ${event.type}`) throw new Error(`${name} is a ${event.type}`);
    if (event.sequence_number !== at) throw new Error(`event ${at} has number ${event.sequence_number}`);
    return event;
  });
  if (events[0]?.type !== 'response.created' || events[1]?.type !== 'response.in_progress')
    throw new Error('no created, no in_progress');
  if (events.findIndex(({ type }) => TERMINAL.test(type)) !== events.length - 1) throw new Error('no terminal event');
  const responses = events.flatMap((event) => ('response' in event ? [event.response] : []));
  const response = responses.at(-1);
  if (response === undefined) throw new Error('no response');
  checkResponses(events, responses);
  checkItems(events, response);
  return { events, response };
}

/** Every event's response is the same but for what the end changes. */
function checkResponses(events: readonly PublishedEvent[], responses: readonly PublishedResponse[]): void {
  const last = responses.at(-1);
  for (const response of responses.slice(0, -1)) {
    if (response.status !== 'in_progress' || response.output.length > 0) throw new Error('over before its end');
    if (response.usage !== null || response.error !== null) throw new Error('usage or error before the end');
  }
  const constant = responses.map(({ id, created_at, model, tools, instructions }) =>
    JSON.stringify({ id, created_at, model, tools, instructions }),
  );
  if (new Set(constant).size !== 1) throw new Error(`not constant: ${constant.join()}`);
  if (last === undefined || events.at(-1)?.type !== `response.${last.status}`)
    throw new Error('status is not the event');
  checkEnd(last);
}

/** What the end must say, streamed or not. */
export function checkEnd(response: PublishedResponse): void {
  const { status, error, incomplete_details: details, usage, completed_at } = response;
  if ((status === 'failed') !== (error !== null)) throw new Error('an error where it failed, and only there');
  if ((status === 'incomplete') !== (details !== null)) throw new Error('a reason where incomplete, and only there');
  if ((status === 'completed') !== (completed_at !== null)) throw new Error('completed_at where completed');
  if (status !== 'failed' && usage === null) throw new Error('no usage');
  const open = response.output.filter((item) => item.status === 'in_progress');
  if (open.length > 0) throw new Error('an item in progress at the end');
  if (status === 'completed' && response.output.some((item) => item.status !== 'completed'))
    throw new Error('an item not completed');
}

type Life = { readonly item: PublishedItem; said: string; parts: number; isPartOpen: boolean; isDone: boolean };

/** Each item is added, says what it says, and is done; a failed response may leave the last ones open. */
function checkItems(events: readonly PublishedEvent[], response: PublishedResponse): void {
  const lives: Life[] = [];
  for (const event of events) follow(lives, event);
  if (lives.length !== response.output.length) throw new Error('the output is not what was added');
  for (const [index, { item, isDone }] of lives.entries()) {
    const final = response.output[index];
    if (final?.id !== item.id || final.type !== item.type) throw new Error(`item ${index} is another at the end`);
    if (!isDone && response.status !== 'failed') throw new Error(`item ${index} was never done`);
  }
}

function follow(lives: Life[], event: PublishedEvent): void {
  if (!('output_index' in event)) return;
  const life = lives[event.output_index];
  if (event.type === 'response.output_item.added') {
    if (event.output_index !== lives.length) throw new Error('an output_index out of order');
    const { item } = event;
    if (item.status !== 'in_progress') throw new Error('added, but not in progress');
    lives.push({ item, said: '', parts: 0, isPartOpen: false, isDone: false });
    return;
  }
  if (life === undefined || life.isDone) throw new Error(`${event.type} outside of its item's life`);
  if (event.type === 'response.output_item.done') return finish(life, event.item);
  if (event.item_id !== life.item.id) throw new Error('an item_id that changes');
  if ('content_index' in event) {
    const expected = event.type === 'response.content_part.added' ? life.parts : life.parts - 1;
    if (event.content_index !== expected) throw new Error('a content_index out of order');
    const isAdded = event.type === 'response.content_part.added';
    if (life.isPartOpen === isAdded) throw new Error(`${event.type} outside of its part's life`);
  }
  followText(life, event);
}

function followText(life: Life, event: PublishedEvent): void {
  if ('delta' in event) life.said += event.delta;
  else if (event.type === 'response.content_part.added') {
    Object.assign(life, { parts: life.parts + 1, isPartOpen: true, said: '' });
    if (readPart(event.part) !== '') throw new Error('a part that begins with text');
  } else if (event.type === 'response.content_part.done') {
    life.isPartOpen = false;
    if (readPart(event.part) !== life.said) throw new Error('a part that is not its deltas');
  } else if (event.type === 'response.function_call_arguments.done') {
    if (event.arguments !== life.said) throw new Error('arguments that are not their deltas');
  } else if ('text' in event || 'refusal' in event) {
    if (readPart(event) !== life.said) throw new Error('a text that is not its deltas');
  }
}

function finish(life: Life, item: PublishedItem): void {
  if (item.id !== life.item.id || item.status === 'in_progress' || life.isPartOpen)
    throw new Error('done, but not over');
  life.isDone = true;
}

function readPart(part: object): string {
  const value: unknown = 'refusal' in part ? part.refusal : 'text' in part ? part.text : null;
  if (typeof value !== 'string') throw new Error('no text');
  return value;
}

/** What a response says under one type of part, joined. */
export function joinParts({ output }: PublishedResponse, type: 'output_text' | 'refusal' | 'reasoning_text'): string {
  const parts = output.flatMap((item) => (item.type === 'function_call' ? [] : [...item.content]));
  return parts.map((part) => (part.type === type ? readPart(part) : '')).join('');
}
