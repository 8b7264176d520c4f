// The table of SPEC §4, column by column, and the order default, preset, own fields.

import { expect, test } from 'vitest';
import { DEFAULT_POLICY, type Policy, policySchema, PRESETS, resolvePolicy } from '../../src/core/policy.ts';

/** field: boardwalk, springboards, boole, default; as SPEC §4 prints it. */
const TABLE: {
  readonly [Field in keyof Policy]: readonly [Policy[Field], Policy[Field], Policy[Field], Policy[Field]];
} = {
  usage_in_stream: ['always', 'on_request', 'on_request', 'always'],
  response_model: ['engine', 'requested', 'requested', 'requested'],
  max_n: [1, 8, 8, 1],
  max_stop: [4, 4, null, 4],
  unknown_fields: ['pass', 'pass', 'pass', 'pass'],
  checked_fields: ['all', 'listed', 'listed', 'all'],
  reasoning_default: ['engine', 'none', 'engine', 'engine'],
  reasoning_field: ['both', 'reasoning_content', 'both', 'both'],
  content: ['optional', 'required', 'required', 'optional'],
  omitted_sampling: ['engine', 'engine', 'one', 'engine'],
  reasoning_content_elsewhere: ['reject', 'pass', 'pass', 'pass'],
};

test.each([
  ['boardwalk', 0],
  ['springboards', 1],
  ['boole', 2],
  [undefined, 3],
] as const)('§4 the column of preset %s', (preset, column) => {
  const expected = Object.fromEntries(Object.entries(TABLE).map(([field, values]) => [field, values[column]]));
  expect(resolvePolicy(preset, {})).toEqual(expected);
});

test('§4 there are three presets, and the last column is the default', () => {
  expect(Object.keys(PRESETS)).toEqual(['boardwalk', 'springboards', 'boole']);
  expect(resolvePolicy(undefined, {})).toEqual(DEFAULT_POLICY);
});

test.each<[keyof Policy, unknown]>([
  ['usage_in_stream', 'always'],
  ['response_model', 'engine'],
  ['max_n', 2],
  ['max_stop', null],
  ['unknown_fields', 'reject'],
  ['checked_fields', 'all'],
  ['reasoning_default', 'engine'],
  ['reasoning_field', 'reasoning'],
  ['content', 'optional'],
  ['omitted_sampling', 'one'],
  ['reasoning_content_elsewhere', 'reject'],
])('§4 policy.%s overrides the preset, and only itself', (field, value) => {
  const preset = resolvePolicy('springboards', {});
  expect(preset[field]).not.toEqual(value);
  expect(resolvePolicy('springboards', policySchema.parse({ [field]: value }))).toEqual({ ...preset, [field]: value });
});

test.each([
  { max_n: 0 },
  { max_n: 1.5 },
  { max_stop: 0 },
  { usage_in_stream: 'never' },
  { typo: 1 },
  { content: null },
])('§2 a policy of %j is a fault of the entry', (policy) => {
  expect(policySchema.safeParse(policy).success).toBe(false);
});
