// Money to the unit: against rational arithmetic in BigInt, on random usages and at the halves.

import { describe, expect, test } from 'vitest';
import {
  parseRate,
  parseUsd,
  type Rates,
  toAffordableOutput,
  toCostNanoUsd,
  toHoldNanoUsd,
  toUsd,
} from '../../src/core/money.ts';
import { buildUsage, NO_USAGE, type Usage } from '../../src/core/usage.ts';
import { createSeededRandom, type SeededRandom } from './seeded-random.ts';

/** A decimal string as a fraction over 10^6. */
function toMillionths(decimal: string): bigint {
  const [whole = '', part = ''] = decimal.split('.');
  return BigInt(whole + part.padEnd(6, '0'));
}

/** tokens × USD per million as a fraction over 10^12 USD, then half up to nano-USD by quotient and remainder. */
function oracle(usage: Usage, rates: Rates): bigint {
  const plain = usage.input_tokens - usage.cached_input_tokens - usage.cache_write_tokens;
  const numerator =
    BigInt(plain) * toMillionths(rates.input) +
    BigInt(usage.cached_input_tokens) * toMillionths(rates.cached_input) +
    BigInt(usage.cache_write_tokens) * toMillionths(rates.cache_write) +
    BigInt(usage.output_tokens) * toMillionths(rates.output);
  const [nano, rest] = [numerator / 1000n, numerator % 1000n];
  return rest * 2n >= 1000n ? nano + 1n : nano;
}

function randomRate(random: SeededRandom): string {
  const digits = random.int(0, 6);
  const whole = random.int(0, random.pick([0, 9, 999]));
  return digits === 0 ? String(whole) : `${whole}.${String(random.int(0, 10 ** digits - 1)).padStart(digits, '0')}`;
}

describe('toCostNanoUsd', () => {
  test('§9 100,000 random usages cost what rational arithmetic says, to the unit', () => {
    const random = createSeededRandom(9);
    for (let round = 0; round < 100_000; round += 1) {
      const input = random.int(0, random.pick([9, 40_000, 10_000_000]));
      const cached = random.int(0, input);
      const usage = buildUsage({
        input,
        cached,
        cacheWrite: random.int(0, input - cached),
        output: random.int(0, random.pick([9, 9000, 10_000_000])),
      });
      const rates = {
        input: randomRate(random),
        cached_input: randomRate(random),
        cache_write: randomRate(random),
        output: randomRate(random),
      };
      const cost = toCostNanoUsd(usage, rates);
      if (BigInt(cost) !== oracle(usage, rates)) expect.fail(`${JSON.stringify({ usage, rates })} cost ${cost}`);
    }
  });

  test.each([
    [499, 0],
    [500, 1],
    [501, 1],
    [1499, 1],
    [1500, 2],
    [2500, 3],
  ])('§9 %i pico-USD is rounded half up to %i nano-USD', (tokens, nano) => {
    const rates = { input: '0.000001', cached_input: '0', cache_write: '0', output: '0' };
    expect(toCostNanoUsd(buildUsage({ input: tokens, output: 0 }), rates)).toBe(nano);
  });

  test('§9 rounded once per receipt, not once per part: three times 0.4 nano-USD is 1', () => {
    const rates = { input: '0.0004', cached_input: '0.0004', cache_write: '0', output: '0.0004' };
    expect(toCostNanoUsd(buildUsage({ input: 2, cached: 1, output: 1 }), rates)).toBe(1);
  });

  test('§9 the example receipt: 12 in and 8 out at 0.15 and 0.60', () => {
    const rates = { input: '0.15', cached_input: '0.075', cache_write: '0.15', output: '0.60' };
    expect(toUsd(toCostNanoUsd(buildUsage({ input: 12, output: 8 }), rates))).toBe('0.000006600');
  });

  test('§9 cached input is priced in place of input, reasoning is not priced again', () => {
    const rates = { input: '2', cached_input: '1', cache_write: '4', output: '10' };
    const usage = buildUsage({ input: 10, cached: 4, cacheWrite: 3, output: 5, reasoning: 5 });
    expect(toCostNanoUsd(usage, rates)).toBe((3 * 2 + 4 * 1 + 3 * 4 + 5 * 10) * 1000);
    expect(toCostNanoUsd(NO_USAGE, rates)).toBe(0);
  });

  test('§9 rates that were never validated throw instead of costing something else', () => {
    const rates = { input: 'x', cached_input: '0', cache_write: '0', output: '0' };
    expect(() => toCostNanoUsd(NO_USAGE, rates)).toThrow(RangeError);
  });
});

