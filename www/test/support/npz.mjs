// Reads the arrays of a numpy `.npz` file, as far as numpy itself writes it.
import { readFileSync } from 'node:fs';
import { entries } from './zip.mjs';

const TYPES = {
  '<f4': 'float32',
  '<f8': 'float64',
  '<f2': 'float16',
  '|i1': 'int8',
  '<i2': 'int16',
  '<i4': 'int32',
  '<i8': 'int64',
  '|u1': 'uint8',
  '<u2': 'uint16',
  '<u4': 'uint32',
  '<u8': 'uint64',
  '|b1': 'bool',
};

/** `{key: {type, dims, bytes}}`. */
export function readNpz(path) {
  return Object.fromEntries([...entries(readFileSync(path))].map(([name, file]) => [name.replace(/\.npy$/, ''), readNpy(file)]));
}

function readNpy(file) {
  const wide = file[6] > 1;
  const length = wide ? file.readUInt32LE(8) : file.readUInt16LE(8);
  const start = (wide ? 12 : 10) + length;
  const header = file.toString('latin1', wide ? 12 : 10, start);
  const descr = /'descr':\s*'([^']+)'/.exec(header)[1];
  if (!TYPES[descr] || !/'fortran_order':\s*False/.test(header)) throw new Error(`an array of ${descr} cannot be read: ${header}`);
  const dims = /'shape':\s*\(([^)]*)\)/
    .exec(header)[1]
    .split(',')
    .map((d) => d.trim())
    .filter(Boolean)
    .map(Number);
  return { type: TYPES[descr], dims, bytes: file.subarray(start) };
}
