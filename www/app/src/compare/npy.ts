import { KilimError, Tensor } from 'kilim';
import type { DType } from 'kilim';

const TYPES: Record<string, DType> = {
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
  '<c8': 'complex64',
  '<c16': 'complex128',
};

const MAGIC = [0x93, 0x4e, 0x55, 0x4d, 0x50, 0x59];

/**
 * The array of a `.npy` file of numpy, in C's order of elements.
 * @throws KilimError `INVALID_VALUE` for what is none, `UNSUPPORTED` for Fortran's order and types that are no elements of tensors.
 */
export function readNpy(name: string, bytes: Uint8Array): Tensor {
  const damaged = (why: string) => new KilimError('INVALID_VALUE', `${name} is no array of numpy: ${why}`);
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  if (bytes.length < 12 || MAGIC.some((byte, i) => bytes[i] !== byte)) throw damaged('it does not begin as one');
  const wide = (bytes[6] as number) > 1;
  const start = (wide ? 12 : 10) + (wide ? view.getUint32(8, true) : view.getUint16(8, true));
  if (start > bytes.length) throw damaged('it is cut off');
  const header = new TextDecoder('latin1').decode(bytes.subarray(wide ? 12 : 10, start));
  const descr = /'descr':\s*'([^']+)'/.exec(header)?.[1] ?? '';
  const shape = /'shape':\s*\(([\d\s,]*)\)/.exec(header)?.[1];
  const type = TYPES[descr];
  if (!type || /'fortran_order':\s*True/.test(header))
    throw new KilimError('UNSUPPORTED', `${name} has elements that are not read`, {
      expected: Object.keys(TYPES).join(', '),
      got: header.trim(),
    });
  if (shape === undefined) throw damaged('it has no shape');
  const dims = shape
    .split(',')
    .map((dim) => dim.trim())
    .filter(Boolean)
    .map(Number);
  const count = dims.reduce((product, dim) => product * dim, 1);
  // Room is made for elements that the file has.
  if (!(count <= bytes.length - start)) throw damaged('it has fewer elements than its shape says');
  const tensor = new Tensor(type, dims) as Exclude<Tensor, Tensor<'string'>>;
  if (tensor.data.byteLength !== bytes.length - start) throw damaged('its size is not that of its shape');
  new Uint8Array(tensor.data.buffer).set(bytes.subarray(start));
  return tensor;
}
