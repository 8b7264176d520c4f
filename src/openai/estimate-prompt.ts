// Estimates a prompt's tokens for the token bucket, before any engine has counted them (SPEC §5). Four bytes of UTF-8 a
// token and some for the template: close for most text, and corrected by the engine's count when the request settles.

import { type ChatFields } from './chat-fields.ts';

const BYTES_PER_TOKEN = 4;
const TOKENS_PER_MESSAGE = 4;
/** What an image counts, whatever its size (SPEC §4). */
const IMAGE_TOKENS = 1500;

/** Estimated prompt tokens of a chat request: texts, tool calls, tool definitions and images. */
export function estimateChatPrompt(fields: ChatFields): number {
  let bytes = 0;
  let images = 0;
  for (const message of fields.messages) {
    const { content } = message;
    if (typeof content === 'string') bytes += countUtf8Bytes(content);
    else if (Array.isArray(content)) {
      for (const part of content) {
        if (part.type === 'text') bytes += countUtf8Bytes(part.text ?? '');
        else images += 1;
      }
    }
    bytes += countUtf8Bytes(message.reasoning ?? message.reasoning_content ?? '');
    for (const call of message.tool_calls ?? []) bytes += countUtf8Bytes(call.function.name + call.function.arguments);
  }
  if (fields.tools !== null && fields.tools !== undefined) bytes += countUtf8Bytes(JSON.stringify(fields.tools));
  return Math.ceil(bytes / BYTES_PER_TOKEN) + fields.messages.length * TOKENS_PER_MESSAGE + images * IMAGE_TOKENS;
}

/** Bytes of a string in UTF-8, without encoding it. */
export function countUtf8Bytes(text: string): number {
  let bytes = text.length;
  for (let at = 0; at < text.length; at += 1) {
    const code = text.charCodeAt(at);
    if (code < 0x80) continue;
    if (code < 0x800) bytes += 1;
    else if (code >= 0xd800 && code < 0xdc00) {
      bytes += 2;
      at += 1;
    } else bytes += 2;
  }
  return bytes;
}
