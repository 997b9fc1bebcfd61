import { readFile, stat } from 'node:fs/promises';
import { resolve } from 'node:path';
import { pathToFileURL } from 'node:url';
import { KilimError } from '../../index.js';
import { exists as isServed, readAt as readServed } from '../../text/served.js';

const isAddress = (address: string | URL): boolean => address instanceof URL || /^[a-z][a-z\d+.-]+:/i.test(address);

/** The address of a folder, which may be a path. */
export const folderAt = (address: string | URL): URL => (isAddress(address) ? new URL(address) : pathToFileURL(resolve(String(address))));

/** Whether there is a file at an address. */
export async function exists(url: URL, signal?: AbortSignal): Promise<boolean> {
  if (url.protocol !== 'file:') return isServed(url, signal);
  return stat(url).then(
    (about) => about.isFile(),
    () => false,
  );
}

/** The text at an address or a path. */
export async function readAt(address: string | URL, signal?: AbortSignal): Promise<string> {
  const url = folderAt(address);
  if (url.protocol !== 'file:') return readServed(url, signal);
  return readFile(url, 'utf8').catch((error) => {
    throw new KilimError('IO', `${url.href} cannot be read: ${error}`, {}, error);
  });
}
