/**
 * The files that `load` has kept on this machine, with the option `cache: true` or from `hf:` addresses.
 *
 *     for (const { address, bytes } of await list()) console.log(address, bytes);
 *     await remove('hf:owner/name');
 */
import { describe } from './describe.js';
import { KilimError } from './index.js';
import { openStore } from './downloads/store.js';
import type { About } from './downloads/store.js';
import { made } from './given.js';

/** A file that is kept. */
export interface KeptFile {
  /** What `load` was given: an absolute address, or one that begins with `hf:`. */
  address: string;
  /** The commit, of a file from a hub. */
  revision: string | undefined;
  bytes: number;
  /** When it came. */
  date: Date;
}

async function entries(): Promise<[key: string, about: About][]> {
  return (await openStore()?.entries()) ?? [];
}

/**
 * The files that are kept, the latest first. None where nothing can be kept, as in pages without https.
 *
 *     const bytes = (await list()).reduce((sum, file) => sum + file.bytes, 0);
 */
export async function list(): Promise<KeptFile[]> {
  return (await entries())
    .map(([, about]) => about)
    .filter(({ kind }) => kind === 'file')
    .sort((a, b) => b.time - a.time)
    .map(({ address, revision, bytes, time }) => ({ address, revision, bytes, date: new Date(time) }));
}

/**
 * Removes a file at an address, or all files below it: `hf:owner/name` is a whole repository in all its revisions. What was found out for them goes,
 * too. Gives the number of files. Models that are loaded go on.
 *
 *     const count = await remove('hf:owner/name');
 *
 * @throws KilimError `INVALID_VALUE` for what is no address.
 */
export async function remove(address: string | URL): Promise<number> {
  const given = made('an address', () => {
    if (typeof address !== 'string' && !(address instanceof URL))
      throw new KilimError('INVALID_VALUE', 'what is kept has an address', { got: describe(address) });
    return absolute(String(address)).replace(/\/+$/, '');
  });
  return removeWhere((about) => about === given || about.startsWith(`${given}/`));
}

/** An address seen from the page; what is none is left as it is. */
function absolute(address: string): string {
  try {
    return new URL(address, globalThis.location?.href).href;
  } catch {
    return address;
  }
}

/**
 * Removes everything that is kept, and gives the number of files.
 *
 *     await clear();
 */
export function clear(): Promise<number> {
  return removeWhere(() => true);
}

async function removeWhere(chosen: (address: string) => boolean): Promise<number> {
  const store = openStore();
  const gone = (await entries()).filter(([, { address }]) => chosen(address));
  await Promise.all(gone.map(([key]) => store?.remove(key)));
  return gone.filter(([, { kind }]) => kind === 'file').length;
}

/**
 * Asks the browser not to clear what is kept when room is short. Whether it agrees; programs need not ask.
 *
 *     if (!(await persist())) console.log('models may have to be fetched again');
 */
export async function persist(): Promise<boolean> {
  return (await openStore()?.persist()) ?? false;
}
