// What the five API documents disagree about, as one policy per model (SPEC §4). Presets name three of those documents;
// single fields of a catalog entry's `policy` override its preset.

import * as z from 'zod';

/** A policy as the catalog may write it; every field optional. */
export const policySchema = z.strictObject({
  usage_in_stream: z.enum(['always', 'on_request']).optional(),
  response_model: z.enum(['requested', 'engine']).optional(),
  max_n: z.int().min(1).max(128).optional(),
  max_stop: z.int().min(1).nullable().optional(),
  unknown_fields: z.enum(['pass', 'drop', 'reject']).optional(),
  checked_fields: z.enum(['all', 'listed']).optional(),
  reasoning_default: z.enum(['engine', 'none']).optional(),
  reasoning_field: z.enum(['reasoning', 'reasoning_content', 'both']).optional(),
  content: z.enum(['optional', 'required']).optional(),
  omitted_sampling: z.enum(['engine', 'one']).optional(),
  reasoning_content_elsewhere: z.enum(['reject', 'pass']).optional(),
});

/** A whole policy; see the table of SPEC §4 for what each field decides. */
export type Policy = {
  readonly usage_in_stream: 'always' | 'on_request';
  readonly response_model: 'requested' | 'engine';
  readonly max_n: number;
  readonly max_stop: number | null;
  readonly unknown_fields: 'pass' | 'drop' | 'reject';
  readonly checked_fields: 'all' | 'listed';
  readonly reasoning_default: 'engine' | 'none';
  readonly reasoning_field: 'reasoning' | 'reasoning_content' | 'both';
  readonly content: 'optional' | 'required';
  readonly omitted_sampling: 'engine' | 'one';
  readonly reasoning_content_elsewhere: 'reject' | 'pass';
};

/** The last column of SPEC §4's table. */
export const DEFAULT_POLICY: Policy = {
  usage_in_stream: 'always',
  response_model: 'requested',
  max_n: 1,
  max_stop: 4,
  unknown_fields: 'pass',
  checked_fields: 'all',
  reasoning_default: 'engine',
  reasoning_field: 'both',
  content: 'optional',
  omitted_sampling: 'engine',
  reasoning_content_elsewhere: 'pass',
};

/** The three documents with a policy of their own, as differences from the default. */
export const PRESETS = {
  boardwalk: { response_model: 'engine', reasoning_content_elsewhere: 'reject' },
  springboards: {
    usage_in_stream: 'on_request',
    max_n: 8,
    checked_fields: 'listed',
    reasoning_default: 'none',
    reasoning_field: 'reasoning_content',
    content: 'required',
  },
  boole: {
    usage_in_stream: 'on_request',
    max_n: 8,
    max_stop: null,
    checked_fields: 'listed',
    content: 'required',
    omitted_sampling: 'one',
  },
} as const satisfies Record<string, Partial<Policy>>;

/** The policy of a catalog entry: default, then preset, then its own fields. */
export function resolvePolicy(preset: keyof typeof PRESETS | undefined, own: z.infer<typeof policySchema>): Policy {
  const base: Policy = preset === undefined ? DEFAULT_POLICY : { ...DEFAULT_POLICY, ...PRESETS[preset] };
  return {
    usage_in_stream: own.usage_in_stream ?? base.usage_in_stream,
    response_model: own.response_model ?? base.response_model,
    max_n: own.max_n ?? base.max_n,
    max_stop: own.max_stop === undefined ? base.max_stop : own.max_stop,
    unknown_fields: own.unknown_fields ?? base.unknown_fields,
    checked_fields: own.checked_fields ?? base.checked_fields,
    reasoning_default: own.reasoning_default ?? base.reasoning_default,
    reasoning_field: own.reasoning_field ?? base.reasoning_field,
    content: own.content ?? base.content,
    omitted_sampling: own.omitted_sampling ?? base.omitted_sampling,
    reasoning_content_elsewhere: own.reasoning_content_elsewhere ?? base.reasoning_content_elsewhere,
  };
}
