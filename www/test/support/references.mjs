// The cases of tests/references: an archive and an index of each kind.
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { repository } from './folders.mjs';
import { entries } from './zip.mjs';

const folder = join(repository, 'tests', 'references');

/** The kinds that a page runs; in those of `ml` maps go in and out, those of `speech` are pairs of models, those of `whisper` both of a pair in one file,
 * and `ggml` has what unit tests read. */
export const KINDS = readdirSync(folder)
  .filter((name) => name.endsWith('.json') && !['ggml.json', 'ml.json', 'speech.json', 'whisper.json'].includes(name))
  .map((name) => name.replace('.json', ''));

/** The bytes of every file of one kind's cases by its path, `index.json` among them. */
export function references(kind) {
  return entries(readFileSync(join(folder, `${kind}.zip`))).set('index.json', readFileSync(join(folder, `${kind}.json`)));
}
