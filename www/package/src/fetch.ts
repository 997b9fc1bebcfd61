import { describe, reasonOf } from './describe.js';
import { KilimError } from './errors.js';

/**
 * An address as an absolute one. What bundlers make of `new URL('./file', import.meta.url)` may be relative to the page.
 * @throws KilimError `IO` where it is none.
 */
export function absolute(address: string | URL): URL {
  try {
    return new URL(address, globalThis.location?.href);
  } catch (error) {
    throw new KilimError('IO', `${describe(address)} is not an address`, {}, error);
  }
}

/**
 * What is at an address.
 * @throws KilimError `IO`, with what may be the reason, where there is no answer. One that says no is no error here.
 */
export async function fetchBytes(address: string | URL, signal?: AbortSignal, headers: Record<string, string> = {}): Promise<Response> {
  const url = absolute(address);
  try {
    return await fetch(url, signal ? { signal, headers } : { headers });
  } catch (error) {
    const hint = hintFor(url);
    throw new KilimError('IO', `cannot read ${url.href.slice(0, 1000)}: ${reasonOf(error)}`, hint === undefined ? {} : { hint }, error);
  }
}

/** Whether the caller of `load` can wait for bytes: a page must not be blocked. */
export const CAN_WAIT = false;

/**
 * The bytes at an address, for which this thread waits: a worker, where that blocks no page.
 * @throws KilimError `STATE` in a thread that cannot wait.
 */
export function fetchNow(url: URL): ArrayBuffer {
  if (typeof XMLHttpRequest === 'undefined' || globalThis.document !== undefined) {
    throw new KilimError('STATE', 'a part of the runtime is not there, and this thread cannot wait for it');
  }
  const request = new XMLHttpRequest();
  request.open('GET', url, false);
  request.responseType = 'arraybuffer';
  request.send();
  if (request.status !== 200) throw new Error(`${url.href}: the server answered ${request.status}`);
  return request.response as ArrayBuffer;
}

export const OFFLINE = 'the page is offline';

/** Whether the browser knows that there is no network. */
export function isOffline(): boolean {
  return (globalThis as { navigator?: Navigator }).navigator?.onLine === false;
}

/** Browsers do not tell a page why there was no answer. */
function hintFor({ protocol, origin }: URL): string | undefined {
  if (isOffline()) return OFFLINE;
  const { location } = globalThis as { location?: Location };
  if (location === undefined || !protocol.startsWith('http')) return undefined;
  if (protocol === 'http:' && location.protocol === 'https:') return 'a page served over https may not read from an address with http';
  if (origin !== location.origin)
    return `the address is of another origin than the page: its server must allow ${location.origin} by CORS (access-control-allow-origin)`;
  return undefined;
}
