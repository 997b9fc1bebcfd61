import { KilimError, Tensor } from 'kilim';
import type { DType } from 'kilim';
import { asBytes, asText, fields, floats, numbers } from './wire.js';

/** The element types by their numbers in onnx.proto. */
const TYPES: Record<number, DType> = {
  1: 'float32',
  2: 'uint8',
  3: 'int8',
  4: 'uint16',
  5: 'int16',
  6: 'int32',
  7: 'int64',
  8: 'string',
  9: 'bool',
  10: 'float16',
  11: 'float64',
  12: 'uint32',
  13: 'uint64',
  14: 'complex64',
  15: 'complex128',
  16: 'bfloat16',
  17: 'float8e4m3fn',
  18: 'float8e4m3fnuz',
  19: 'float8e5m2',
  20: 'float8e5m2fnuz',
  21: 'uint4',
  22: 'int4',
  23: 'float4e2m1',
  24: 'float8e8m0',
  25: 'uint2',
  26: 'int2',
};

/** The head of a `TensorProto`, whose elements are read when they are asked for. */
export interface StoredTensor {
  name: string;
  /** Missing for a type that onnx.proto does not have. */
  type: DType | undefined;
  dims: number[];
  /** Where the elements are in another file. */
  external: boolean;
  message: Uint8Array;
}

export function storedTensor(message: Uint8Array): StoredTensor {
  const stored: StoredTensor = { name: '', type: undefined, dims: [], external: false, message };
  for (const [field, value] of fields(message)) {
    if (field === 1) stored.dims.push(...numbers(value).map(Number));
    else if (field === 2) stored.type = TYPES[Number(value)];
    else if (field === 8) stored.name = asText(value);
    else if (field === 14) stored.external = value === 1n;
  }
  return stored;
}

/**
 * The tensor of a `TensorProto`.
 * @throws KilimError `INVALID_MODEL` where its elements do not fill its dimensions or are in another file, `LIMIT` where it is too large.
 */
export function readTensor({ name, type, dims, external, message }: StoredTensor): Tensor {
  const wrong = (what: string) => new KilimError('INVALID_MODEL', `the tensor \`${name}\` ${what}`);
  if (type === undefined) throw wrong('has an element type that is not known');
  if (external) throw wrong('is in another file');
  const count = dims.reduce((product, dim) => product * dim, 1);
  const texts: string[] = [];
  let raw: Uint8Array | undefined;
  const held: (number | bigint)[] = [];
  for (const [field, value] of fields(message)) {
    if (field === 4) for (const number of floats(value)) held.push(number);
    else if (field === 5 || field === 7 || field === 11) for (const number of numbers(value)) held.push(number);
    else if (field === 6) texts.push(asText(value));
    else if (field === 9) raw = asBytes(value);
    else if (field === 10) {
      const bytes = asBytes(value);
      const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
      for (let at = 0; at + 8 <= bytes.length; at += 8) held.push(view.getFloat64(at, true));
    }
  }
  if (type === 'string') {
    if (texts.length !== count) throw wrong(`has ${texts.length} texts, not ${count}`);
    return new Tensor(type, dims, texts);
  }
  // No room is made for elements that the file does not have.
  if (!(count <= (raw ? 4 * raw.length : 4 * held.length))) throw wrong('has fewer elements than its dimensions say');
  const tensor = new Tensor(type, dims) as Exclude<Tensor, Tensor<'string'>>;
  const { data } = tensor;
  if (raw) {
    if (raw.length !== data.byteLength) throw wrong(`has ${raw.length} bytes, not ${data.byteLength}`);
    new Uint8Array(data.buffer).set(raw);
    return tensor;
  }
  if (held.length !== data.length) throw wrong(`has ${held.length} elements, not ${data.length}`);
  // Halves are written as their bits.
  const bits = type === 'float16' || type === 'bfloat16' ? new Uint16Array(data.buffer) : data;
  held.forEach((number, i) => {
    bits[i] = data instanceof BigInt64Array || data instanceof BigUint64Array ? BigInt(number) : (Number(number) as never);
  });
  return tensor;
}
