// Every request field × (good, wrong type, below, above, null, without the capability) × endpoint × preset where
// it matters (SPEC §3, §4), at the Worker's door: what passes is looked up in what the engine got.

import { reset } from 'cloudflare:test';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { addKey, prepare, UNLIMITED } from '../fixtures.ts';
import { call, callWithText, type Endpoint } from './call.ts';
import { printFigures } from './figures.ts';
import { ABSENT, putAt, readAt } from './field-path.ts';
import { type Bad, type Field, FIELD_TABLE, type Good, type Preset, PROMPT } from './field-table.ts';

const MODELS: Readonly<Record<Preset, string>> = {
  none: 'no-preset',
  boardwalk: 'support-agent',
  springboards: 'flint-alpha',
  boole: 'llama-3.3-70b-instruct',
};
const UNABLE = 'unlimited-model';
const UNREAD_UNABLE = 'unread-unable';

type Verdict =
  | { readonly type: 'sent'; readonly at: string; readonly value: unknown }
  | { readonly type: 'refused'; readonly code: string; readonly param: string };
type Row = {
  readonly endpoint: Endpoint;
  readonly model: string;
  readonly kind: string;
  readonly field: Field;
  readonly value: unknown;
  readonly verdict: Verdict;
};

const PROMPTS: Readonly<Record<Endpoint, string>> = { chat: 'messages', text: 'prompt', responses: 'input' };

let token = '';
beforeAll(async () => {
  await prepare();
  token = await addKey('fields', {}, UNLIMITED);
});
afterAll(reset);

const ROWS = FIELD_TABLE.flatMap(toRows);

describe.each([...new Set(ROWS.map(({ field }) => field.path))])('§3, §4 %s', (path) => {
  for (const row of ROWS.filter(({ field }) => field.path === path)) {
    it(toTitle(row), () => check(row));
  }
});

async function check({ endpoint, model, field, value, verdict }: Row): Promise<void> {
  const body = putAt(
    { model, messages: [{ role: 'user', content: 'Hi' }], prompt: 'Hi', input: 'Hi', ...field.beside },
    field.path,
    value,
  );
  const others = Object.entries(PROMPTS).filter(([name]) => name !== endpoint);
  const fields = { ...body, ...Object.fromEntries(others.map(([, name]) => [name, undefined])) };
  const { status, error, sent } = await call(token, endpoint, fields);
  if (verdict.type === 'refused') {
    expect([status, error['type'], error['code'], error['param']]).toEqual([
      400,
      'invalid_request_error',
      verdict.code,
      verdict.param,
    ]);
    expect(error['message']).toEqual(expect.any(String));
    expect(sent).toBeNull();
    return;
  }
  expect([status, error]).toEqual([200, {}]);
  expect(readAt(sent ?? {}, verdict.at)).toEqual(verdict.value);
  // Of a field that goes up under another name nothing stays behind.
  if (verdict.at !== field.path) expect(readAt(sent ?? {}, field.path)).toBe(ABSENT);
}

// JSON can spell numbers that no double holds: they are out of range, not of another type.
describe.each<[string, string, string, string?]>([
  ['temperature', '1e400', 'decimal_above_max_value'],
  ['top_p', '-1e400', 'decimal_below_min_value'],
  ['presence_penalty', '-1e999', 'decimal_below_min_value'],
  ['max_tokens', '1e400', 'integer_above_max_value'],
  ['max_completion_tokens', '-1e400', 'integer_below_min_value'],
  ['n', '1e400', 'integer_above_max_value'],
  ['logit_bias', '{"5":1e400}', 'decimal_above_max_value', 'logit_bias.5'],
  ['user', '1e400', 'invalid_type'],
])('§3 %s: %s', (path, value, code, param = path) => {
  it.each<[Endpoint, string]>([
    ['chat', '"messages":[{"role":"user","content":"x"}]'],
    ['text', '"prompt":"x"'],
  ])(`§3 %s: ${code}`, async (endpoint, input) => {
    const called = await callWithText(token, endpoint, `{"model":"no-preset",${input},"${path}":${value}}`);
    expect([called.status, called.error['code'], called.error['param']]).toEqual([400, code, param]);
  });
});

