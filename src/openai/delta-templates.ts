// The templates of one stream: which kinds of events have been seen, and when it is worth making another. Making one costs
// about as much as translating two events; a stream whose events never fit must not pay that for each.

import { type JsonObject } from '../core/json-read.ts';
import { type Alike, type DeltaTemplate, findString, matchTemplate, PLACEHOLDER } from './delta-template.ts';

/** What an event that fits is. */
export type Match = { readonly alike: Alike; readonly template: DeltaTemplate };

/** What translating the placeholder came to. */
export type Rendering = { readonly text: string; readonly index: number; readonly isText: boolean };

/** The templates of one stream. */
export type DeltaTemplates = {
  /** The event that begins at `from`, if it is like one before. */
  readonly match: (text: string, from: number) => Match | null;
  /**
   * Makes a template of an event that was just translated the long way.
   *
   * @param render Translates a chunk as the long way does, leaving no trace; null when it says more than one delta.
   */
  readonly learn: (data: string, chunk: JsonObject, render: (sample: JsonObject) => Rendering | null) => void;
};

/** Of a stream with several choices, those with the latest events. */
const TEMPLATES_MAX = 8;
const CREDIT_MAX = 16;
const LEARNING_COST = 4;

/** Creates an empty set. */
export function createDeltaTemplates(): DeltaTemplates {
  const templates: DeltaTemplate[] = [];
  let credit = CREDIT_MAX;
  return {
    match(text, from) {
      for (const template of templates) {
        const alike = matchTemplate(template, text, from);
        if (alike === null) continue;
        credit = Math.min(CREDIT_MAX, credit + 1);
        return { alike, template };
      }
      return null;
    },
    learn(data, chunk, render) {
      if (credit < LEARNING_COST) return;
      credit -= LEARNING_COST;
      const found = findString(data, chunk);
      const rendering = found === null ? null : render(found.sample);
      if (found === null || rendering === null) return;
      const { sample: _sample, ...around } = found;
      const { index, isText } = rendering;
      if (templates.length === TEMPLATES_MAX) templates.pop();
      templates.unshift({ ...around, index, isText, parts: rendering.text.split(PLACEHOLDER) });
    },
  };
}
