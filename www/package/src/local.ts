import { cannotStart } from './binary.js';
import type { Variant } from './detect.js';
import { createEngine } from './engine.js';
import { KilimError } from './errors.js';
import type { CreateGlue, Glue } from './glue.js';
import { scriptOf } from './builds.js';
import { CAN_WAIT } from './fetch.js';
import { PARTS, placesOf } from './parts.js';
import type { Part } from './parts.js';
import { PARTS_OF } from './places.js';
import type { Binary, Engine } from './protocol.js';
import { Runtime } from './runtime.js';
import { copyValues } from './values.js';
import type { WireValue } from './values.js';

/** The runtime of each binary in this thread, which all sessions of it share. One that has trapped is not among them. */
const runtimes = new WeakMap<WebAssembly.Module, Promise<Runtime<Glue>>>();

function openRuntime(create: CreateGlue<Glue>, variant: Variant, binary: Binary): Promise<Runtime<Glue>> {
  const { module } = binary;
  const kept = runtimes.get(module);
  if (kept) return kept;
  const forget = () => runtimes.delete(module);
  const runtime = Runtime.start(create, module, { places: placesOf(binary, PARTS_OF[variant].places), ended: forget });
  runtime.catch(forget);
  runtimes.set(module, runtime);
  return runtime;
}

async function importScript(variant: Variant): Promise<CreateGlue<Glue>> {
  try {
    return (await scriptOf(variant)).createGlue;
  } catch (error) {
    throw cannotStart(error);
  }
}

/**
 * A runtime in this thread. Calls wait for each other as they do in a worker. A page's thread cannot wait for parts of the runtime when they are
 * called for: it gets `parts` at the start.
 */
export async function createLocalEngine(variant: Variant, parts: readonly Part[] = CAN_WAIT ? [] : PARTS): Promise<Engine> {
  const create = await importScript(variant);
  const engine = createEngine((binary) => openRuntime(create, variant, binary), PARTS_OF[variant].needs, parts);
  const waiting = new Set<(error: KilimError) => void>();
  /** Resolves when the last call is done; there is none while nothing is under way. */
  let last: Promise<void> | undefined;
  let closed: KilimError | undefined;

  function queued<T>(call: () => Promise<T>): Promise<T> {
    return new Promise<T>((resolve, reject) => {
      if (closed) return reject(closed);
      const turn = () => (closed ? Promise.reject(closed) : call());
      waiting.add(reject);
      const done = (last ? last.then(turn) : turn()).then(resolve, reject).finally(() => {
        waiting.delete(reject);
        if (last === done) last = undefined;
      });
      last = done;
    });
  }

  /** The request as the caller gave it now: a call that has to wait reads copies. */
  function asGiven<R extends { feeds: WireValue[] }>(request: R): R {
    return last ? { ...request, feeds: copyValues(request.feeds) } : request;
  }

  return {
    start: (binary) => engine.start(binary),
    load: (request, onProgress, signal) => queued(() => engine.load(request, onProgress, signal)),
    run: async (request, signal) => {
      const given = asGiven(request);
      return queued(() => engine.run(given, signal));
    },
    verify: async (request, signal) => {
      const given = asGiven(request);
      return queued(() => engine.verify(given, signal));
    },
    openDecoder: (files) => queued(() => engine.openDecoder(files)),
    startText: (words, sampling) => queued(() => engine.startText(words, sampling)),
    nextWords: (request, signal) => queued(() => engine.nextWords(request, signal)),
    openSpeech: (files) => queued(() => engine.openSpeech(files)),
    hearWindow: (request, signal) => queued(() => engine.hearWindow(request, signal)),
    nextWindow: (samples, times) => queued(() => engine.nextWindow(samples, times)),
    metadata: () => queued(() => engine.metadata()),
    reset: () => queued(() => engine.reset()),
    saveCache: () => queued(() => engine.saveCache()),
    paint: (request) => queued(() => engine.paint(request)),
    readKept: (number) => queued(() => engine.readKept(number)),
    releaseKept: (numbers) => queued(() => engine.releaseKept(numbers)),
    calibrate: (backends) => queued(() => engine.calibrate(backends)),
    close() {
      closed ??= new KilimError('STATE', 'the session is closed');
      for (const reject of waiting) reject(closed);
      engine.close();
    },
  };
}
