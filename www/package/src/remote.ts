import { Carriers } from './carriers.js';
import type { Variant } from './detect.js';
import { KilimError, aborted } from './errors.js';
import type { Engine, LoadRequest, Loaded, Progress, Ran, Reply, Request, RunRequest } from './protocol.js';
import type { Verification } from './verify.js';

interface Pending {
  resolve(value: unknown): void;
  reject(error: KilimError): void;
  onProgress: ((progress: Progress) => void) | undefined;
}

// Bundlers find the workers by exactly this form.
const spawn: Record<Variant, () => Worker> = {
  simd: () => new Worker(new URL('./worker.simd.js', import.meta.url), { type: 'module', name: 'kilim' }),
  relaxed: () => new Worker(new URL('./worker.relaxed.js', import.meta.url), { type: 'module', name: 'kilim' }),
};

/** A worker whose script lies on another origin, as on a CDN, from where none may be started: a script of this page imports it. */
function spawnForeign(variant: Variant): Worker {
  const file = `worker.${variant}.js`; // no bundler should take it for a file of its own
  const script = `import ${JSON.stringify(new URL(file, import.meta.url))};`;
  const url = URL.createObjectURL(new Blob([script], { type: 'text/javascript' }));
  const worker = new Worker(url, { type: 'module', name: 'kilim' });
  for (const event of ['message', 'error']) worker.addEventListener(event, () => URL.revokeObjectURL(url), { once: true });
  return worker;
}

function spawnAnywhere(variant: Variant): Worker {
  try {
    return spawn[variant]();
  } catch {
    return spawnForeign(variant);
  }
}

/** A runtime in a worker of its own, which ends with it. */
export function createRemoteEngine(variant: Variant): Engine {
  const worker = spawnAnywhere(variant);
  const pending = new Map<number, Pending>();
  const carriers = new Carriers();
  let lastId = 0;
  let dead: KilimError | undefined;

  function end(error: KilimError): void {
    if (dead) return;
    dead = error;
    worker.terminate();
    for (const { reject } of pending.values()) reject(error);
    pending.clear();
  }

  worker.addEventListener('message', ({ data: reply }: MessageEvent<Reply>) => {
    const call = pending.get(reply.id);
    if (!call) return;
    if (reply.kind === 'progress') return call.onProgress?.(reply.progress);
    pending.delete(reply.id);
    if (reply.kind === 'done') call.resolve(reply.value);
    else call.reject(KilimError.from(reply.error));
  });
  worker.addEventListener('error', (event) => {
    event.preventDefault();
    end(new KilimError('INTERNAL', `the worker failed: ${event.message || 'its script could not be loaded'}`, {
      hint: 'the package\'s worker.*.js must be served beside its index.js; from another origin than the page\'s, with CORS, and with it and `blob:` in the `worker-src` of a content security policy',
    }));
  });
  worker.addEventListener('messageerror', () => end(new KilimError('INTERNAL', 'a message of the worker could not be read')));

  function call<T>(message: Omit<Request, 'id'>, signal?: AbortSignal, onProgress?: (progress: Progress) => void, transfer: Transferable[] = []): Promise<T> {
    const id = ++lastId;
    return new Promise<T>((resolve, reject) => {
      if (dead) return reject(dead);
      const stop = () => {
        pending.delete(id);
        worker.postMessage({ kind: 'abort', id } satisfies Request);
        reject(aborted(signal));
      };
      const settle = <V>(then: (value: V) => void) => (value: V) => {
        signal?.removeEventListener('abort', stop);
        then(value);
      };
      if (signal?.aborted) return reject(aborted(signal));
      signal?.addEventListener('abort', stop);
      pending.set(id, { resolve: settle(resolve as (value: unknown) => void), reject: settle(reject), onProgress });
      try {
        worker.postMessage({ ...message, id }, transfer);
      } catch (error) {
        pending.delete(id);
        reject(new KilimError('INTERNAL', `the request cannot be posted to the worker: ${error instanceof Error ? error.message : error}`, {}, error));
      }
    });
  }

  return {
    start: async (binary) => call({ kind: 'start', module: await binary } as Omit<Request, 'id'>),
    load: (request: LoadRequest, onProgress, signal) => call<Loaded>({ kind: 'load', request } as Omit<Request, 'id'>, signal, onProgress),
    run: async (request: RunRequest, signal) => {
      const { values, transfer } = carriers.load(request.feeds);
      const ran = await call<Ran>({ kind: 'run', request: { ...request, feeds: values } } as Omit<Request, 'id'>, signal, undefined, transfer);
      carriers.unload(ran.carriers ?? []);
      return ran;
    },
    verify: (request, signal) => call<Verification>({ kind: 'verify', request } as Omit<Request, 'id'>, signal),
    saveCache: () => call<Uint8Array>({ kind: 'saveCache' } as Omit<Request, 'id'>),
    calibrate: (backends) => call<string>({ kind: 'calibrate', backends } as Omit<Request, 'id'>),
    close: () => end(new KilimError('STATE', 'the session is closed')),
  };
}
