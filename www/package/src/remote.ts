import { onAbort } from './abort.js';
import { Carriers } from './carriers.js';
import { crewOfPage } from './crew.js';
import type { Share } from './crew.js';
import { reasonOf } from './describe.js';
import type { Place } from './here.js';
import { KilimError, aborted, fromPlain, toKilimError } from './errors.js';
import type { Engine, LoadRequest, Loaded, Progress, Ran, Reply, Request, RunRequest, Spoken, Window } from './protocol.js';
import { holdProcess, spawnWorker } from './spawn.js';
import { createStopper, type Stop } from './stop.js';
import type { WireTensor } from './tensor.js';
import type { Thread } from './thread.js';
import type { WireKept } from './values.js';
import type { Verification } from './verify.js';

interface Pending {
  resolve(value: unknown): void;
  reject(error: KilimError): void;
  onProgress: ((progress: Progress) => void) | undefined;
}

/** A runtime in a worker of its own, which ends with it. It computes with so many threads, the others being those of the page's crew. */
export function createRemoteEngine({ variant, threads, assets }: Place): Engine {
  const pending = new Map<number, Pending>();
  const carriers = new Carriers();
  let lastId = 0;
  let dead: KilimError | undefined;
  let worker: Thread | undefined;
  let leave: () => void = () => undefined;

  function end(error: KilimError): void {
    if (dead) return;
    dead = error;
    worker?.terminate();
    leave();
    for (const { reject } of pending.values()) reject(error);
    pending.clear();
  }

  try {
    worker = spawnWorker(variant, end, assets);
  } catch (error) {
    end(toKilimError(error));
  }
  worker?.addEventListener('message', ({ data: reply }: { data: Reply }) => {
    const call = pending.get(reply.id);
    if (!call) return forget(reply);
    if (reply.kind === 'progress') return call.onProgress?.(reply.progress);
    settled(reply.id);
    if (reply.kind === 'done') call.resolve(reply.value);
    else call.reject(fromPlain(reply.error));
  });

  function settled(id: number): void {
    pending.delete(id);
    if (worker && pending.size === 0) holdProcess(worker, false);
  }

  /** Gives back what a run has kept that nobody waits for any more. */
  function forget(reply: Reply): void {
    const { outputs = [] } = (reply.kind === 'done' && reply.value ? reply.value : {}) as Partial<Ran>;
    const numbers = outputs.flatMap((value) => ('kept' in value ? [value.kept] : []));
    if (numbers.length > 0) worker?.postMessage({ kind: 'releaseKept', id: ++lastId, numbers } satisfies Request);
  }

  function call<T>(
    message: Omit<Request, 'id'>,
    signal?: AbortSignal,
    onProgress?: (progress: Progress) => void,
    transfer: Transferable[] = [],
  ): Promise<T> {
    const id = ++lastId;
    return new Promise<T>((resolve, reject) => {
      if (dead || !worker) return reject(dead);
      if (signal?.aborted) return reject(aborted(signal));
      const stopListening = onAbort(signal, () => {
        settled(id);
        worker.postMessage({ kind: 'abort', id } satisfies Request);
        reject(aborted(signal));
      });
      const settle =
        <V>(then: (value: V) => void) =>
        (value: V) => {
          stopListening();
          then(value);
        };
      holdProcess(worker, true);
      pending.set(id, { resolve: settle(resolve as (value: unknown) => void), reject: settle(reject), onProgress });
      try {
        worker.postMessage({ ...message, id }, transfer);
      } catch (error) {
        settled(id);
        stopListening();
        reject(new KilimError('INTERNAL', `the request cannot be posted to the worker: ${reasonOf(error)}`, {}, error));
      }
    });
  }

  /** A call that `signal` stops in the worker while that computes. */
  async function stoppable<T>(signal: AbortSignal | undefined, make: (stop: { stop?: Stop }) => Promise<T>): Promise<T> {
    if (!signal) return make({});
    const stopper = createStopper();
    try {
      return await make({ stop: stopper.stop });
    } finally {
      stopper.set();
    }
  }

  return {
    async start(binary) {
      const given = await binary;
      const crew = variant === 'threads' && threads > 1 ? crewOfPage() : undefined;
      const share: Share | undefined = crew && { bell: crew.bell, workers: threads - 1 };
      const memory = await call<WebAssembly.Memory | undefined>({ kind: 'start', binary: given, ...(share && { share }) } as Omit<
        Request,
        'id'
      >);
      if (crew && memory && !dead) leave = crew.join({ assets, binary: given, memory, failed: end }, threads - 1);
      return memory;
    },
    load: (request: LoadRequest, onProgress, signal) => call<Loaded>({ kind: 'load', request } as Omit<Request, 'id'>, signal, onProgress),
    run: async (request: RunRequest, signal) => {
      const { values, transfer } = carriers.load(request.feeds);
      const ran = await stoppable(signal, (stop) => {
        const message = { kind: 'run', request: { ...request, feeds: values, ...stop } };
        return call<Ran>(message as Omit<Request, 'id'>, signal, undefined, transfer);
      });
      carriers.unload(ran.carriers ?? []);
      return ran;
    },
    verify: (request, signal) =>
      stoppable(signal, (stop) => {
        const message = { kind: 'verify', request: { ...request, ...stop } };
        return call<Verification>(message as Omit<Request, 'id'>, signal);
      }),
    openDecoder: (files) => call<string>({ kind: 'openDecoder', files } as Omit<Request, 'id'>),
    startText: (words, sampling) => call<number>({ kind: 'startText', words, sampling } as Omit<Request, 'id'>),
    nextWords: (request, signal) =>
      stoppable(signal, (stop) => {
        const message = { kind: 'nextWords', request: { ...request, ...stop } };
        return call<Spoken>(message as Omit<Request, 'id'>, signal);
      }),
    openSpeech: (files) => call<string>({ kind: 'openSpeech', files } as Omit<Request, 'id'>),
    hearWindow: (request, signal) =>
      stoppable(signal, (stop) => {
        const message = { kind: 'hearWindow', request: { ...request, ...stop } };
        return call<Window>(message as Omit<Request, 'id'>, signal);
      }),
    nextWindow: (samples, times) => call<number>({ kind: 'nextWindow', samples, times } as Omit<Request, 'id'>),
    metadata: () => call<string[]>({ kind: 'metadata' } as Omit<Request, 'id'>),
    reset: () => call<void>({ kind: 'reset' } as Omit<Request, 'id'>),
    saveCache: () => call<Uint8Array>({ kind: 'saveCache' } as Omit<Request, 'id'>),
    paint: (request) => {
      const transfer = request.pictures.map(({ source }) => ('buffer' in source ? source.buffer : source));
      return call<WireKept | undefined>({ kind: 'paint', request } as Omit<Request, 'id'>, undefined, undefined, transfer);
    },
    readKept: (number) => call<WireTensor>({ kind: 'readKept', number } as Omit<Request, 'id'>),
    releaseKept: (numbers) => call<void>({ kind: 'releaseKept', numbers } as Omit<Request, 'id'>),
    calibrate: (backends) => call<string>({ kind: 'calibrate', backends } as Omit<Request, 'id'>),
    close: () => end(new KilimError('STATE', 'the session is closed')),
  };
}
