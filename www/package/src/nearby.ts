import { KilimError, aborted } from './errors.js';
import { createEngineHere } from './here.js';
import type { Place } from './here.js';
import type { Part } from './parts.js';
import type { Binary, Engine, LoadRequest, Loaded, Ran, RunRequest } from './protocol.js';
import { createRemoteEngine } from './remote.js';
import { NoWorker } from './thread.js';
import { copyValues } from './values.js';

/** Milliseconds of computing below which the way to a worker and back is a large part of a run. */
const SHORT = 0.5;
/** Runs in a row that must be as short as that. */
const ENOUGH = 3;
/** Milliseconds after which a run in this thread is given up: a frame. */
const PATIENCE = 16;

/** A runtime in a worker, or in this thread where none may be started; reports say why. */
function createFarEngine(place: Place): Engine {
  const remote = createRemoteEngine(place);
  let local: Engine | undefined;
  let creating: Promise<Engine> | undefined;
  let reason: string | undefined;
  let closed = false;

  async function create(): Promise<Engine> {
    local = await createEngineHere(place.variant);
    if (closed) local.close();
    return local;
  }

  async function either<T>(call: (engine: Engine) => Promise<T>): Promise<T> {
    // Without waiting: a call reads its inputs before it returns.
    if (local) return call(local);
    try {
      return await call(remote);
    } catch (error) {
      if (!(error instanceof NoWorker)) throw error;
      ({ reason } = error);
      return call(await (creating ??= create()));
    }
  }

  /** What a call says, with the reason in its report. */
  function explained<T extends Partial<Pick<Loaded, 'report'>>>(said: T): T {
    return said.report && reason !== undefined ? { ...said, report: { ...said.report, worker: reason } } : said;
  }

  return {
    start: (binary) => either((engine) => engine.start(binary)),
    load: async (request, onProgress, signal) => explained(await either((engine) => engine.load(request, onProgress, signal))),
    run: async (request, signal) => explained(await either((engine) => engine.run(request, signal))),
    verify: (request, signal) => either((engine) => engine.verify(request, signal)),
    openDecoder: (files) => either((engine) => engine.openDecoder(files)),
    startText: (words, sampling) => either((engine) => engine.startText(words, sampling)),
    nextWords: async (request, signal) => explained(await either((engine) => engine.nextWords(request, signal))),
    openSpeech: (files) => either((engine) => engine.openSpeech(files)),
    hearWindow: async (request, signal) => explained(await either((engine) => engine.hearWindow(request, signal))),
    nextWindow: (samples, times) => either((engine) => engine.nextWindow(samples, times)),
    metadata: () => either((engine) => engine.metadata()),
    reset: () => either((engine) => engine.reset()),
    saveCache: () => either((engine) => engine.saveCache()),
    paint: (request) => either((engine) => engine.paint(request)),
    readKept: (number) => either((engine) => engine.readKept(number)),
    releaseKept: (numbers) => either((engine) => engine.releaseKept(numbers)),
    calibrate: (backends) => either((engine) => engine.calibrate(backends)),
    close() {
      closed = true;
      remote.close();
      local?.close();
    },
  };
}

/**
 * A runtime in a worker. For a small model whose runs are shorter there than the messages about them, a second one is made in this
 * thread, which then does the runs. A run that takes it too long is made anew in the worker, and so are all that follow.
 */
export function createNearbyEngine(place: Place): Engine {
  const far = createFarEngine(place);
  let near: Engine | undefined;
  /** What the second one is to load; nothing where it is not wanted, or has been made. */
  let wanted: LoadRequest | undefined;
  let binary: Promise<Binary>;
  /** The parts of the runtime that the worker has taken. */
  let parts: readonly Part[] = [];
  let short = 0;
  /** Runs in the worker, for which those in this thread wait there. */
  let underWay = 0;
  let closed = false;

  async function approach(request: LoadRequest): Promise<void> {
    const engine = await createEngineHere(place.variant, parts);
    await engine.start(binary);
    await engine.load(request, () => undefined);
    if (closed) engine.close();
    else near = engine;
  }

  function leave(): void {
    near?.close();
    near = undefined;
  }

  async function runFar(request: RunRequest, signal: AbortSignal | undefined): Promise<Ran> {
    underWay++;
    try {
      const ran = await far.run(request, signal);
      parts = ran.parts ?? parts;
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
    start(given) {
      binary = given;
      return far.start(given);
    },
    async load(request, onProgress, signal) {
      const { small, ...loaded }: Loaded = await far.load(request, onProgress, signal);
      ({ parts } = loaded);
      if (small && loaded.report.worker === undefined)
        wanted = {
          own: false,
          source: { bytes: small },
          external: {},
          fileBytes: Infinity,
          painter: request.painter,
          options: { ...request.options, backends: ['cpu'] },
        };
      return loaded;
    },
    async run(request, signal) {
      // What is kept stays in the worker.
      const keeps = request.keep !== undefined || request.feeds.some((value) => 'kept' in value);
      if (!near || underWay > 0 || keeps) return runFar(request, signal);
      const { timeout = PATIENCE } = request;
      const again = { ...request, feeds: copyValues(request.feeds) };
      try {
        return await near.run({ ...request, timeout: Math.min(timeout, PATIENCE) }, signal);
      } catch {
        if (signal?.aborted) throw aborted(signal);
        if (closed) throw new KilimError('STATE', 'the session is closed');
        leave();
        return runFar(again, signal);
      }
    },
    verify: (request, signal) => far.verify(request, signal),
    // Its caches stay in the worker.
    openDecoder: (files) => far.openDecoder(files),
    startText: (words, sampling) => far.startText(words, sampling),
    nextWords: (request, signal) => far.nextWords(request, signal),
    openSpeech: (files) => far.openSpeech(files),
    hearWindow: (request, signal) => far.hearWindow(request, signal),
    nextWindow: (samples, times) => far.nextWindow(samples, times),
    metadata: () => far.metadata(),
    reset: () => far.reset(),
    saveCache: () => far.saveCache(),
    paint: (request) => far.paint(request),
    readKept: (number) => far.readKept(number),
    releaseKept: (numbers) => far.releaseKept(numbers),
    calibrate: (backends) => far.calibrate(backends),
    close() {
      closed = true;
      leave();
      far.close();
    },
  };
}
