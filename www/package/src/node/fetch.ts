import { createReadStream, readFileSync } from 'node:fs';
import { stat } from 'node:fs/promises';
import { resolve } from 'node:path';
import { Readable } from 'node:stream';
import { pathToFileURL } from 'node:url';
import { describe, reasonOf } from '../describe.js';
import { KilimError } from '../errors.js';

/** What begins an address. One letter is a drive of Windows. */
const SCHEME = /^[a-z][a-z\d+.-]+:/i;
/** Bytes that are read of a file at a time. */
const CHUNK = 1 << 20;

/**
 * An address as an absolute one. A text without a scheme is a path, seen from the folder that the program runs in.
 * @throws KilimError `IO` where it is none.
 */
export function absolute(address: string | URL): URL {
  try {
    return typeof address === 'string' && !SCHEME.test(address) ? pathToFileURL(resolve(address)) : new URL(address);
  } catch (error) {
    throw new KilimError('IO', `${describe(address)} is no address and no path`, {}, error);
  }
}

/**
 * What is at an address or a path.
 * @throws KilimError `IO` where there is no answer. One of a server that says no is no error here.
 */
export async function fetchBytes(address: string | URL, signal?: AbortSignal, headers: Record<string, string> = {}): Promise<Response> {
  const url = absolute(address);
  try {
    return url.protocol === 'file:' ? await openFile(url) : await fetch(url, signal ? { signal, headers } : { headers });
  } catch (error) {
    throw new KilimError('IO', `cannot read ${url.href.slice(0, 1000)}: ${reasonOf(error)}`, {}, error);
  }
}

async function openFile(url: URL): Promise<Response> {
  const about = await stat(url);
  if (!about.isFile()) throw new Error('it is no file');
  const stream = Readable.toWeb(createReadStream(url, { highWaterMark: CHUNK })) as ReadableStream<Uint8Array<ArrayBuffer>>;
  return new Response(stream, { headers: { 'content-length': String(about.size) } });
}

/** Whether the caller of `load` can wait for bytes: files of the package are on the disk. */
export const CAN_WAIT = true;

/**
 * The bytes of a file of the package, for which this thread waits.
 * @throws KilimError `STATE` where it is at an address, for which nobody can wait.
 */
export function fetchNow(url: URL): ArrayBuffer {
  if (url.protocol !== 'file:')
    throw new KilimError('STATE', 'a part of the runtime is not on the disk, and this thread cannot wait for it');
  const { buffer, byteOffset, byteLength } = readFileSync(url);
  return buffer.slice(byteOffset, byteOffset + byteLength) as ArrayBuffer;
}

export const OFFLINE = 'there is no network';

/** Node does not know. */
export const isOffline = (): boolean => false;
