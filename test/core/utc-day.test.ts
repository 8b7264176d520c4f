// Days in UTC: which day a time lies in, and counting days over months, leap years and the change of clocks (SPEC §12).

import { expect, test } from 'vitest';
import { addDays, listDays, toDay, toDayStartMs } from '../../src/core/utc-day.ts';

test.each([
  ['2026-12-01T00:00:00.000Z', '2026-12-01'],
  ['2026-12-01T23:59:59.999Z', '2026-12-01'],
  ['2026-12-01T23:30:00.000-01:00', '2026-12-02'],
  ['1970-01-01T00:00:00.000Z', '1970-01-01'],
])('§12 %s lies in %s', (time, day) => {
  expect(toDay(Date.parse(time))).toBe(day);
  expect(toDayStartMs(day)).toBe(Date.parse(`${day}T00:00:00Z`));
});

test.each([
  ['2026-12-31', 1, '2027-01-01'],
  ['2028-02-28', 1, '2028-02-29'],
  ['2027-03-01', -1, '2027-02-28'],
  ['2026-03-29', 1, '2026-03-30'],
  ['2026-12-01', -400, '2025-10-27'],
  ['2026-12-01', 0, '2026-12-01'],
])('§12 %s and %i days is %s', (day, days, expected) => {
  expect(addDays(day, days)).toBe(expected);
});

test('§12 all days between two, both included; none backwards', () => {
  expect(listDays('2028-02-27', '2028-03-02')).toEqual([
    '2028-02-27',
    '2028-02-28',
    '2028-02-29',
    '2028-03-01',
    '2028-03-02',
  ]);
  expect(listDays('2026-12-01', '2026-12-01')).toEqual(['2026-12-01']);
  expect(listDays('2026-12-02', '2026-12-01')).toEqual([]);
});
