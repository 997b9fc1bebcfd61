// Reads the arrays of a numpy `.npz` file, as far as numpy itself writes it.
import { readFileSync } from 'node:fs';
import { inflateRawSync } from 'node:zlib';

const TYPES = {
  '<f4': 'float32', '<f8': 'float64', '<f2': 'float16', '|i1': 'int8', '<i2': 'int16', '<i4': 'int32', '<i8': 'int64',
  '|u1': 'uint8', '<u2': 'uint16', '<u4': 'uint32', '<u8': 'uint64', '|b1': 'bool',
};

/** `{key: {type, dims, bytes}}`. */
export function readNpz(path) {
  const file = readFileSync(path);
  const arrays = {};
  const end = file.lastIndexOf(Buffer.from('PK\x05\x06', 'latin1'));
  let entry = file.readUInt32LE(end + 16);
  for (let left = file.readUInt16LE(end + 10); left > 0; left--) {
    const [method, packed] = [file.readUInt16LE(entry + 10), file.readUInt32LE(entry + 20)];
    const [name, extra, comment] = [28, 30, 32].map((at) => file.readUInt16LE(entry + at));
    const local = file.readUInt32LE(entry + 42);
    const start = local + 30 + file.readUInt16LE(local + 26) + file.readUInt16LE(local + 28);
    const data = file.subarray(start, start + packed);
    const key = file.toString('utf8', entry + 46, entry + 46 + name).replace(/\.npy$/, '');
    arrays[key] = readNpy(method === 8 ? inflateRawSync(data) : data);
    entry += 46 + name + extra + comment;
  }
  return arrays;
}

function readNpy(file) {
  const wide = file[6] > 1;
  const length = wide ? file.readUInt32LE(8) : file.readUInt16LE(8);
  const start = (wide ? 12 : 10) + length;
  const header = file.toString('latin1', wide ? 12 : 10, start);
  const descr = /'descr':\s*'([^']+)'/.exec(header)[1];
  if (!TYPES[descr] || !/'fortran_order':\s*False/.test(header)) throw new Error(`an array of ${descr} cannot be read: ${header}`);
  const dims = /'shape':\s*\(([^)]*)\)/.exec(header)[1].split(',').map((d) => d.trim()).filter(Boolean).map(Number);
  return { type: TYPES[descr], dims, bytes: file.subarray(start) };
}
