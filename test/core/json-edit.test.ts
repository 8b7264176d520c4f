// Edits of a JSON text by field: what is not edited stays to the letter, and the cost is linear.

import { describe, expect, test } from 'vitest';
import {
  applyJsonEdits,
  checkJsonDepth,
  editMembers,
  findDuplicateKey,
  readJsonPieces,
} from '../../src/core/json-edit.ts';
import { createSeededRandom, type SeededRandom } from './seeded-random.ts';
import { countStringWork } from './string-work.ts';

type Change = readonly [key: string, value: string | null];

function edit(text: string, ...changes: readonly Change[]): string {
  return applyJsonEdits(text, editMembers(text, text.indexOf('{'), readJsonPieces(text, 0), new Map(changes)));
}

describe('editMembers', () => {
  const odd =
    '{"seed":9007199254740993 ,\t"x":1e400,\r\n "y" : 1.0,"s":"\\u0041\\/\\n🙂\\ud83d", "n":-0 ,"e":{ }, "m":"a"}';
  test.each<[string, readonly Change[], string]>([
    ['nothing', [], odd],
    ['a value set', [['m', '"b"']], odd.replace('"a"', '"b"')],
    ['a value set in the middle', [['y', '2']], odd.replace('1.0', '2')],
    ['the last removed', [['m', null]], odd.replace(', "m":"a"', '')],
    ['the first removed', [['seed', null]], odd.replace('"seed":9007199254740993 ,', '')],
    ['one in the middle removed', [['x', null]], odd.replace('\t"x":1e400,', '')],
    ['one added', [['k', 'true']], odd.replace(/}$/, ',"k":true}')],
    [
      'set, removed and added at once',
      [
        ['m', '1'],
        ['n', null],
        ['k', '[]'],
      ],
      odd.replace(' "n":-0 ,', '').replace('"a"', '1').replace(/}$/, ',"k":[]}'),
    ],
    ['an absent one removed', [['zz', null]], odd],
  ])('§4 untouched bytes stay to the letter: %s', (_name, changes, expected) => {
    expect(edit(odd, ...changes)).toBe(expected);
  });

  test.each<[string, string, readonly Change[], string]>([
    ['the only one removed', '{"a":1}', [['a', null]], '{}'],
    [
      'the only one replaced by another',
      ' { "a" : 1 } ',
      [
        ['a', null],
        ['b', '2'],
      ],
      ' {"b":2} ',
    ],
    [
      'first two removed',
      '{"a":1,"b":2,"c":3}',
      [
        ['a', null],
        ['b', null],
      ],
      '{"c":3}',
    ],
    [
      'adjacent in the middle removed',
      '{"a":1,"b":2,"c":3,"d":4}',
      [
        ['b', null],
        ['c', null],
      ],
      '{"a":1,"d":4}',
    ],
    [
      'last two removed',
      '{"a":1, "b":2, "c":3}',
      [
        ['b', null],
        ['c', null],
      ],
      '{"a":1}',
    ],
    [
      'every other one removed',
      '{"a":1,"b":2,"c":3}',
      [
        ['a', null],
        ['c', null],
      ],
      '{"b":2}',
    ],
    [
      'all removed',
      '{ "a":1 , "b":2 }',
      [
        ['a', null],
        ['b', null],
      ],
      '{}',
    ],
    ['added to an empty object', '{ }', [['a', '1']], '{"a":1 }'],
    ['an escaped key', '{"mod\\u0065l":"x","b":1}', [['model', '"y"']], '{"mod\\u0065l":"y","b":1}'],
    ['an escaped key removed', '{"mod\\u0065l":"x","b":1}', [['model', null]], '{"b":1}'],
    ['a key twice: both', '{"a":1,"b":2,"a":3}', [['a', '4']], '{"a":4,"b":2,"a":4}'],
    ['a key twice: both removed', '{"a":1,"b":2,"a":3}', [['a', null]], '{"b":2}'],
    ['__proto__', '{"__proto__":{"a":1},"b":2}', [['__proto__', null]], '{"b":2}'],
    ['a name of Object.prototype is not there', '{"b":2}', [['constructor', '1']], '{"b":2,"constructor":1}'],
    ['an empty key', '{"":1,"b":2}', [['', '3']], '{"":3,"b":2}'],
    [
      'commas, braces and quotes inside a string',
      '{"a":"},{\\"b\\":[","b":1}',
      [['b', '2']],
      '{"a":"},{\\"b\\":[","b":2}',
    ],
    ['a backslash before the closing quote', '{"a":"\\\\","b":1}', [['b', '2']], '{"a":"\\\\","b":2}'],
    [
      'nested members of the same name',
      '{"o":{"a":1},"l":[{"a":2}],"a":3}',
      [['a', null]],
      '{"o":{"a":1},"l":[{"a":2}]}',
    ],
  ])('§4 %s', (_name, text, changes, expected) => {
    expect(edit(text, ...changes)).toBe(expected);
  });

  test('§4 2,000 random objects and edits: the meaning is the edit’s, every other value keeps its spelling', () => {
    for (let seed = 0; seed < 2000; seed += 1) {
      const random = createSeededRandom(seed);
      const members = Array.from({ length: random.int(0, 6) }, (_, at) => [`k${at}`, randomValue(random, 2)] as const);
      const text = `${space(random)}${object(random, members)}${space(random)}`;
      const changes = new Map<string, string | null>();
      for (const key of ['k0', 'k1', 'k2', 'k3', 'k4', 'k5', 'new']) {
        if (random.chance(0.4)) changes.set(key, random.chance(0.5) ? null : randomValue(random, 1));
      }
      const edited = edit(text, ...changes);
      const kept = members.filter(([key]) => changes.get(key) !== null);
      const added = [...changes].filter(([key, value]) => value !== null && !members.some(([name]) => name === key));
      const expected = [...kept.map(([key, value]) => [key, changes.get(key) ?? value]), ...added];
      const actual = readJsonPieces(edited, 0).map((piece) => [
        piece.key,
        edited.slice(piece.valueStart, piece.valueEnd),
      ]);
      if (JSON.stringify(actual) !== JSON.stringify(expected)) expect.fail(`seed ${seed}: ${text} → ${edited}`);
      expect(() => JSON.parse(edited) as unknown).not.toThrow();
    }
  });
});

