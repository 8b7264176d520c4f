// The JSON answer that a stream of response events amounts to: the response in its terminal event (SPEC §6, §8).

import { parseJsonObject } from '../core/json-read.ts';

/** The response of a stream that went well. */
export function assembleResponse(streamText: string): string {
  const from = streamText.lastIndexOf('\ndata: {') + '\ndata: '.length;
  const event = parseJsonObject(streamText.slice(from, streamText.indexOf('\n', from)));
  return JSON.stringify(event?.['response'] ?? null);
}
