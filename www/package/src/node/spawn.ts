import { Worker } from 'node:worker_threads';
import { fileURLToPath } from 'node:url';
import { MISPLACED } from '../assets.js';
import { reasonOf } from '../describe.js';
import { KilimError } from '../errors.js';
import { NoWorker } from '../thread.js';
import type { Script, Thread } from '../thread.js';

/** Workers that keep their program running while somebody waits for them. */
const workers = new WeakMap<Thread, Worker>();

export const HAS_WORKERS = true;

/** @throws NoWorker where none can be. What else hinders it is told to `failed`, once: before its first message, why its script does not run. */
export function spawnWorker(name: Script, failed: (error: KilimError) => void, assets?: string): Thread {
  const worker = start(name, assets);
  worker.unref();
  worker.on('error', (error) => failed(isMissing(error) ? notLoaded(error) : brokenBy(reasonOf(error), error)));
  worker.on('exit', () => failed(brokenBy('it has ended')));
  const thread: Thread = {
    postMessage: (message, transfer) => worker.postMessage(message, transfer as unknown as Parameters<Worker['postMessage']>[1]),
    addEventListener: (_type, listener) => void worker.on('message', (data) => listener({ data })),
    terminate: () => void worker.terminate(),
  };
  workers.set(thread, worker);
  return thread;
}

function start(name: Script, assets: string | undefined): Worker {
  // No bundler should take it for a file of its own.
  const file = name === 'crew' ? 'node.crew.js' : 'node.worker.js';
  try {
    // Options of the program, such as `--input-type`, may be none for a file.
    return new Worker(fileURLToPath(new URL(file, assets ?? import.meta.url)), { workerData: name, execArgv: [] });
  } catch (error) {
    throw new NoWorker(reasonOf(error), error);
  }
}

/** Node ends a program that waits for nothing but idle workers. */
export function holdProcess(thread: Thread, held: boolean): void {
  const worker = workers.get(thread);
  if (held) worker?.ref();
  else worker?.unref();
}

const isMissing = (error: Error & { code?: string }): boolean => error.code === 'MODULE_NOT_FOUND' || error.code === 'ERR_MODULE_NOT_FOUND';

const notLoaded = (error: Error): KilimError =>
  new KilimError('IO', `the worker's script could not be loaded: ${reasonOf(error)}`, { hint: MISPLACED }, error);

const brokenBy = (reason: string, cause?: unknown): KilimError => new KilimError('INTERNAL', `the worker failed: ${reason}`, {}, cause);
