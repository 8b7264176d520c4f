// Reads the two files that the operator may hand to `npm start`: KV entries for KEYS, and a catalog. It checks only that
// they are JSON of the right outer shape; what an entry means is the gateway's business.

import { readFileSync } from 'node:fs';

import { StartError, toReason } from './start-error.ts';

/**
 * Reads KV entries: an object value is stringified, a string is put verbatim.
 *
 * @throws StartError when the file cannot be read or is not such an object.
 */
export function readKeysFile(path: string): Record<string, string> {
  const { json } = readJsonFile('--keys', path);
  if (!isRecord(json)) throw new StartError(`--keys ${path}: must be a JSON object of KV entries`);
  const entries: Record<string, string> = {};
  for (const [key, value] of Object.entries(json)) {
    if (typeof value === 'string') entries[key] = value;
    else if (isRecord(value)) entries[key] = JSON.stringify(value);
    else throw new StartError(`--keys ${path}: the entry '${key}' is neither an object nor a string`);
  }
  return entries;
}

/**
 * Reads a catalog document as text, untouched.
 *
 * @throws StartError when the file cannot be read or is not JSON.
 */
export function readCatalogFile(path: string): string {
  return readJsonFile('--catalog', path).text;
}

function readJsonFile(option: string, path: string): { text: string; json: unknown } {
  try {
    const text = readFileSync(path, 'utf8');
    return { text, json: JSON.parse(text) };
  } catch (error) {
    throw new StartError(`${option} ${path}: ${toReason(error)}`);
  }
}

function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
