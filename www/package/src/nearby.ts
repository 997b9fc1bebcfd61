import type { Variant } from './detect.js';
import { aborted } from './errors.js';
import { createLocalEngine } from './local.js';
import type { Engine, LoadRequest, Loaded, Ran, RunRequest } from './protocol.js';
import { createRemoteEngine } from './remote.js';

/** Milliseconds of computing below which the way to a worker and back is a large part of a run. */
const SHORT = 0.5;
/** Runs in a row that must be as short as that. */
const ENOUGH = 3;
/** Milliseconds after which a run in this thread is given up: a frame. */
const PATIENCE = 16;

/**
 * A runtime in a worker. For a small model whose runs are shorter there than the messages about them, a second one is made in this
 * thread, which then does the runs. A run that takes it too long is made anew in the worker, and so are all that follow.
 */
export function createNearbyEngine(variant: Variant): Engine {
  const far = createRemoteEngine(variant);
  let near: Engine | undefined;
  /** What the second one is to load; nothing where it is not wanted, or has been made. */
  let wanted: LoadRequest | undefined;
  let module: Promise<WebAssembly.Module>;
  let short = 0;
  /** Runs in the worker, for which those in this thread wait there. */
  let underWay = 0;
  let closed = false;

  async function approach(request: LoadRequest): Promise<void> {
    const engine = await createLocalEngine(variant);
    await engine.start(module);
    await engine.load(request, () => undefined, new AbortController().signal);
    if (closed) engine.close();
    else near = engine;
  }

  function leave(): void {
    near?.close();
    near = undefined;
  }

  async function runFar(request: RunRequest, signal: AbortSignal): Promise<Ran> {
    underWay++;
    try {
      const ran = await far.run(request, signal);
      short = ran.milliseconds < SHORT ? short + 1 : 0;
      if (wanted && short >= ENOUGH) {
        // Where it cannot be made, by the page's content security policy for instance, the worker goes on.
        approach(wanted).catch(() => undefined);
        wanted = undefined;
      }
      return ran;
    } finally {
      underWay--;
    }
  }

  return {
    start(binary) {
      module = binary;
      return far.start(binary);
    },
    async load(request, onProgress, signal) {
      const { small, ...loaded }: Loaded = await far.load(request, onProgress, signal);
      if (small) wanted = { source: { bytes: small }, external: {}, options: { ...request.options, backends: ['cpu'] } };
      return loaded;
    },
    async run(request, signal) {
      if (!near || underWay > 0) return runFar(request, signal);
      const { timeout = PATIENCE } = request;
      try {
        return await near.run({ ...request, timeout: Math.min(timeout, PATIENCE) }, signal);
      } catch {
        if (signal.aborted) throw aborted(signal);
        leave();
        return runFar(request, signal);
      }
    },
    verify: (request, signal) => far.verify(request, signal),
    saveCache: () => far.saveCache(),
    calibrate: (backends) => far.calibrate(backends),
    close() {
      closed = true;
      leave();
      far.close();
    },
  };
}
