// Answers a request that is not streamed from an engine that is asked to stream: silence deadlines and running counts
// then hold as for streams, and a client that leaves costs no whole generation (SPEC §6).

import { err, ok, type Result } from '../core/result.ts';
import { ANSWER_BYTES_MAX, openStream, type OpenedStream } from './open-upstream.ts';
import { type UpstreamCall } from './upstream-call.ts';
import { type Halt } from './halt.ts';
import { buildUpstreamEnd, type RunEnd, toAnswerableEnd } from './run.ts';
import { readTranslated } from './stream-translation.ts';
import { startWatch } from './watch.ts';

/** The whole answer in normal form, or how the request ended instead. */
export async function collectStream(call: UpstreamCall, halt: Halt): Promise<Result<string, RunEnd>> {
  const { request } = call.context;
  const context = { ...call.context, request: { ...request, stream: true, usageRequested: true } };
  const opened = await openStream({ ...call, context });
  if (!opened.ok) return err(halt.reason() ?? toAnswerableEnd({ type: 'failed', ...opened.error }));
  const collected = await readAll(call, opened.value, halt);
  if (!collected.ok) {
    await opened.value.reader.cancel();
    return collected;
  }
  const [backend] = request.resolved.backends;
  return ok(call.endpoint.assembleAnswer(collected.value, { ...context, backend }));
}

/** Everything the client would have got as a stream. */
async function readAll(
  call: UpstreamCall,
  { reader, translation, firstText, firstEnd }: OpenedStream,
  halt: Halt,
): Promise<Result<string, RunEnd>> {
  const { settings, now } = call.ports;
  let heardAtMs = now();
  const silence = {
    dueAtMs: () => heardAtMs + settings.silenceDeadlineMs,
    run: () => halt.halt(buildUpstreamEnd('upstream_timeout', 'silence')),
  };
  const watch = startWatch([silence], now);
  let text = firstText;
  let end = firstEnd;
  try {
    while (end === null) {
      if (call.run.firstTokenAtMs === null && call.run.progress().started) call.run.firstTokenAtMs = now();
      const batch = await readTranslated(reader, translation);
      heardAtMs = now();
      text += batch.text;
      end = halt.reason() ?? batch.end;
      if (text.length > ANSWER_BYTES_MAX) end ??= buildUpstreamEnd('upstream_error', 'the answer is too large');
    }
  } finally {
    watch.stop();
  }
  return end.type === 'finished' ? ok(text + translation.translator.finish()) : err(toAnswerableEnd(end));
}