function space(random: SeededRandom): string {
  return random.pick(['', '', ' ', '\n  ', '\t', '\r\n', ' \n ']);
}

function object(random: SeededRandom, members: readonly (readonly [string, string])[]): string {
  const texts = members.map(
    ([key, value]) =>
      `${space(random)}"${random.chance(0.2) ? key.replace('k', '\\u006b') : key}"${space(random)}:${space(random)}${value}${space(random)}`,
  );
  return `{${texts.join(',') || space(random)}}`;
}

function randomValue(random: SeededRandom, depth: number): string {
  const scalars = [
    '0',
    '-0.0',
    '1E+2',
    '9007199254740993',
    '1e400',
    'true',
    'null',
    '""',
    '"\\\\"',
    '"\\""',
    '"},"',
    '"\\\\\\\\\\\\"',
    '"\\\\\\\\\\""',
    '"\\ud800"',
    '"é🙂"',
    '"__proto__"',
  ];
  if (depth === 0 || random.chance(0.6)) return random.pick(scalars);
  const values = Array.from({ length: random.int(0, 3) }, () => randomValue(random, depth - 1));
  if (random.chance(0.5)) return `[${values.map((value) => space(random) + value).join(',')}]`;
  return object(
    random,
    values.map((value, at) => [`k${at}`, value]),
  );
}

describe('readJsonPieces', () => {
  test('elements of an array, with their spans', () => {
    const text = '[ {"a":[1,2]} ,"x", 3 ]';
    const values = readJsonPieces(text, 0).map((piece) => text.slice(piece.valueStart, piece.valueEnd));
    expect(values).toEqual(['{"a":[1,2]}', '"x"', '3']);
    expect(readJsonPieces('[]', 0)).toEqual([]);
    expect(readJsonPieces('"text"', 0)).toEqual([]);
  });

  test('a nested object from its own start', () => {
    const text = '{"o": {"b":1,"c":2},"d":3}';
    expect(readJsonPieces(text, text.indexOf(' {')).map(({ key }) => key)).toEqual(['b', 'c']);
  });
});

test.each([
  ['{"a":1,"b":2}', null],
  ['{"a":1,"a":2}', 'a'],
  ['{"model":1,"mod\\u0065l":2}', 'model'],
  ['{"__proto__":1,"__proto__":2}', '__proto__'],
  ['{"a":{"b":1},"b":2}', null],
  ['{"A":1,"a":2}', null],
])('§3 the key that %s has twice is %s', (text, key) => {
  expect(findDuplicateKey(readJsonPieces(text, 0))).toBe(key);
});

describe('checkJsonDepth', () => {
  test.each<[string, string, boolean]>([
    ['128 arrays', '['.repeat(128) + ']'.repeat(128), true],
    ['129 arrays', '['.repeat(129) + ']'.repeat(129), false],
    ['128 objects', '{"a":'.repeat(127) + '{}' + '}'.repeat(127), true],
    ['129 objects', '{"a":'.repeat(128) + '{}' + '}'.repeat(128), false],
    ['100,000 brackets', '['.repeat(100_000) + ']'.repeat(100_000), false],
    ['100,000 brackets in a string', `"${'['.repeat(100_000)}"`, true],
    ['100,000 side by side', `[${'[],'.repeat(100_000)}1]`, true],
    ['a quote in a string', `["\\"${'['.repeat(200)}"]`, true],
  ])('§3 nesting up to 128: %s', (_name, text, allowed) => {
    expect(checkJsonDepth(text, 128)).toBe(allowed);
  });
});

describe('cost', () => {
  const MIB = 1024 * 1024;
  test.each<[string, (bytes: number) => string]>([
    ['one string of backslashes', (bytes) => `{"a":"${'\\\\'.repeat(bytes / 2)}","b":1}`],
    ['one string of escaped quotes', (bytes) => `{"a":"${'\\"'.repeat(bytes / 2)}","b":1}`],
    ['odd runs of backslashes before quotes', (bytes) => `{"a":"${'\\\\\\\\\\\\\\"'.repeat(bytes / 8)}","b":1}`],
    ['many strings that end in backslashes', (bytes) => `{"a":[${'"\\\\\\\\",'.repeat(bytes / 7)}1],"b":1}`],
    [
      'many members',
      (bytes) => `{${Array.from({ length: bytes / 16 }, (_, at) => `"k${at}":"\\\\"`).join(',')},"b":1}`,
    ],
    ['white space', (bytes) => `{"a":${' '.repeat(bytes)}1,"b":1}`],
  ])('§10 linear, %s: five times the bytes, at most about five times the work', (_name, build) => {
    const [small, large] = [MIB, 5 * MIB].map((bytes) => {
      const text = build(bytes);
      return countStringWork(() => {
        checkJsonDepth(text, 128);
        edit(text, ['b', null]);
      });
    });
    expect(large! / small!).toBeLessThan(5.5);
    expect(large!).toBeLessThan(8 * 5 * MIB);
  });
});
