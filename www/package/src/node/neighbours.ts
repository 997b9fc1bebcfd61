import { readdirSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { withNeighbours as servedNeighbours } from '../neighbours.js';
import type { WireSource } from '../source.js';

/** How exporters call the weights beside an ONNX model, behind its own name. */
const WEIGHTS = /^[._]data([._]?\d+)?$/;

/** The files that a model is loaded with: those beside it on the disk that belong to it, where no file is given. */
export function withNeighbours(model: WireSource, given: Record<string, WireSource>): Record<string, WireSource> {
  const known = servedNeighbours(model, given);
  if (!('url' in model) || !model.url.startsWith('file:') || Object.keys(known).length > 0) return known;
  const path = fileURLToPath(model.url);
  const [folder, own] = [dirname(path), basename(path)];
  const weights = namesIn(folder).filter((name) => name.startsWith(own) && WEIGHTS.test(name.slice(own.length)));
  return Object.fromEntries(weights.map((name) => [name, { url: pathToFileURL(join(folder, name)).href }]));
}

function namesIn(folder: string): string[] {
  try {
    return readdirSync(folder);
  } catch {
    // Reading the model says what is wrong.
    return [];
  }
}
