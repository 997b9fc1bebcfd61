import { KilimError } from 'kilim';

/** Bytes of the largest file of labels. */
const LARGEST = 4_000_000;

type Json = null | string | number | boolean | Json[] | { [key: string]: Json };

/** The names in JSON by their numbers: a list, `{"0": "cat"}`, `{"cat": 0}`, or a `config.json` with `id2label`. */
function ofJson(json: Json): string[] | undefined {
  if (Array.isArray(json)) return json.every((item) => typeof item === 'string') ? (json as string[]) : undefined;
  if (json === null || typeof json !== 'object') return undefined;
  if (json['id2label']) return ofJson(json['id2label']);
  const entries = Object.entries(json);
  const names: string[] = [];
  for (const [key, value] of entries) {
    const [number, name] = typeof value === 'number' ? [value, key] : [Number(key), Array.isArray(value) ? value.at(-1) : value];
    if (!Number.isInteger(number) || number < 0 || number > 1e6 || typeof name !== 'string') return undefined;
    names[number] = name;
  }
  return entries.length > 0 ? names : undefined;
}

/** The names in a text: one a line, with its number in front of it or without. */
function ofLines(text: string): string[] {
  const lines = text.split(/\r?\n/).filter((line) => line.trim() !== '');
  const numbered = lines.map((line) => /^\s*(\d+)\s*[:,;\t ]\s*(.+)$/.exec(line));
  if (!numbered.every((match) => match)) return lines.map((line) => line.trim());
  const names: string[] = [];
  for (const match of numbered) {
    const number = Number(match?.[1]);
    if (number <= 1e6) names[number] = (match?.[2] ?? '').trim();
  }
  return names;
}

/**
 * Reads a file of labels: text, CSV or JSON.
 * @throws KilimError `INVALID_VALUE` for what is none, `LIMIT` where it is too large.
 */
export async function readLabels(file: File): Promise<string[]> {
  if (file.size > LARGEST) throw new KilimError('LIMIT', `${file.name} is too large for a file of labels`, { got: `${file.size} bytes` });
  const text = (await file.text()).replace(/^\uFEFF/, '');
  if (!/^\s*[[{]/.test(text)) return ofLines(text);
  let names: string[] | undefined;
  try {
    names = ofJson(JSON.parse(text) as Json);
  } catch (error) {
    throw new KilimError('INVALID_VALUE', `${file.name} is no JSON: ${error}`, {}, error);
  }
  if (!names)
    throw new KilimError('INVALID_VALUE', `${file.name} has no labels`, { expected: 'a list of names, or an object of numbers and names' });
  return names;
}
