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

/** An archive of files by their names, stored as they are. */
export function stored(files) {
  const [parts, directory] = [[], []];
  let at = 0;
  for (const [path, bytes] of Object.entries(files)) {
    const name = Buffer.from(path);
    const said = Buffer.alloc(26);
    said.writeUInt16LE(20, 0);
    said.writeUInt32LE(crc32(bytes), 10);
    said.writeUInt32LE(bytes.length, 14);
    said.writeUInt32LE(bytes.length, 18);
    said.writeUInt16LE(name.length, 22);
    const listed = Buffer.alloc(14);
    listed.writeUInt32LE(at, 10);
    directory.push(Buffer.from('PK\x01\x02\x14\0', 'latin1'), said, listed, name);
    const part = Buffer.concat([Buffer.from('PK\x03\x04', 'latin1'), said, name, bytes]);
    parts.push(part);
    at += part.length;
  }
  const list = Buffer.concat(directory);
  const end = Buffer.alloc(22);
  end.write('PK\x05\x06', 'latin1');
  end.writeUInt16LE(parts.length, 8);
  end.writeUInt16LE(parts.length, 10);
  end.writeUInt32LE(list.length, 12);
  end.writeUInt32LE(at, 16);
  return Buffer.concat([...parts, list, end]);
}

function crc32(bytes) {
  let crc = ~0;
  for (const byte of bytes) {
    crc ^= byte;
    for (let bit = 0; bit < 8; bit++) crc = (crc >>> 1) ^ (crc & 1 ? 0xedb88320 : 0);
  }
  return ~crc >>> 0;
}
