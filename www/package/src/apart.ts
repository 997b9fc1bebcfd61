import { reasonOf } from './describe.js';
import { KilimError } from './errors.js';
import type { WireSource } from './source.js';

/** Bytes of a file from which on a worker reads it where it lies. */
export const LARGE_FILE = 2 ** 25;
/** Bytes that are read at once, at least. */
const AHEAD = 2 ** 15;

/** In the types of workers, which are not those of pages. */
declare const FileReaderSync: new () => { readAsArrayBuffer(blob: Blob): ArrayBuffer };

/** A file that is read where it lies. */
export interface Apart {
  size: number;
  /**
   * The bytes of a part of it, for which this thread waits; they stay as they are until the next call.
   * @throws KilimError `IO` where the file cannot be read, or has changed.
   */
  read(from: number, length: number): Uint8Array;
}

/** Whether the workers of this engine wait for parts of blobs. */
export const BLOBS = true;
/** Whether this thread does. */
export const CAN_READ = typeof FileReaderSync !== 'undefined';

/** A file whose parts `read` gives. What is little comes with what is behind it. */
export function apart(size: number, read: (from: number, length: number) => Uint8Array): Apart {
  let at = 0;
  let held = new Uint8Array();
  const readNow = (from: number, length: number): Uint8Array => {
    try {
      return read(from, length);
    } catch (error) {
      throw new KilimError('IO', `the file cannot be read any more: ${reasonOf(error)}`, {}, error);
    }
  };
  return {
    size,
    read(from, length) {
      if (length >= AHEAD) return readNow(from, length);
      if (from < at || from + length > at + held.length) {
        held = readNow(from, Math.min(AHEAD, size - from)) as Uint8Array<ArrayBuffer>;
        at = from;
      }
      return held.subarray(from - at, from - at + length);
    },
  };
}

/** What reads a large file from where it lies; `undefined` of another, and of one that has to be fetched. Only a worker may wait for it. */
export function openApart(source: WireSource): Apart | undefined {
  if ('bytes' in source) return openBytes(source.bytes);
  if (!('blob' in source) || source.blob.size < LARGE_FILE || !CAN_READ) return undefined;
  const { blob } = source;
  const reader = new FileReaderSync();
  return apart(blob.size, (from, length) => new Uint8Array(reader.readAsArrayBuffer(blob.slice(from, from + length))));
}

/** Bytes of this thread's, which need not be in the runtime's memory as well. */
export function openBytes(bytes: Uint8Array): Apart | undefined {
  if (bytes.length < LARGE_FILE) return undefined;
  return { size: bytes.length, read: (from, length) => bytes.subarray(from, from + length) };
}
