// Reads zip files as numpy and tools/references write them: whole in memory, entries stored or deflated.
import { inflateRawSync } from 'node:zlib';

/** The bytes of every entry by its name. */
export function entries(file) {
  const found = new Map();
  const end = file.lastIndexOf(Buffer.from('PK\x05\x06', 'latin1'));
  let entry = file.readUInt32LE(end + 16);
  for (let left = file.readUInt16LE(end + 10); left > 0; left--) {
    const [method, packed] = [file.readUInt16LE(entry + 10), file.readUInt32LE(entry + 20)];
    const [name, extra, comment] = [28, 30, 32].map((at) => file.readUInt16LE(entry + at));
    const local = file.readUInt32LE(entry + 42);
    const start = local + 30 + file.readUInt16LE(local + 26) + file.readUInt16LE(local + 28);
    const data = file.subarray(start, start + packed);
    found.set(file.toString('utf8', entry + 46, entry + 46 + name), method === 8 ? inflateRawSync(data) : data);
    entry += 46 + name + extra + comment;
  }
  return found;
}
