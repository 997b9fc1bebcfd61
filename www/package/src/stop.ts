/** How a thread that computes, and sees no messages, learns that its call was aborted: memory of both threads, or an address that is revoked. */
export type Stop = Int32Array | string;

/** The page's end. */
export interface Stopper {
  /** What is posted with the call. */
  stop: Stop;
  /** Stops the call, or, once it is done, gives back what it took. */
  set(): void;
}

export function createStopper(): Stopper {
  if (typeof SharedArrayBuffer === 'function' && globalThis.crossOriginIsolated !== false) {
    const flag = new Int32Array(new SharedArrayBuffer(4));
    return { stop: flag, set: () => void Atomics.store(flag, 0, 1) };
  }
  const address = URL.createObjectURL(new Blob([]));
  return { stop: address, set: () => URL.revokeObjectURL(address) };
}

/** Whether this worker can read such addresses: a content security policy may forbid it, and then all seem to be revoked. */
let readable: boolean | undefined;

/** The worker's end: says whether the call was aborted; nothing of a call that cannot be. */
export function stoppedBy(stop: Stop | undefined): (() => boolean) | undefined {
  if (stop === undefined) return undefined;
  if (typeof stop !== 'string') return () => Atomics.load(stop, 0) === 1;
  return () => {
    readable ??= typeof XMLHttpRequest === 'function' && canRead();
    return readable && !exists(stop);
  };
}

function canRead(): boolean {
  const address = URL.createObjectURL(new Blob([]));
  try {
    return exists(address);
  } finally {
    URL.revokeObjectURL(address);
  }
}

function exists(address: string): boolean {
  const request = new XMLHttpRequest();
  try {
    request.open('GET', address, false);
    request.send();
    return true;
  } catch {
    return false;
  }
}
