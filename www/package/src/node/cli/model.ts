import { readdir } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import { load } from '../../index.js';
import type { LoadOptions, Session } from '../../index.js';

/** Loads a model for a look at it, with the files beside it whose names begin with its own: weights, as exporters call them. */
export async function openModel(model: string, options: LoadOptions = {}): Promise<Session> {
  const [folder, own] = [dirname(model), basename(model)];
  const beside = (await readdir(folder)).filter((name) => name.startsWith(own) && name !== own);
  const externalData = Object.fromEntries(beside.map((name) => [name, join(folder, name)]));
  return load(model, { backends: ['cpu'], ...(beside.length > 0 && { externalData }), ...options });
}
