// `turnpike doctor`: looks at a whole setup, part by part, and says of each fault what mends it. It changes nothing, and a
// part that cannot be looked at is a finding of its own.

import type { CommandResult } from './command-result.ts';
import { toReason } from './start-error.ts';

/** One thing looked at. `fix`: what to do about it; null when it is well. */
export type Finding = { readonly what: string; readonly detail: string; readonly fix: string | null };

/** A part of the setup. */
export type Check = { readonly name: string; readonly look: () => Promise<readonly Finding[]> };

/** A finding that all is well. */
export function wellAs(what: string, detail: string): Finding {
  return { what, detail, fix: null };
}

/** A fault and its fix. */
export function faultOf(what: string, detail: string, fix: string): Finding {
  return { what, detail, fix };
}

/** Looks at all parts, in order. */
export async function runDoctor(checks: readonly Check[]): Promise<CommandResult> {
  const findings: Finding[] = [];
  for (const { name, look } of checks) {
    try {
      findings.push(...(await look()));
    } catch (error) {
      findings.push(faultOf(name, toReason(error), 'mend this first: what depends on it was not looked at'));
    }
  }
  const faults = findings.filter(({ fix }) => fix !== null).length;
  const lines = findings.map(({ what, detail, fix }) =>
    fix === null ? `✓ ${what}: ${detail}` : `✗ ${what}: ${detail}\n    → ${fix}`,
  );
  const sum = faults === 0 ? 'all is well' : `${faults} ${faults === 1 ? 'fault' : 'faults'}`;
  return { data: { faults, findings }, text: [...lines, '', sum].join('\n'), failed: faults > 0 };
}
