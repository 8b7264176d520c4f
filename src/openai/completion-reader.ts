// Reads an engine's stream of a chat or text completion: each event as the choices it becomes in normal form, the counts
// it brings, or the fault it is (SPEC §7). What is written of it for the client is the translators' work.

import { type JsonObject, parseJsonObject, readCount, readObject, readText } from '../core/json-read.ts';
import { type SseEvent } from '../core/sse.ts';
import {
  type ChoiceState,
  type CompletionShape,
  createChoiceState,
  type OutChoice,
  readTellingReason,
} from './completion-shape.ts';
import { type AnswerContext, type Progress, type UpstreamFault } from './endpoint.ts';
import { createUsageMeter, type Metered, type UsageMeter } from './usage-meter.ts';
import { readAbort, readEmbeddedError } from './upstream-error.ts';

/** What an event turned out to be. `source` is the engine's own chunk, `data` its text. */
export type ReadEvent =
  | { readonly type: 'nothing' }
  | {
      readonly type: 'chunk';
      readonly choices: readonly OutChoice[];
      readonly source: JsonObject;
      readonly data: string;
    }
  | { readonly type: 'done' }
  | ({ readonly type: 'fault' } & UpstreamFault);

/** The reader of one stream. */
export type CompletionReader = {
  readonly push: (event: SseEvent) => ReadEvent;
  /** Choices so far, by index. */
  readonly states: ReadonlyMap<number, ChoiceState>;
  readonly meter: UsageMeter;
  /** Whether every choice that was asked for has come and ended. */
  readonly isComplete: () => boolean;
  /** Ends the choices that the engine left open: their last chunks. */
  readonly finish: () => readonly OutChoice[];
  readonly total: () => Metered;
  /** Whether the engine has counted anything. */
  readonly isCounted: () => boolean;
  /** All but the id, which is the translator's. */
  readonly progress: () => Omit<Progress, 'completionId'>;
};

/** Creates the reader of one stream. */
export function createCompletionReader(context: AnswerContext, shape: CompletionShape): CompletionReader {
  const { request } = context;
  const states = new Map<number, ChoiceState>();
  const meter = createUsageMeter(context);
  let servedModel: string | null = null;
  let begun = false;

  const isComplete = (): boolean =>
    states.size >= request.choices && [...states.values()].every((state) => state.finishReason !== null);
  const countDeltas = (): number => [...states.values()].reduce((sum, state) => sum + state.deltas, 0);
  /** Where the engine counts none; a choice that ended without a word took a token all the same. */
  const total = (): Metered => meter.total(Math.max(countDeltas(), isComplete() ? 1 : 0));

  function readChunk(chunk: JsonObject): readonly OutChoice[] {
    if (!begun) servedModel = readText(chunk['model']) || null;
    begun = true;
    const list: unknown = chunk['choices'];
    const choices = (Array.isArray(list) ? list : []).flatMap((item: unknown) => {
      const choice = readObject(item);
      const index = readCount(choice['index']) ?? 0;
      const state = states.get(index) ?? createChoiceState();
      states.set(index, state);
      return shape.toChunks(choice, index, state, context);
    });
    meter.read(chunk, isComplete());
    return choices;
  }

  return {
    states,
    meter,
    isComplete,
    total,
    isCounted: () => meter.total(0).source.startsWith('engine'),
    push(event): ReadEvent {
      const data = event.data.trim();
      if (data === '[DONE]') return { type: 'done' };
      // llama-server begins several choices with a null.
      if (data === '' || data === 'null') return { type: 'nothing' };
      const chunk = parseJsonObject(data);
      if (chunk === null) return { type: 'fault', ...toGarbageFault(data) };
      const fault = readEmbeddedError(chunk, shape.promptParam) ?? readAbort(chunk);
      if (fault !== null) return { type: 'fault', ...fault };
      return { type: 'chunk', choices: readChunk(chunk), source: chunk, data };
    },
    finish() {
      return [...states].flatMap(([index, state]) => {
        if (state.finishReason !== null) return [];
        state.finishReason = state.toolCalls > 0 ? 'tool_calls' : 'stop';
        return [shape.toLastChunk(index, state, state.finishReason)];
      });
    },
    progress() {
      const { usage, source } = total();
      return {
        usage,
        usageSource: source,
        finishReason: readTellingReason([...states.values()].map((state) => state.finishReason)),
        servedModel,
        started: countDeltas() > 0,
      };
    },
  };
}

/** An event that is no JSON object. */
export function toGarbageFault(data: string): UpstreamFault {
  const detail = `an event of ${data.length} characters that is no JSON object`;
  return { error: { kind: 'upstream', failure: 'upstream_error' }, detail };
}
