import { cannotStart } from './binary.js';
import type { Variant } from './detect.js';
import type { Part } from './parts.js';
import type { Engine } from './protocol.js';

/**
 * A runtime in this thread, with `parts` of it, else all. Its code is a file of its own, as most pages compute in a worker.
 * @throws KilimError `IO` where a file of it cannot be had.
 */
export async function createEngineHere(variant: Variant, parts?: readonly Part[]): Promise<Engine> {
  const local = await import('./local.js').catch((error) => {
    throw cannotStart(error);
  });
  return local.createLocalEngine(variant, parts);
}
