// Reads a chat request: what the engine acts on is checked, everything else is let pass and ignored, as vLLM does.

import * as z from 'zod';
import { parseBody, type ParseFault } from './parse-body.ts';

const choicesMax = 128;

const limitSchema = z.int().min(1).nullish();
const stopSchema = z.string().min(1);
const contentSchema = z.union([z.string(), z.array(z.looseObject({ type: z.string(), text: z.string().optional() }))]);

const chatRequestSchema = z.looseObject({
  model: z.string().default('turnpike-demo'),
  messages: z.array(z.looseObject({ role: z.string(), content: contentSchema.nullish() })).min(1),
  stream: z.boolean().nullish(),
  stream_options: z
    .looseObject({ include_usage: z.boolean().nullable().default(true), continuous_usage_stats: z.boolean().nullish() })
    .nullish(),
  max_tokens: limitSchema,
  max_completion_tokens: limitSchema,
  stop: z.union([stopSchema, z.array(stopSchema)]).nullish(),
  n: z.int().min(1).max(choicesMax).nullish(),
  // Not z.int(): that one refuses what is beyond 2^53, and a seed may be of any size.
  seed: z.number().refine(Number.isInteger, 'Must be an integer').nullish(),
  ignore_eos: z.boolean().nullish(),
  tools: z
    .array(z.looseObject({ function: z.looseObject({ name: z.string(), parameters: z.looseObject({}).nullish() }) }))
    .nullish(),
  tool_choice: z
    .union([z.enum(['none', 'auto', 'required']), z.looseObject({ function: z.looseObject({ name: z.string() }) })])
    .nullish(),
  parallel_tool_calls: z.boolean().nullish(),
  response_format: z
    .looseObject({ type: z.string(), json_schema: z.looseObject({ schema: z.unknown() }).nullish() })
    .nullish(),
  logprobs: z.boolean().nullish(),
  top_logprobs: z.int().min(0).max(20).nullish(),
  chat_template_kwargs: z.looseObject({ enable_thinking: z.unknown() }).nullish(),
});

type ChatBody = z.infer<typeof chatRequestSchema>;
type ChatMessage = ChatBody['messages'][number];

/** A tool as far as the engine reads it. */
export interface DemoTool {
  readonly name: string;
  readonly parameters: unknown;
}

/** What the text must be. */
export type TextFormat =
  | { readonly type: 'text' }
  | { readonly type: 'json_object' }
  | { readonly type: 'json_schema'; readonly schema: unknown };

/** A chat request as the engine works with it; `maxTokens` is null when the caller named no limit. */
export interface ChatRequest {
  readonly model: string;
  readonly prompt: string;
  readonly question: string;
  readonly stream: boolean;
  readonly includeUsage: boolean;
  readonly continuousUsage: boolean;
  readonly maxTokens: number | null;
  readonly stops: readonly string[];
  readonly choices: number;
  readonly seed: number | null;
  readonly ignoreEos: boolean;
  readonly tools: readonly DemoTool[];
  readonly toolChoice: 'none' | 'auto' | 'required' | { readonly name: string };
  readonly parallelToolCalls: boolean;
  readonly format: TextFormat;
  /** How many likely tokens to list with each; null for no log probabilities. */
  readonly topLogprobs: number | null;
  readonly thinking: boolean;
  readonly lastRole: string;
  readonly lastText: string;
}

export type ChatRequestResult = { readonly ok: true; readonly request: ChatRequest } | ParseFault;

/** Parses the text of a body. */
export function parseChatRequest(text: string): ChatRequestResult {
  const parsed = parseBody(chatRequestSchema, text);
  return parsed.ok ? { ok: true, request: toChatRequest(parsed.body) } : parsed;
}

function toChatRequest(body: ChatBody): ChatRequest {
  const includeUsage = body.stream_options?.include_usage === true;
  return {
    model: body.model,
    prompt: renderPrompt(body.messages),
    question: readText(body.messages.findLast((message) => message.role === 'user')),
    stream: body.stream === true,
    // As in vLLM: stream_options without include_usage means true, and the running counts need it.
    includeUsage,
    continuousUsage: includeUsage && body.stream_options?.continuous_usage_stats === true,
    maxTokens: body.max_completion_tokens ?? body.max_tokens ?? null,
    stops: typeof body.stop === 'string' ? [body.stop] : (body.stop ?? []),
    choices: body.n ?? 1,
    seed: body.seed ?? null,
    ignoreEos: body.ignore_eos === true,
    tools: (body.tools ?? []).map(({ function: { name, parameters } }) => ({ name, parameters })),
    toolChoice:
      typeof body.tool_choice === 'object' && body.tool_choice !== null
        ? { name: body.tool_choice.function.name }
        : (body.tool_choice ?? 'auto'),
    parallelToolCalls: body.parallel_tool_calls !== false,
    format: toFormat(body.response_format),
    topLogprobs: body.logprobs === true ? (body.top_logprobs ?? 0) : null,
    thinking: body.chat_template_kwargs?.enable_thinking === true,
    lastRole: body.messages.at(-1)?.role ?? 'user',
    lastText: readText(body.messages.at(-1)),
  };
}

function toFormat(format: ChatBody['response_format']): TextFormat {
  if (format?.type === 'json_schema') return { type: 'json_schema', schema: format.json_schema?.schema };
  return format?.type === 'json_object' ? { type: 'json_object' } : { type: 'text' };
}

/** The engine's chat template: what prompt_tokens counts and what the default seed comes from. */
function renderPrompt(messages: readonly ChatMessage[]): string {
  return `${messages.map((message) => `${message.role}: ${readText(message)}\n`).join('')}assistant:`;
}

function readText(message: ChatMessage | undefined): string {
  const content = message?.content ?? '';
  if (typeof content === 'string') return content;
  // A part without text keeps its place by its name: it was seen, and not understood.
  return content.map((part) => part.text ?? `[${part.type}]`).join('');
}
