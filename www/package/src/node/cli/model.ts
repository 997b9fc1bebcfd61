import { readdir } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import { compileBinary } from '../../binary.js';
import { absolute } from '../../fetch.js';
import { createLocalEngine } from '../../local.js';
import { withNeighbours } from '../../neighbours.js';
import type { Engine, Loaded } from '../../protocol.js';
import type { WireSource } from '../../source.js';

/** A model that is loaded for a look at it, on a runtime of its own that takes the parts that it needs. */
export interface Opened {
  engine: Engine;
  loaded: Loaded;
}

/** How the weights beside a model are called by exporters, behind its own name. */
const WEIGHTS = /^[._]data([._]?\d+)?$/;

/** Loads a model, with the weights beside it. */
export async function openModel(model: string): Promise<Opened> {
  const [folder, own] = [dirname(model), basename(model)];
  const beside = (await readdir(folder)).filter((name) => name.startsWith(own) && WEIGHTS.test(name.slice(own.length)));
  const addressOf = (path: string): WireSource => ({ url: absolute(path).href });
  const external = Object.fromEntries(beside.map((name) => [name, addressOf(join(folder, name))]));
  const source = addressOf(model);
  const engine = await createLocalEngine('simd', []);
  // A binary that is compiled anew has a runtime that no other model uses.
  const core = compileBinary(() => new URL('./kilim.simd.wasm', import.meta.url));
  engine.start(core.then((module) => ({ module }))).catch(() => undefined);
  const request = {
    own: false,
    source,
    external: withNeighbours(source, external),
    fileBytes: Infinity,
    options: { backends: ['cpu' as const] },
  };
  return { engine, loaded: await engine.load(request, () => undefined) };
}
