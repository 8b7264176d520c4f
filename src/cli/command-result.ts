// What a command has to say, as data for programs and as text for people; and the reading of options that several commands
// share. Nothing here prints.

import Table from 'cli-table3';
import { InvalidArgumentError } from 'commander';
import type { PartialLimits } from '../core/api-key.ts';

/** What a command came to. `failed`: it ran, and what it found is wrong (exit code 1). */
export type CommandResult = { readonly data: unknown; readonly text: string; readonly failed?: boolean };

/** A table without lines around it, each column as wide as it must be. */
export function toTable(head: readonly string[], rows: readonly (readonly (string | number)[])[]): string {
  const none = { mid: '', 'top-mid': '', 'left-mid': '', 'mid-mid': '', 'right-mid': '', 'bottom-mid': '' };
  const sides = { top: '', 'top-left': '', 'top-right': '', bottom: '', 'bottom-left': '', 'bottom-right': '' };
  const table = new Table({
    head: [...head],
    chars: { ...none, ...sides, left: '', right: '', middle: '  ' },
    style: { head: [], border: [], 'padding-left': 0, 'padding-right': 0 },
  });
  for (const row of rows) table.push(row.map(String));
  return table
    .toString()
    .split('\n')
    .map((line) => line.trimEnd())
    .join('\n');
}

/** A number with its noun. */
export function writeCount(count: number, noun: string): string {
  return `${count} ${noun}${count === 1 ? '' : 's'}`;
}

/** `a,b,c` as a list; empty parts are none. */
export function parseList(text: string): readonly string[] {
  return text.split(',').flatMap((part) => (part.trim() === '' ? [] : [part.trim()]));
}

/** A limit: a whole number, or `unlimited`. */
export function parseLimit(text: string): number | null {
  if (text === 'unlimited') return null;
  if (!/^\d{1,10}$/.test(text) || Number(text) > 1_000_000_000) {
    throw new InvalidArgumentError('expected a whole number up to 1000000000, or unlimited');
  }
  return Number(text);
}

/** A time in ISO 8601, or a day; as ISO 8601 in UTC. */
export function parseTime(text: string): string {
  const timeMs = Date.parse(text);
  if (!/^\d{4}-\d{2}-\d{2}/.test(text) || Number.isNaN(timeMs)) {
    throw new InvalidArgumentError('expected a time such as 2027-01-01 or 2027-01-01T12:00:00Z');
  }
  return new Date(timeMs).toISOString();
}

const UNITS: Readonly<Record<string, number>> = { s: 1000, m: 60_000, h: 3_600_000, d: 86_400_000 };

/** A span such as 90s, 15m, 24h or 7d, in milliseconds. */
export function parseSpan(text: string): number {
  const [, count = '', unit = ''] = /^(\d{1,6})([smhd])$/.exec(text) ?? [];
  const unitMs = UNITS[unit];
  if (unitMs === undefined) throw new InvalidArgumentError('expected a span such as 90s, 15m, 24h or 7d');
  return Number(count) * unitMs;
}

export type LimitOptions = {
  readonly rpm?: number | null;
  readonly tpm?: number | null;
  readonly concurrency?: number | null;
};

/** The limits that were named. */
export function pickLimits({ rpm, tpm, concurrency }: LimitOptions): PartialLimits {
  return {
    ...(rpm === undefined ? {} : { rpm }),
    ...(tpm === undefined ? {} : { tpm }),
    ...(concurrency === undefined ? {} : { concurrency }),
  };
}

/** Limits in a few words. */
export function writeLimits(limits: PartialLimits | undefined): string {
  const named = Object.entries(limits ?? {}).map(([name, value]) => `${name} ${value ?? 'unlimited'}`);
  return named.length === 0 ? '' : named.join(', ');
}
