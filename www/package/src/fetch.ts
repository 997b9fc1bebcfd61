import { describe, reasonOf } from './describe.js';
import { KilimError } from './errors.js';

/** Node, as far as it is used here: its `fetch` reads no files. */
interface Host {
  getBuiltinModule?(name: 'node:fs/promises'): { readFile(path: URL): Promise<Uint8Array<ArrayBuffer>> };
  versions?: { node?: string; bun?: string; deno?: string };
}

/**
 * An address as an absolute one. What bundlers make of `new URL('./file', import.meta.url)` may be relative to the page.
 * @throws KilimError `IO` where it is none.
 */
export function absolute(address: string | URL): URL {
  try {
    return new URL(address, globalThis.location?.href);
  } catch (error) {
    const alone = globalThis.location === undefined;
    throw new KilimError(
      'IO',
      `${describe(address)} is not an address`,
      alone ? { hint: "outside of a page it must be a whole one: new URL('model.onnx', import.meta.url)" } : {},
      error,
    );
  }
}

/**
 * What is at an address. Outside of browsers that may be a file.
 * @throws KilimError `IO`, with what may be the reason, where there is no answer. One that says no is no error here.
 */
export async function fetchBytes(address: string | URL, signal?: AbortSignal): Promise<Response> {
  const url = absolute(address);
  try {
    const { process } = globalThis as { process?: Host };
    const files = url.protocol === 'file:' && process?.versions?.node ? process.getBuiltinModule?.('node:fs/promises') : undefined;
    if (files) return new Response(await files.readFile(url));
    return await fetch(url, signal ? { signal } : {});
  } catch (error) {
    const hint = hintFor(url);
    throw new KilimError('IO', `cannot read ${url.href.slice(0, 1000)}: ${reasonOf(error)}`, hint === undefined ? {} : { hint }, error);
  }
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
