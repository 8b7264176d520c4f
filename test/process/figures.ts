// Figures that a closing note quotes: printed only when TURNPIKE_FIGURES is set, never asserted on.

/** Prints a line of figures. */
export function printFigures(line: string): void {
  // oxlint-disable-next-line no-console -- printing is what it is for
  if (process.env['TURNPIKE_FIGURES'] !== undefined) console.info(line);
}
