import { compileBinary } from '../../binary.js';
import { absolute } from '../../fetch.js';
import { createLocalEngine } from '../../local.js';
import { withNeighbours } from '../../neighbours.js';
import type { Engine, Loaded } from '../../protocol.js';

/** A model that is loaded for a look at it, on a runtime of its own that takes the parts that it needs. */
export interface Opened {
  engine: Engine;
  loaded: Loaded;
}

/** Loads a model, with the files beside it that belong to it. */
export async function openModel(model: string): Promise<Opened> {
  const source = { url: absolute(model).href };
  const engine = await createLocalEngine('simd', []);
  // A binary that is compiled anew has a runtime that no other model uses.
  const core = compileBinary(() => new URL('./kilim.simd.wasm', import.meta.url));
  engine.start(core.then((module) => ({ module }))).catch(() => undefined);
  const request = {
    own: false,
    source,
    external: withNeighbours(source, {}),
    fileBytes: Infinity,
    options: { backends: ['cpu' as const] },
  };
  return { engine, loaded: await engine.load(request, () => undefined) };
}
