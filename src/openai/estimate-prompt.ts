// Estimates a prompt's tokens for the token bucket, before any engine has counted them (SPEC §5). Four bytes of UTF-8 a
// token and some for the template: close for most text, and corrected by the engine's count when the request settles.

import { type ChatFields } from './chat-fields.ts';
import { countUtf8Bytes } from '../core/utf8.ts';

const BYTES_PER_TOKEN = 4;
/** Text that packs more bytes than this into its tokens on average is not text. */
const BYTES_PER_TOKEN_MAX = 8;
const TOKENS_PER_MESSAGE = 4;
/** A byte-level tokenizer makes at most one token a byte; the template adds at most so many a message. */
const TOKENS_PER_MESSAGE_MAX = 8;
/** What an image counts, whatever its size (SPEC §4). */
const IMAGE_TOKENS = 1500;

/** The size of a request's prompts, before any engine has counted them. */
export type PromptSize = {
  /** Estimated tokens of all prompts. */
  readonly promptTokens: number;
  /** Tokens that the longest prompt has at the least. */
  readonly promptTokensMin: number;
  /** Tokens that no single prompt can exceed. */
  readonly promptTokensMax: number;
  /** Tokens that all prompts together cannot exceed. */
  readonly inputTokensMax: number;
};

/**
 * The size of a chat prompt: texts, tool calls, tool definitions and images.
 *
 * @param unread Values that a chat template may write into the prompt and nobody has read: they count for the most only.
 */
export function estimateChatPrompt(fields: ChatFields, unread: readonly unknown[]): PromptSize {
  let bytes = 0;
  let unreadBytes = 0;
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
    unreadBytes += countUtf8Bytes((message.name ?? '') + (message.tool_call_id ?? ''));
    for (const call of message.tool_calls ?? []) {
      bytes += countUtf8Bytes(call.function.name + call.function.arguments);
      unreadBytes += countUtf8Bytes(call.id);
    }
  }
  if (fields.tools !== null && fields.tools !== undefined) bytes += countUtf8Bytes(JSON.stringify(fields.tools));
  for (const value of unread) unreadBytes += countUtf8Bytes(JSON.stringify(value));
  const messages = fields.messages.length;
  const promptTokensMax = bytes + unreadBytes + messages * TOKENS_PER_MESSAGE_MAX + images * IMAGE_TOKENS;
  return {
    promptTokens: Math.ceil(bytes / BYTES_PER_TOKEN) + messages * TOKENS_PER_MESSAGE + images * IMAGE_TOKENS,
    promptTokensMin: Math.floor(bytes / BYTES_PER_TOKEN_MAX),
    promptTokensMax,
    inputTokensMax: promptTokensMax,
  };
}

/** The size of the prompts of a text completion. */
export function estimateTextPrompts(prompts: readonly string[]): PromptSize {
  const sizes = prompts.map(countUtf8Bytes);
  return {
    promptTokens: sizes.reduce((sum, bytes) => sum + Math.ceil(bytes / BYTES_PER_TOKEN) + 1, 0),
    promptTokensMin: Math.floor(Math.max(0, ...sizes) / BYTES_PER_TOKEN_MAX),
    promptTokensMax: sizes.reduce((most, bytes) => Math.max(most, bytes + 1), 0),
    inputTokensMax: sizes.reduce((sum, bytes) => sum + bytes + 1, 0),
  };
}