describe('holds', () => {
  const rates = { input: '2', cached_input: '1', cache_write: '4', output: '10' };

  test('§5 input at the highest of its rates, output for each choice, rounded up', () => {
    expect(toHoldNanoUsd({ inputTokensMax: 10, outputTokensMax: 5, choices: 3 }, rates)).toBe(
      (10 * 4 + 15 * 10) * 1000,
    );
    const fine = { input: '0.000001', cached_input: '0', cache_write: '0', output: '0' };
    expect(toHoldNanoUsd({ inputTokensMax: 1, outputTokensMax: 9, choices: 1 }, fine)).toBe(1);
    expect(toHoldNanoUsd({ inputTokensMax: 0, outputTokensMax: 9, choices: 1 }, fine)).toBe(0);
  });

  test('§5 what cannot be counted exactly is more than any balance', () => {
    const dear = { ...rates, output: '999999999' };
    const bounds = { inputTokensMax: 1, outputTokensMax: 1e9, choices: 128 };
    expect(toHoldNanoUsd(bounds, dear)).toBe(Number.MAX_SAFE_INTEGER);
  });

  test('§5 20,000 random requests: the hold covers every usage within the bounds, and a limit bought is the largest', () => {
    const random = createSeededRandom(5);
    for (let round = 0; round < 20_000; round += 1) {
      const bounds = {
        inputTokensMax: random.int(0, 5000),
        outputTokensMax: random.int(1, 5000),
        choices: random.int(1, 3),
      };
      const some = {
        input: randomRate(random),
        cached_input: randomRate(random),
        cache_write: randomRate(random),
        output: randomRate(random),
      };
      const hold = toHoldNanoUsd(bounds, some);
      const input = random.int(0, bounds.inputTokensMax);
      const cached = random.int(0, input);
      const cacheWrite = random.int(0, input - cached);
      const output = random.int(0, bounds.outputTokensMax * bounds.choices);
      const cost = toCostNanoUsd(buildUsage({ input, cached, cacheWrite, output }), some);
      if (cost > hold) expect.fail(`${JSON.stringify({ bounds, some, input, output })} cost ${cost}, held ${hold}`);
      const balance = random.int(0, hold);
      const limit = toAffordableOutput(balance, bounds, some);
      const holdFor = (tokens: number): number => toHoldNanoUsd({ ...bounds, outputTokensMax: tokens }, some);
      const fits = (tokens: number): boolean => holdFor(tokens) <= balance;
      const largest = limit === null ? !fits(1) : fits(limit) && (limit === bounds.outputTokensMax || !fits(limit + 1));
      if (!largest) expect.fail(`${JSON.stringify({ bounds, some, balance })} bought ${limit}`);
    }
  });
});

test.each([
  ['5', 5_000_000_000],
  ['+5', 5_000_000_000],
  ['-2.5', -2_500_000_000],
  ['0.000000001', 1],
  ['-0', 0],
  ['9007199.254740991', Number.MAX_SAFE_INTEGER],
])('§5 a grant of %s USD is %i nano-USD', (text, nano) => {
  expect(parseUsd(text)).toBe(nano);
});

test.each([
  '',
  '5 USD',
  '$5',
  '1e3',
  '1,000',
  '.5',
  '5.',
  '0.0000000001',
  '9007199.254740992',
  '99999999',
  ' 5',
  '--5',
])('§5 %j is no amount', (text) => {
  expect(parseUsd(text)).toBeNull();
});

test.each([
  ['0', 0n],
  ['0.15', 150_000n],
  ['0.000001', 1n],
  ['1', 1_000_000n],
  ['12.5', 12_500_000n],
  ['999999999.999999', 999_999_999_999_999n],
])('§2 the price %s is %s pico-USD a token', (text, pico) => {
  expect(parseRate(text)).toBe(pico);
});

test.each(['', '.5', '1.', '-1', '+1', '1e3', '0.0000001', '1,5', ' 1', '1 ', '0x10', 'NaN', '1.2.3', '1234567890'])(
  '§2 %j is no price',
  (text) => {
    expect(parseRate(text)).toBeNull();
  },
);

test.each([
  [0, '0.000000000'],
  [1, '0.000000001'],
  [6600, '0.000006600'],
  [999_999_999, '0.999999999'],
  [1_000_000_000, '1.000000000'],
  [12_345_678_901, '12.345678901'],
  [-6600, '-0.000006600'],
  [-1_500_000_000, '-1.500000000'],
])('§9 %i nano-USD is written %s', (nano, text) => {
  expect(toUsd(nano)).toBe(text);
});
