// An engine that does as the request says, behind the same kind of binding as a bridge: the body's `x_script` is a list
// of steps. It remembers what it got by x-request-id, under /recorded/<id>. Not an engine's behaviour, only its seat.

import { WorkerEntrypoint } from 'cloudflare:workers';

const recorded = new Map();

const HAPPY_STREAM = [
  { json: { choices: [{ index: 0, delta: { role: 'assistant', content: '' }, finish_reason: null }] } },
  { json: { choices: [{ index: 0, delta: { content: 'Hi' }, finish_reason: null }] } },
  { json: { choices: [{ index: 0, delta: {}, finish_reason: 'stop' }] } },
  { json: { choices: [], usage: { prompt_tokens: 3, completion_tokens: 2, total_tokens: 5 } } },
  { data: '[DONE]' },
];
const HAPPY_ANSWER = {
  id: 'chatcmpl-engine',
  object: 'chat.completion',
  created: 1789516800,
  model: 'engine-model',
  choices: [{ index: 0, message: { role: 'assistant', content: 'Hi' }, finish_reason: 'stop' }],
  usage: { prompt_tokens: 3, completion_tokens: 2, total_tokens: 5 },
};

const HAPPY_TEXT_STREAM = [
  { json: { object: 'text_completion', choices: [{ index: 0, text: 'Hi', logprobs: null, finish_reason: null }] } },
  { json: { object: 'text_completion', choices: [{ index: 0, text: '', logprobs: null, finish_reason: 'stop' }] } },
  { json: { choices: [], usage: { prompt_tokens: 3, completion_tokens: 2, total_tokens: 5 } } },
  { data: '[DONE]' },
];
const HAPPY_TEXT_ANSWER = {
  ...HAPPY_ANSWER,
  object: 'text_completion',
  choices: [{ index: 0, text: 'Hi', finish_reason: 'stop' }],
};

const NATIVE = { id: 'resp_engine', object: 'response', created_at: 1789516800, model: 'engine-model' };
const NATIVE_MESSAGE = { type: 'message', id: 'msg_engine', role: 'assistant', status: 'completed' };
const NATIVE_ANSWER = {
  ...NATIVE,
  status: 'completed',
  output: [{ ...NATIVE_MESSAGE, content: [{ type: 'output_text', text: 'Hi', annotations: [] }] }],
  usage: { input_tokens: 3, output_tokens: 2, total_tokens: 5 },
};
const NATIVE_STREAM = [
  { json: { type: 'response.created', response: { ...NATIVE, status: 'in_progress', output: [] } } },
  { json: { type: 'response.output_item.added', output_index: 0, item: { ...NATIVE_MESSAGE, content: [] } } },
  { json: { type: 'response.output_text.delta', item_id: 'msg_engine', output_index: 0, delta: 'Hi' } },
  { json: { type: 'response.completed', response: NATIVE_ANSWER } },
];

/** What an engine says at each path when it is not told what to say: streamed, and whole. */
const HAPPY = {
  '/v1/chat/completions': [HAPPY_STREAM, HAPPY_ANSWER],
  '/v1/completions': [HAPPY_TEXT_STREAM, HAPPY_TEXT_ANSWER],
  '/v1/responses': [NATIVE_STREAM, NATIVE_ANSWER],
};

export class Bridge extends WorkerEntrypoint {
  async fetch(request) {
    const url = new URL(request.url);
    if (url.pathname.startsWith('/recorded/')) {
      return Response.json(recorded.get(url.pathname.slice('/recorded/'.length)) ?? null);
    }
    const text = await request.text();
    const body = JSON.parse(text);
    const record = { path: url.pathname, text, headers: Object.fromEntries(request.headers), aborted: false };
    recorded.set(request.headers.get('x-request-id'), record);
    request.signal.addEventListener('abort', () => {
      record.aborted = true;
    });
    const script = body.x_script ?? {};
    if (script.throw) throw new Error('connection refused');
    if (script.status) {
      return new Response(script.body ?? '', { status: script.status, headers: script.headers ?? {} });
    }
    if (script.json) return Response.json(script.json);
    const [happyStream, happyAnswer] = HAPPY[url.pathname];
    if (!body.stream) return Response.json(happyAnswer);
    return new Response(play(script.stream ?? happyStream, record), {
      headers: { 'content-type': 'text/event-stream' },
    });
  }
}

export default { fetch: () => new Response(null, { status: 404 }) };

/** Steps: {json} an event with the common members, {data} a raw data line, {raw} bytes, {wait} ms, {cut} breaks off. */
function play(steps, record) {
  const encoder = new TextEncoder();
  let at = 0;
  return new ReadableStream({
    async pull(controller) {
      const step = steps[at];
      at += 1;
      if (step === undefined) return controller.close();
      if (step.wait !== undefined) await new Promise((resolve) => setTimeout(resolve, step.wait));
      if (step.cut) return controller.error(new Error('cut'));
      const common = {
        id: 'chatcmpl-engine',
        object: 'chat.completion.chunk',
        created: 1789516800,
        model: 'engine-model',
      };
      if (step.json) controller.enqueue(encoder.encode(`data: ${JSON.stringify({ ...common, ...step.json })}\n\n`));
      if (step.data) controller.enqueue(encoder.encode(`data: ${step.data}\n\n`));
      if (step.raw) controller.enqueue(encoder.encode(step.raw));
      if (step.wait !== undefined && !step.json && !step.data && !step.raw) return this.pull(controller);
    },
    cancel() {
      record.aborted = true;
    },
  });
}
