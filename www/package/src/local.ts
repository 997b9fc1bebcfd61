import type { Variant } from './detect.js';
import { createEngine } from './engine.js';
import type { Glue } from './glue.js';
import type { Engine } from './protocol.js';

// The builds are fetched only when the runtime is to run in this thread.
const glues: Record<Variant, () => Promise<Glue>> = {
  simd: () => import('./kilim.simd.js'),
  relaxed: () => import('./kilim.relaxed.js'),
};

/** A runtime in this thread. Calls wait for each other as they do in a worker. */
export async function createLocalEngine(variant: Variant): Promise<Engine> {
  const engine = createEngine(await glues[variant]());
  let queue: Promise<unknown> = Promise.resolve();
  const queued = <T>(call: () => Promise<T>): Promise<T> => {
    const result = queue.then(call);
    queue = result.catch(() => undefined);
    return result;
  };
  return {
    start: (binary) => engine.start(binary),
    load: (request, onProgress, signal) => queued(() => engine.load(request, onProgress, signal)),
    run: (request, signal) => queued(() => engine.run(request, signal)),
    verify: (request, signal) => queued(() => engine.verify(request, signal)),
    saveCache: () => queued(() => engine.saveCache()),
    calibrate: (backends) => queued(() => engine.calibrate(backends)),
    close: () => void queued(async () => engine.close()),
  };
}
