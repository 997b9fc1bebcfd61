import type { Variant } from './detect.js';
import { KilimError } from './errors.js';

/** A worker as its owner sees it, in pages and in Node. */
export interface Thread {
  postMessage(message: unknown, transfer?: Transferable[]): void;
  // biome-ignore lint/suspicious/noExplicitAny: whoever starts a worker knows its messages.
  addEventListener(type: 'message', listener: (event: { data: any }) => void): void;
  terminate(): void;
}

/** The scripts of workers: of a session by its build, and of what computes for all sessions. */
export type Script = Variant | 'crew';

/** No worker may be started here: this JavaScript engine has none, or the page's content security policy forbids it. */
export class NoWorker extends KilimError {
  constructor(
    readonly reason: string,
    cause?: unknown,
  ) {
    super('IO', `no worker can be started: ${reason}`, { hint: 'load with `worker: false` to compute in the calling thread' }, cause);
  }
}
