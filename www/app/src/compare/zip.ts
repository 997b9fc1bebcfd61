// Zip archives as numpy writes them: entries stored or deflated.
import { KilimError } from 'kilim';

/** Bytes that the entries of an archive may have together. */
const LARGEST = 2 ** 30;
const END = 0x06054b50;
const ENTRY = 0x02014b50;

const damaged = (name: string, why: string) => new KilimError('INVALID_VALUE', `${name} is no zip archive that can be read: ${why}`);

async function inflated(packed: Uint8Array<ArrayBuffer>, size: number, name: string): Promise<Uint8Array> {
  const reader = new Blob([packed]).stream().pipeThrough(new DecompressionStream('deflate-raw')).getReader();
  const bytes = new Uint8Array(size);
  let at = 0;
  try {
    for (let piece = await reader.read(); !piece.done; piece = await reader.read()) {
      if (at + piece.value.length > size) throw damaged(name, 'an entry is longer than it says');
      bytes.set(piece.value, at);
      at += piece.value.length;
    }
  } catch (error) {
    throw error instanceof KilimError ? error : damaged(name, String(error));
  } finally {
    reader.cancel().catch(() => undefined);
  }
  if (at !== size) throw damaged(name, 'an entry is shorter than it says');
  return bytes;
}

/**
 * The bytes of every entry by its name.
 * @throws KilimError `INVALID_VALUE` for what is no archive, `LIMIT` where it would be too large.
 */
export async function entries(name: string, bytes: Uint8Array<ArrayBuffer>): Promise<Map<string, Uint8Array>> {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  let end = bytes.length - 22;
  while (end >= 0 && view.getUint32(end, true) !== END) end--;
  if (end < 0) throw damaged(name, 'it has no directory');
  const found = new Map<string, Uint8Array>();
  let at = view.getUint32(end + 16, true);
  let total = 0;
  for (let left = view.getUint16(end + 10, true); left > 0; left--) {
    if (at + 46 > bytes.length || view.getUint32(at, true) !== ENTRY) throw damaged(name, 'its directory is cut off');
    const method = view.getUint16(at + 10, true);
    const [packed, size, local] = [20, 24, 42].map((offset) => view.getUint32(at + offset, true)) as [number, number, number];
    const [letters, extra, comment] = [28, 30, 32].map((offset) => view.getUint16(at + offset, true)) as [number, number, number];
    const entry = new TextDecoder().decode(bytes.subarray(at + 46, at + 46 + letters));
    total += size;
    if (total > LARGEST) throw new KilimError('LIMIT', `${name} holds more than ${LARGEST} bytes`);
    if (local + 30 > bytes.length) throw damaged(name, 'an entry is missing');
    const start = local + 30 + view.getUint16(local + 26, true) + view.getUint16(local + 28, true);
    const data = bytes.subarray(start, start + packed);
    if (data.length !== packed) throw damaged(name, 'an entry is cut off');
    if (method !== 0 && method !== 8) throw damaged(name, `compression ${method} is not known`);
    found.set(entry, method === 8 ? await inflated(data, size, name) : data);
    at += 46 + letters + extra + comment;
  }
  return found;
}
