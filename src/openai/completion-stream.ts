// Translates an engine's stream of a chat or text completion into the client's: normal form, constant identity, usage
// once before the end, an error before [DONE] when it breaks (SPEC §7). Synchronous; moving bytes and waiting is the
// relay's work.

import { type GatewayError } from '../core/errors.ts';
import { type JsonObject, readObject, readText } from '../core/json-read.ts';
import { toOpenAIError } from '../core/openai-error.ts';
import { toCompletionUsage } from '../core/usage.ts';
import { createCompletionReader } from './completion-reader.ts';
import { buildCompletionHead, type CompletionHead, type CompletionShape } from './completion-shape.ts';
import { type AnswerContext, type StreamTranslator, type Translated } from './endpoint.ts';
import { createDeltaTemplates, type Rendering } from './delta-templates.ts';

const DONE = 'data: [DONE]\n\n';

/** Creates the translator of one stream. */
export function createCompletionTranslator(context: AnswerContext, shape: CompletionShape): StreamTranslator {
  const { request } = context;
  const reader = createCompletionReader(context, shape);
  const templates = createDeltaTemplates();
  const showUsage = request.resolved.model.policy.usage_in_stream === 'always' || request.usageRequested;
  let head: CompletionHead | null = null;
  /** The members every chunk begins with, as text: they are the same each time. */
  let headText = '';

  function fixHead(chunk: JsonObject): void {
    if (head !== null) return;
    head = buildCompletionHead(context, shape, shape.chunkObject, chunk);
    headText = JSON.stringify(head).slice(0, -1);
  }

  function writeChunk(rest: JsonObject): string {
    fixHead({});
    return `data: ${headText},${JSON.stringify(rest).slice(1)}\n\n`;
  }

  function writeUsage(): string {
    if (!showUsage) return '';
    const { usage, source, reported } = reader.total();
    return writeChunk({ choices: [], usage: toCompletionUsage(usage, reported, source === 'estimated') });
  }

  /** Translates a sample of a delta in the middle of its choice, leaving no trace. */
  function render(sample: JsonObject): Rendering | null {
    const list: unknown = sample['choices'];
    const choice = readObject(Array.isArray(list) ? list[0] : null);
    const index = typeof choice['index'] === 'number' ? choice['index'] : 0;
    const state = reader.states.get(index);
    if (state === undefined || !state.roleSent || state.finishReason !== null) return null;
    const trial = { ...state };
    const chunks = shape.toChunks(choice, index, trial, context);
    if (trial.finishReason !== null || trial.deltas !== state.deltas + 1) return null;
    const text = chunks.map((out) => writeChunk({ choices: [out] })).join('');
    return { text, index, isText: trial.textLength > state.textLength };
  }

  return {
    pushAlike(text, from) {
      const match = templates.match(text, from);
      const state = match === null ? undefined : reader.states.get(match.template.index);
      if (match === null || state === undefined || state.finishReason !== null) return null;
      const { template } = match;
      const { literal, counts, end } = match.alike;
      state.deltas += 1;
      if (template.isText) state.textLength += readLength(literal);
      if (template.counts !== null && counts !== null) reader.meter.note(template.index, template.counts.name, counts);
      const { parts } = template;
      // Nearly always two, and joining costs more than adding.
      return { text: parts.length === 2 ? `${parts[0]}${literal}${parts[1]}` : parts.join(literal), end };
    },
    push(event): Translated {
      const read = reader.push(event);
      if (read.type === 'nothing') return { type: 'output', text: '' };
      if (read.type === 'done') return { type: 'done', text: '' };
      if (read.type !== 'chunk') return read;
      fixHead(read.source);
      const text = read.choices.map((out) => writeChunk({ choices: [out] })).join('');
      templates.learn(read.data, read.source, render);
      return { type: 'output', text };
    },
    isComplete: reader.isComplete,
    finish() {
      const last = reader.finish().map((out) => writeChunk({ choices: [out] }));
      return last.join('') + writeUsage() + DONE;
    },
    fail(error: GatewayError) {
      const usage = reader.isCounted() ? writeUsage() : '';
      return usage + `data: ${JSON.stringify(toOpenAIError(error).body)}\n\n` + DONE;
    },
    progress: () => ({ ...reader.progress(), completionId: head?.id ?? null }),
  };
}

/** Characters of a string as it is spelled in JSON. */
function readLength(literal: string): number {
  return literal.includes('\\') ? readText(JSON.parse(`"${literal}"`)).length : literal.length;
}
