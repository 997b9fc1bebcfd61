import { cannotStart } from './binary.js';
import type { Variant } from './detect.js';
import { KilimError } from './errors.js';
import type { Part } from './parts.js';
import type { Engine } from './protocol.js';

/** Which runtime a session has, and where. */
export interface Place {
  variant: Variant;
  /** What computes for it: its own thread, and others. */
  threads: number;
  /** The folder of the package's files, where that is not this module's. */
  assets: string | undefined;
}

/**
 * A runtime in this thread, with `parts` of it, else all. Its code is a file of its own, as most pages compute in a worker.
 * @throws KilimError `IO` where a file of it cannot be had.
 */
export async function createEngineHere(variant: Variant, parts?: readonly Part[]): Promise<Engine> {
  const local = await import('./local.js').catch((error) => {
    if (!('ServiceWorkerGlobalScope' in globalThis)) throw cannotStart(error);
    throw new KilimError('IO', 'a service worker imports nothing later', { hint: 'import `kilim/single`' }, error);
  });
  return local.createLocalEngine(variant, parts);
}