it('§3 of a name that is no name the param repeats no more than its head', async () => {
  const { error, text } = await call(token, 'chat', { model: 'no-preset', logit_bias: { ['k'.repeat(100_000)]: 'x' } });
  expect([error['code'], error['param']]).toEqual(['invalid_type', `logit_bias.${'k'.repeat(64)}`]);
  expect(text.length).toBeLessThan(1000);
});

it('issue 3: the table has its rows', () => {
  printFigures(`field table: ${FIELD_TABLE.length} fields, ${ROWS.length} rows`);
  expect(ROWS.length).toBeGreaterThan(150);
  const titles = ROWS.map(toTitle);
  expect(titles.filter((title, at) => titles.indexOf(title) !== at)).toEqual([]);
});

function toRows(field: Field): readonly Row[] {
  const models =
    field.model === undefined ? (field.presets ?? ['none']).map((preset) => MODELS[preset]) : [field.model];
  return field.on.flatMap((endpoint) => [
    ...models.flatMap((model) => toModelRows(field, endpoint, model)),
    ...(field.gated ?? []).map((bad) => toBadRow(field, endpoint, UNABLE, 'unable', bad)),
    ...(field.ungated ?? []).map((good) => toGoodRow(field, endpoint, UNABLE, 'asks for nothing', good)),
    ...(field.unread === true ? (field.gated ?? []) : []).map(([value]) =>
      toGoodRow(field, endpoint, UNREAD_UNABLE, 'unread and unable', [value]),
    ),
  ]);
}

function toModelRows(field: Field, endpoint: Endpoint, model: string): readonly Row[] {
  const listed = model === MODELS.springboards || model === MODELS.boole;
  const unread = field.unread === true && listed;
  const refused = (kind: string, list: readonly Bad[] = []): readonly Row[] =>
    list.map((bad) => {
      const [value] = bad;
      if (unread) return toGoodRow(field, endpoint, model, `${kind}, unread`, [value]);
      // §8: [] and {} are absent in a response's request, as null is; the model alone is looked up before.
      const isAbsent =
        endpoint === 'responses' && field.path !== 'model' && /^(?:\[\]|\{\})$/.test(JSON.stringify(value));
      return isAbsent && field.null !== undefined
        ? toNullRow(field, endpoint, model, field.null, value)
        : toBadRow(field, endpoint, model, kind, bad);
    });
  return [
    ...(field.good ?? []).map((good) => toGoodRow(field, endpoint, model, 'good', good)),
    ...refused('wrong', field.wrongType),
    ...refused('below', field.below),
    ...refused('above', field.above),
    ...(field.null === undefined ? [] : [toNullRow(field, endpoint, model, field.null)]),
  ];
}

function toNullRow(
  field: Field,
  endpoint: Endpoint,
  model: string,
  rule: NonNullable<Field['null']>,
  value: unknown = null,
): Row {
  if (rule === 'required') return toBadRow(field, endpoint, model, 'null', [value, 'missing_required_parameter']);
  const sent = rule === 'absent' ? ABSENT : rule.sent;
  return toGoodRow(field, endpoint, model, 'null', [value, sent]);
}

function toGoodRow(field: Field, endpoint: Endpoint, model: string, kind: string, good: Good): Row {
  const value = good.length === 1 ? good[0] : good[1];
  const at = field.sentAt ?? field.path;
  return { endpoint, model, kind, field, value: good[0], verdict: { type: 'sent', at, value } };
}

function toBadRow(field: Field, endpoint: Endpoint, model: string, kind: string, bad: Bad): Row {
  const [value, code, own = field.path] = bad;
  const param = own === PROMPT ? PROMPTS[endpoint] : own;
  return { endpoint, model, kind, field, value, verdict: { type: 'refused', code, param } };
}

/** What a row does, as a reader of the report sees it. */
function toTitle({ endpoint, model, kind, field, value, verdict }: Row): string {
  const beside = field.beside === undefined ? '' : ` beside ${JSON.stringify(field.beside).slice(0, 120)}`;
  const text = value === ABSENT ? ABSENT : (JSON.stringify(value) ?? '').slice(0, 100);
  const outcome = verdict.type === 'refused' ? verdict.code : 'passes';
  return `${endpoint}, ${model}, ${field.path} ${kind}: ${text}${beside} ${outcome}`;
}
