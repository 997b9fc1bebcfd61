import { basename } from 'node:path';
import { setFlagsFromString } from 'node:v8';
import { compileBinary } from '../../binary.js';
import { detectVariant } from '../../detect.js';
import type { Variant } from '../../detect.js';
import { absolute } from '../../fetch.js';
import { importersOf, registerImporter } from '../../importers.js';
import { createLocalEngine } from '../../local.js';
import { withNeighbours } from '../../neighbours.js';
import type { Engine, Loaded } from '../../protocol.js';

/** The words of a list that an option gives. */
export const listOf = (text: string | undefined, fallback: string): string[] => (text ?? fallback).split(',').filter((word) => word !== '');

/**
 * Has models read that these modules know, each with the importer that a page registers. What a format is called, the module's name says.
 * @throws KilimError `INVALID_VALUE` for a name that is no id.
 */
export function useImporters(files: readonly string[]): void {
  for (const file of files) registerImporter(basename(file).replace(/\..*$/, ''), absolute(file));
}

/** A model that is loaded for a look at it, on a runtime of its own that takes the parts that it needs. */
export interface Opened {
  engine: Engine;
  loaded: Loaded;
}

/** Builds that compute on the thread that has the session, which are looked at here. */
export type Alone = Exclude<Variant, 'threads'>;

/** Loads a model by a build, with the files beside it that belong to it. */
export async function openModel(model: string, build: Alone = 'simd'): Promise<Opened> {
  const source = { url: absolute(model).href };
  // Node 20 knows the instructions by this flag alone.
  if (build === 'relaxed' && detectVariant() === 'simd') setFlagsFromString('--experimental-wasm-relaxed-simd');
  const engine = await createLocalEngine(build, []);
  // A binary that is compiled anew has a runtime that no other model uses.
  const core = compileBinary(() => new URL(`./kilim.${build}.wasm`, import.meta.url));
  engine.start(core.then((module) => ({ module }))).catch(() => undefined);
  const importers = await importersOf(undefined);
  const request = {
    own: false,
    source,
    external: withNeighbours(source, {}),
    ...(importers && { importers: { by: importers.by, modules: importers.modules } }),
    fileBytes: Infinity,
    painter: '',
    options: { backends: ['cpu' as const] },
  };
  return { engine, loaded: await engine.load(request, () => undefined) };
}
