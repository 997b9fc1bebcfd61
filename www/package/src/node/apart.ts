import { closeSync, fstatSync, openSync, readSync } from 'node:fs';
import { LARGE_FILE, apart, openBytes } from '../apart.js';
import type { Apart } from '../apart.js';
import type { WireSource } from '../source.js';

export { LARGE_FILE } from '../apart.js';
export type { Apart } from '../apart.js';

/** No thread of Node waits for parts of blobs. */
export const BLOBS = false;
export const CAN_READ = false;

/** What reads a large file of the disk, or bytes. */
export function openApart(source: WireSource): Apart | undefined {
  if ('bytes' in source) return openBytes(source.bytes);
  if (!('url' in source) || !source.url.startsWith('file:')) return undefined;
  const url = new URL(source.url);
  /** Opens the file for each part, so that none is left open by a worker that is ended. */
  const opened = <T>(use: (file: number, size: number, changed: number) => T): T => {
    const file = openSync(url, 'r');
    try {
      const { size, mtimeMs } = fstatSync(file);
      return use(file, size, mtimeMs);
    } finally {
      closeSync(file);
    }
  };
  let first: [size: number, changed: number] | undefined;
  try {
    first = opened((file, size, changed) => (fstatSync(file).isFile() ? [size, changed] : undefined));
  } catch {
    // Reading it says why.
  }
  if (first === undefined || first[0] < LARGE_FILE) return undefined;
  const [known, before] = first;
  return apart(known, (from, length) =>
    opened((file, size, changed) => {
      if (size !== known || changed !== before) throw new Error('it changed since the model was loaded');
      const bytes = new Uint8Array(length);
      let read = 0;
      for (let more = 1; more > 0 && read < length; read += more) more = readSync(file, bytes, read, length - read, from + read);
      return bytes.subarray(0, read);
    }),
  );
}
