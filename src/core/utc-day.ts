// Days in UTC as `2026-12-01`: which day a time lies in, where a day begins, which days lie between two. Pure.

const DAY_MS = 24 * 3_600_000;

/** The day a time in Unix milliseconds lies in. */
export function toDay(timeMs: number): string {
  return new Date(timeMs).toISOString().slice(0, 10);
}

/** When a day begins, in Unix milliseconds. */
export function toDayStartMs(day: string): number {
  return Date.parse(`${day}T00:00:00.000Z`);
}

/** The day so many days later; earlier when negative. */
export function addDays(day: string, days: number): string {
  return toDay(toDayStartMs(day) + days * DAY_MS);
}

/** All days from the first to the last, both included; none when the last is the earlier. */
export function listDays(firstDay: string, lastDay: string): readonly string[] {
  const days: string[] = [];
  for (let day = firstDay; day <= lastDay; day = addDays(day, 1)) days.push(day);
  return days;
}
