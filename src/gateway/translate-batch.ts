// Turns a batch of upstream events into the client's text, and says whether the stream is over with it (SPEC §7).

import { type StreamTranslator } from '../openai/endpoint.ts';
import { type Batch } from './event-reader.ts';
import { buildUpstreamEnd, type RunEnd } from './run.ts';

/** One batch as client text, and the end it brings, if any. */
export function translateBatch(
  batch: Batch,
  translator: StreamTranslator,
): { readonly text: string; readonly end: RunEnd | null } {
  if (batch.type === 'overflow') return { text: '', end: buildUpstreamEnd('upstream_error', 'an event is too large') };
  const events = batch.type === 'events' ? batch.events : batch.leftover === null ? [] : [batch.leftover];
  let text = '';
  for (const event of events) {
    const translated = translator.push(event);
    if (translated.type === 'done') return { text, end: { type: 'finished' } };
    if (translated.type === 'fault') {
      return { text, end: { type: 'failed', error: translated.error, detail: translated.detail } };
    }
    text += translated.text;
  }
  if (batch.type !== 'end') return { text, end: null };
  if (!batch.broken && translator.isComplete()) return { text, end: { type: 'finished' } };
  return {
    text,
    end: buildUpstreamEnd('upstream_disconnected', batch.broken ? 'the connection broke' : 'an end without [DONE]'),
  };
}
