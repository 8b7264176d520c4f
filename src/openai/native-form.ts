// When an engine's stream of a chat or text completion may reach the client as it is (SPEC §7, native lane): the model's
// operator says that the engine speaks the normal form, the request wants nothing changed, and the first words prove it.

import { type JsonObject, parseJsonObject, readCount, readObject, readText } from '../core/json-read.ts';
import { type Backend } from '../core/model-catalog.ts';
import { type CompletionShape } from './completion-shape.ts';
import { type InferenceRequest, type NativeForm } from './endpoint.ts';

/** Fields whose answers engines spell in ways of their own, so that they are written anew. */
const REWRITTEN = ['logprobs', 'top_logprobs', 'tools', 'echo'];

/** The native form of an endpoint. */
export function createNativeForm(chunkObject: CompletionShape['chunkObject']): NativeForm {
  return {
    passesUnchanged,
    isNormal: (text, backend) => isNormal(text, backend, chunkObject),
    done: 'data: [DONE]\n\n',
  };
}

/**
 * Whether policy and options of a request leave an engine's stream as it is. Its answer must fit the copy that the receipt
 * is made from, so it has one choice.
 */
export function passesUnchanged(request: InferenceRequest, backend: Backend): boolean {
  const { model, requestedModel } = request.resolved;
  const { policy } = model;
  return (
    model.lane === 'native' &&
    request.body.value['stream'] === true &&
    request.choices === 1 &&
    // A response is no chat stream.
    request.echo === null &&
    request.effort !== 'none' &&
    (policy.usage_in_stream === 'always' || request.usageRequested) &&
    (policy.response_model === 'engine' || requestedModel === backend.upstream_model) &&
    (model.reasoning === null || policy.reasoning_field !== 'both') &&
    REWRITTEN.every((field) => !asksFor(request.body.value[field]))
  );
}

/** Values that ask for nothing trip no gate (SPEC §4). */
function asksFor(value: unknown): boolean {
  return (value ?? false) !== false && !(Array.isArray(value) && value.length === 0);
}

/** Whether text that begins a stream is in the normal form of SPEC §7, so far as it shows. A last event may be cut off. */
function isNormal(text: string, backend: Backend, object: CompletionShape['chunkObject']): boolean {
  const events = text.split('\n\n').slice(0, -1);
  return events.length > 0 && events.every((event, at) => isNormalEvent(event, at === 0, backend, object));
}

function isNormalEvent(event: string, isFirst: boolean, backend: Backend, object: string): boolean {
  if (!event.startsWith('data: ') || /[\r\n]/.test(event)) return false;
  const chunk = parseJsonObject(event.slice('data: '.length));
  const list: unknown = chunk?.['choices'];
  if (chunk === null || !Array.isArray(list) || list.length !== 1) return false;
  const choice = readObject(list[0]);
  const isNamed = readText(chunk['id']) !== '' && chunk['model'] === backend.upstream_model;
  const isDated = chunk['object'] === object && (readCount(chunk['created']) ?? 0) > 0;
  const isRunning = choice['index'] === 0 && choice['finish_reason'] === null;
  const isClean = chunk['error'] === undefined && chunk['usage'] === undefined;
  return isNamed && isDated && isRunning && isClean && isNormalChoice(choice, isFirst, object);
}

/** The role on the first delta and only there; text in a string; reasoning in an event of its own. */
function isNormalChoice(choice: JsonObject, isFirst: boolean, object: string): boolean {
  if (object === 'text_completion') return typeof choice['text'] === 'string';
  const delta = readObject(choice['delta']);
  const reasons = readText(delta['reasoning']) !== '' || readText(delta['reasoning_content']) !== '';
  return (delta['role'] === 'assistant') === isFirst && !(reasons && readText(delta['content']) !== '');
}
