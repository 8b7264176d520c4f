// Figures that a reader may want to see; printed only when the binding TURNPIKE_FIGURES is set.

import { env } from 'cloudflare:workers';

/** Prints lines, if figures are wanted. */
export function printFigures(...lines: readonly string[]): void {
  // oxlint-disable-next-line no-console
  if ('TURNPIKE_FIGURES' in env) console.info(lines.join('\n'));
}
