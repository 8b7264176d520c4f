// Reads one gauge out of a Prometheus text (exposition format 0.0.4), summed over its series. Everything else in the text
// is passed over. It knows no engine.

/**
 * The sum of a gauge's series as a whole number; null when there is none, or when one is no count (NaN, negative).
 *
 * @param part labels of series that are parts of another one, and must not be counted twice
 */
export function readGauge(text: string, name: string, part?: RegExp): number | null {
  let sum: number | null = null;
  for (const line of text.split('\n')) {
    if (!line.startsWith(name)) continue;
    const series = SERIES.exec(line.slice(name.length));
    if (series === null || part?.test(series[1] ?? '') === true) continue;
    const value = Number(series[2]);
    if (!Number.isFinite(value) || value < 0) return null;
    sum = (sum ?? 0) + value;
  }
  return sum === null ? null : Math.round(sum);
}

/** What follows the name: labels, whose quoted values may hold anything, the value, and a timestamp if any. */
const SERIES = /^(\{(?:[^"}]|"(?:[^"\\]|\\.)*")*\})?[ \t]+(\S+)(?:[ \t]+-?\d+)?\s*$/;
