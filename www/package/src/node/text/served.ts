import { open, readFile, stat } from 'node:fs/promises';
import { resolve } from 'node:path';
import { pathToFileURL } from 'node:url';
import { KilimError } from '../../index.js';
import { exists as isServed, beginAt as beginServed, readAt as readServed } from '../../text/served.js';

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

/** The first bytes at an address, at most `count`. */
export async function beginAt(url: URL, count: number, signal?: AbortSignal): Promise<Uint8Array> {
  if (url.protocol !== 'file:') return beginServed(url, count, signal);
  try {
    const file = await open(url);
    try {
      const bytes = new Uint8Array(Math.min(count, (await file.stat()).size));
      const { bytesRead } = await file.read(bytes, 0, bytes.length, 0);
      return bytes.subarray(0, bytesRead);
    } finally {
      await file.close();
    }
  } catch (error) {
    throw new KilimError('IO', `${url.href} cannot be read: ${error}`, {}, error);
  }
}
