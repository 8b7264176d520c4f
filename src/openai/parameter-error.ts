// Translates a failed zod parse of request fields into the error of SPEC §3: code, `param` path, OpenAI's wording.

import type * as z from 'zod';
import { type GatewayError, type ParameterCode } from '../core/errors.ts';

type Issue = z.core.$ZodIssue;

/** Fields whose bounds are those of an integer, not of a decimal. */
const INTEGER_FIELDS = new Set([
  'max_tokens',
  'max_completion_tokens',
  'max_output_tokens',
  'n',
  'top_logprobs',
  'logprobs',
  'seed',
]);

/**
 * The error for the first thing wrong with `input`.
 *
 * @param at Where in `input` the value stands that was parsed; absent when it is all of it.
 */
export function toParameterError(error: z.ZodError, input: unknown, at: readonly PropertyKey[] = []): GatewayError {
  const first = error.issues[0];
  if (first === undefined) return parameterError('invalid_value', '', 'The request is invalid.');
  const issue = unwrapUnion(first);
  return toError({ ...issue, path: [...at, ...issue.path] }, input);
}

/** Builds an `invalid_parameter` error. */
export function parameterError(code: ParameterCode, param: string, message: string): GatewayError {
  return { kind: 'invalid_parameter', code, param, message };
}

/** A required field that is absent or null. */
export function missingParameter(param: string): GatewayError {
  return parameterError('missing_required_parameter', param, `Missing required parameter: '${param}'.`);
}

/** A field that the model cannot serve. */
export function unsupportedParameter(param: string): GatewayError {
  const message = `Unsupported parameter: '${param}' is not supported with this model.`;
  return parameterError('unsupported_parameter', param, message);
}

/** A value that the model or the endpoint does not serve, although it serves others. */
export function unsupportedValue(param: string, value: unknown): GatewayError {
  const text = (typeof value === 'string' ? value : JSON.stringify(value)).slice(0, 64);
  const message = `Unsupported value: '${param}' does not support '${text}' with this model.`;
  return parameterError('unsupported_value', param, message);
}

/** How much of a name that the client chose a path repeats. */
const NAME_LENGTH_MAX = 64;

/** `messages[0].role`, as OpenAI writes a path. */
export function toParamPath(path: readonly PropertyKey[]): string {
  return path.reduce<string>((text, part) => {
    if (typeof part === 'number') return `${text}[${part}]`;
    const name = String(part).slice(0, NAME_LENGTH_MAX);
    return text === '' ? name : `${text}.${name}`;
  }, '');
}

/** Of a union's branches the one that got furthest says best what is wrong; one of another type says nothing. */
function unwrapUnion(issue: Issue): Issue {
  if (issue.code !== 'invalid_union') return issue;
  const inner = issue.errors.map((branch) => branch[0]).filter((branch) => branch !== undefined);
  const fitting = inner.filter((branch) => branch.path.length > 0 || branch.code !== 'invalid_type');
  const deepest = fitting.toSorted((left, right) => right.path.length - left.path.length)[0];
  return deepest === undefined ? issue : unwrapUnion({ ...deepest, path: [...issue.path, ...deepest.path] });
}

function toError(issue: Issue, input: unknown): GatewayError {
  const param = toParamPath(issue.path);
  const value = readPath(input, issue.path);
  if (value === undefined || value === null) return missingParameter(param);
  switch (issue.code) {
    case 'too_small':
    case 'too_big':
      return toBoundError(issue, param, value);
    case 'invalid_value': {
      const wanted = issue.values.map((allowed) => `'${String(allowed)}'`).join(', ');
      if (typeof value !== 'string') return invalidType(param, 'a string', value);
      return parameterError(
        'invalid_value',
        param,
        `Invalid value: '${value.slice(0, 64)}'. Supported values are: ${wanted}.`,
      );
    }
    case 'invalid_type':
      if (isNumeric(issue.expected) && typeof value === 'number' && Math.abs(value) === Infinity) {
        return toRangeError(issue, value < 0, 'a number that a double can hold', value);
      }
      return invalidType(param, nameExpected(issue.expected), value);
    case 'invalid_union':
      return invalidType(param, 'one of the documented types', value);
    case 'custom':
      // The one rule beyond a type is that of a whole number of any size.
      if (INTEGER_FIELDS.has(String(issue.path.at(-1)))) return invalidType(param, 'an integer', value);
      return parameterError('invalid_value', param, `Invalid value for '${param}'.`);
    default:
      return parameterError('invalid_value', param, `Invalid value for '${param}'.`);
  }
}

function toBoundError(
  issue: z.core.$ZodIssueTooSmall | z.core.$ZodIssueTooBig,
  param: string,
  value: unknown,
): GatewayError {
  const below = issue.code === 'too_small';
  const bound = issue.code === 'too_small' ? issue.minimum : issue.maximum;
  if (issue.origin === 'array') {
    return below
      ? parameterError('empty_array', param, `Invalid '${param}': empty array. Expected at least ${bound} element.`)
      : parameterError(
          'array_above_max_length',
          param,
          `Invalid '${param}': array too long. Expected at most ${bound} elements.`,
        );
  }
  if (issue.origin === 'string') {
    return below
      ? parameterError('invalid_value', param, `Invalid '${param}': empty string.`)
      : parameterError(
          'string_above_max_length',
          param,
          `Invalid '${param}': string too long. Expected at most ${bound} characters.`,
        );
  }
  const relation = below ? (issue.inclusive === false ? '>' : '>=') : issue.inclusive === false ? '<' : '<=';
  return toRangeError(issue, below, `a value ${relation} ${bound}`, value);
}

function toRangeError({ path }: Issue, below: boolean, expected: string, value: unknown): GatewayError {
  const param = toParamPath(path);
  const kind = INTEGER_FIELDS.has(String(path.at(-1))) ? 'integer' : 'decimal';
  return parameterError(
    below ? `${kind}_below_min_value` : `${kind}_above_max_value`,
    param,
    `Invalid '${param}': ${kind} ${below ? 'below minimum' : 'above maximum'} value. ` +
      `Expected ${expected}, but got ${String(value)} instead.`,
  );
}

function isNumeric(expected: string): boolean {
  return expected === 'number' || expected === 'int';
}

/** A value of another type than the field's. */
export function invalidType(param: string, expected: string, value: unknown): GatewayError {
  const message = `Invalid type for '${param}': expected ${expected}, but got ${nameActual(value)} instead.`;
  return parameterError('invalid_type', param, message);
}

function nameExpected(expected: string): string {
  if (expected === 'int') return 'an integer';
  if (expected === 'record') return 'an object';
  return /^[aeio]/.test(expected) ? `an ${expected}` : `a ${expected}`;
}

function nameActual(value: unknown): string {
  if (Array.isArray(value)) return 'an array';
  if (typeof value === 'number') return Number.isInteger(value) ? 'an integer' : 'a decimal';
  return typeof value === 'object' ? 'an object' : `a ${typeof value}`;
}

function readPath(input: unknown, path: readonly PropertyKey[]): unknown {
  let value = input;
  for (const part of path) {
    if (typeof value !== 'object' || value === null) return undefined;
    value = Object.hasOwn(value, part) ? Reflect.get(value, part) : undefined;
  }
  return value;
}
