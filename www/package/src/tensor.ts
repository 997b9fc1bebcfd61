import { bytesOf } from './bytes.js';
import { describe } from './describe.js';
import { KilimError, reading } from './errors.js';
import { halfToNumber, numberToBfloat, numberToHalf } from './halves.js';
import { NARROW_TYPES, isNarrow, pack, packedLength, unpack } from './narrow.js';
import type { NarrowType } from './narrow.js';

/** The arrays that hold elements. */
export type TypedArray =
  | Float32Array
  | Float64Array
  | Int8Array
  | Int16Array
  | Int32Array
  | BigInt64Array
  | Uint8Array
  | Uint8ClampedArray
  | Uint16Array
  | Uint32Array
  | BigUint64Array;

interface ArrayType {
  readonly BYTES_PER_ELEMENT: number;
  new (buffer: ArrayBufferLike, byteOffset?: number, length?: number): TypedArray;
  readonly name: string;
  new (length: number): TypedArray;
}

// `Float16Array` is younger than the rest; without it float16 is read and written as its bits.
const half = ((globalThis as Record<string, unknown>)['Float16Array'] as ArrayType | undefined) ?? Uint16Array;

/** What holds elements; narrow types and strings have rules of their own. */
interface Arrays {
  float32: Float32Array;
  float64: Float64Array;
  float16: HalfArray;
  bfloat16: Uint16Array;
  int8: Int8Array;
  int16: Int16Array;
  int32: Int32Array;
  int64: BigInt64Array;
  uint8: Uint8Array;
  uint16: Uint16Array;
  uint32: Uint32Array;
  uint64: BigUint64Array;
  bool: Uint8Array;
  complex64: Float32Array;
  complex128: Float64Array;
}

const ARRAYS = {
  float32: Float32Array,
  float64: Float64Array,
  float16: half,
  bfloat16: Uint16Array,
  int8: Int8Array,
  int16: Int16Array,
  int32: Int32Array,
  int64: BigInt64Array,
  uint8: Uint8Array,
  uint16: Uint16Array,
  uint32: Uint32Array,
  uint64: BigUint64Array,
  bool: Uint8Array,
  complex64: Float32Array,
  complex128: Float64Array,
} satisfies Record<keyof Arrays, ArrayType>;

/** An element type, named as in numpy. */
export type DType = keyof Arrays | NarrowType | 'string';

/** Elements as they are given and come: strings in an array of strings, all others in a typed array. */
export type Elements = TypedArray | HalfArray | readonly string[];

/** Where the types of the page know no `Float16Array`, only its bits. */
type HalfArray = Uint16Array | (typeof globalThis extends { Float16Array: { prototype: infer A } } ? A : never);

/** The array that holds elements of a type. */
export type ArrayOf<T extends DType> = T extends 'string' ? readonly string[] : T extends keyof Arrays ? Arrays[T] : Uint8Array;

/** What a tensor looks like; any object of this form is taken. */
export interface TensorLike {
  type: DType;
  /** Row-major: the last dimension is the densest. `[]` is a scalar. */
  dims: readonly number[];
  data: Elements;
}

/**
 * A dense row-major tensor. The `type` says what kind of array `data` is:
 *
 *     const mask = new Tensor('int64', [1, 2], BigInt64Array.of(1n, 0n));
 *     if (output.type === 'float32') console.log(Math.max(...output.data));
 *
 * `int64` lies in a `BigInt64Array`, `bool` in a `Uint8Array` of 0 and 1, `float16` in a
 * `Float16Array` where the browser has one and otherwise as bits in a `Uint16Array`, `bfloat16` as bits. Types of at
 * most 8 bits lie in a `Uint8Array` as in files: packed, the first element in the lowest bits. A complex number is two
 * elements of the array, its real and its imaginary part. Strings are an array.
 */
export type Tensor<T extends DType = DType> = T extends DType ? DenseTensor<T> : never;

interface DenseTensor<T extends DType> {
  readonly type: T;
  readonly dims: readonly number[];
  readonly data: ArrayOf<T>;
  /**
   * The elements as numbers: `int64` loses what a double cannot hold, narrow types are widened.
   * @throws KilimError `DTYPE` for strings.
   */
  toNumbers(): Float64Array;
}

/** The array that may be given for elements of a type: pixels are `uint8`, too. */
export type GivenArrayOf<T extends DType> = ArrayOf<T> | (T extends 'uint8' ? Uint8ClampedArray : never);

export interface TensorClass {
  readonly prototype: Tensor;
  /**
   * Makes a tensor of `data`; where this is left out, of zeros or empty strings.
   * @throws KilimError `SHAPE` where the data does not fill the dimensions, `DTYPE` where it is of another type, `LIMIT` where there is no
   * memory for the zeros.
   */
  new <T extends DType>(type: T, dims: readonly number[], data?: GivenArrayOf<T>): Tensor<T>;
}

export const Tensor = class Tensor<T extends DType> implements DenseTensor<T> {
  readonly type: T;
  readonly dims: readonly number[];
  readonly data: ArrayOf<T>;

  constructor(type: T, dims: readonly number[], data?: GivenArrayOf<T>) {
    const own = reading('a tensor', () => {
      const made = { type, dims: dimsOf(dims), data: data ?? zeros(type, elementCount(dims)) };
      check(made);
      return made;
    });
    this.type = own.type;
    this.dims = own.dims;
    this.data = own.data as ArrayOf<T>;
  }

  toNumbers(): Float64Array {
    return toNumbers(this);
  }
} as unknown as TensorClass;

/** A tensor of elements whose kind follows from `type`. */
const tensorOf = <T extends DType>(type: T, dims: readonly number[], data: Elements | undefined): Tensor<T> =>
  new Tensor(type, dims, data as GivenArrayOf<T>);

/**
 * The elements of any tensor as numbers.
 *
 *     const best = Math.max(...toNumbers(tensor));
 */
export function toNumbers(tensor: TensorLike): Float64Array {
  return reading('a tensor', () => {
    check(tensor);
    const { type, data } = tensor;
    if (type === 'string') throw new KilimError('DTYPE', 'strings are no numbers', { got: type });
    if (isNarrow(type)) return unpack(type, elementCount(tensor.dims), data as Uint8Array);
    if (type === 'bfloat16') {
      const wide = Uint32Array.from(data as Uint16Array, (bits) => bits << 16);
      return Float64Array.from(new Float32Array(wide.buffer));
    }
    if (type === 'float16' && data instanceof Uint16Array) return Float64Array.from(data, halfToNumber);
    return Float64Array.from(data as ArrayLike<number | bigint>, Number);
  });
}

/**
 * Numbers as a tensor of any type, of complex ones both parts in turn: integers are cut off, `bool` is whatever is not zero, strings are decimal.
 *
 *     const ids = fromNumbers('int64', [1, 3], [101, 7592, 102]);
 *
 * @throws KilimError `DTYPE` where values are no numbers, `INVALID_VALUE` where one that is not finite should become a 64-bit integer.
 */
export function fromNumbers<T extends DType>(type: T, dims: readonly number[], values: ArrayLike<number>): Tensor<T> {
  return reading('the values of a tensor', () => {
    const count = elementCount(dims);
    if (typeof values !== 'object' || !Number.isSafeInteger(values?.length))
      throw new KilimError('DTYPE', 'a tensor is made of an array of numbers', { got: describe(values) });
    if (values.length !== numberCount(type, count)) wrongCount(type, dims, numberCount(type, count), values.length);
    for (let i = 0; i < values.length; i++) checkNumber(type, values[i]);
    if (type === 'string') return tensorOf(type, dims, Array.from(values, String));
    if (isNarrow(type)) return tensorOf(type, dims, pack(type, values));
    const data = new (arrayOf(type))(values.length);
    const convert = converter(type, data);
    for (let i = 0; i < values.length; i++) data[i] = convert(values[i] as number) as never;
    return tensorOf(type, dims, data);
  });
}

/** 64-bit integers are taken as they are, too. */
function checkNumber(type: DType, value: unknown): void {
  const wide = type === 'int64' || type === 'uint64';
  if (typeof value === 'number') {
    if (wide && !Number.isFinite(value)) throw new KilimError('INVALID_VALUE', `${value} cannot be an element of ${type}`);
  } else if (!(wide && typeof value === 'bigint')) {
    throw new KilimError('DTYPE', 'an element is no number', {
      expected: type,
      got: describe(value),
      ...(Array.isArray(value) && { hint: 'give all elements in one flat array' }),
    });
  }
}

function converter(type: DType, data: TypedArray): (value: number | bigint) => number | bigint {
  if (data instanceof BigInt64Array || data instanceof BigUint64Array) return (v) => (typeof v === 'bigint' ? v : BigInt(Math.trunc(v)));
  if (type === 'bool') return (v) => Number(v !== 0);
  if (type === 'bfloat16') return (v) => numberToBfloat(Number(v));
  if (type === 'float16' && data instanceof Uint16Array) return (v) => numberToHalf(Number(v));
  return (v) => v;
}

/** The type that an array is taken for when nothing else says so; `Uint16Array` is `uint16`. */
export function typeOfArray(data: TypedArray): DType {
  if (data instanceof Uint16Array) return 'uint16';
  const types = Object.keys(ARRAYS) as (keyof typeof ARRAYS)[];
  return types.find((type) => type !== 'bfloat16' && data instanceof ARRAYS[type]) ?? 'uint8';
}

/** Whether an array of `data`'s kind can hold elements of `type`. */
export function canHold(type: DType, data: TypedArray): boolean {
  if (type === 'float16') return data instanceof half || data instanceof Uint16Array;
  if (type === 'uint8' && data instanceof Uint8ClampedArray) return true;
  return type !== 'string' && data instanceof arrayOf(type);
}

/** True for any value that may be given as elements. */
export function isTypedArray(value: unknown): value is TypedArray {
  return ArrayBuffer.isView(value) && !(value instanceof DataView);
}

/** True for an array of strings. */
export function isStrings(value: unknown): value is readonly string[] {
  return Array.isArray(value) && value.every((item) => typeof item === 'string');
}

function arrayOf(type: Exclude<DType, 'string'>): ArrayType {
  if (isNarrow(type)) return Uint8Array;
  if (Object.hasOwn(ARRAYS, type)) return ARRAYS[type];
  const known = [...Object.keys(ARRAYS), ...NARROW_TYPES, 'string'];
  throw new KilimError('DTYPE', `there is no element type ${describe(type)}`, {
    expected: known.join(', '),
    got: typeof type === 'string' ? type : describe(type),
  });
}

/** The most strings that an engine makes an array of at once. */
const MOST_STRINGS = 2 ** 26;

function zeros(type: DType, count: number): Elements {
  const length = dataLength(type, count);
  const array = type === 'string' ? undefined : arrayOf(type);
  try {
    if (array) return new array(length);
    if (length > MOST_STRINGS) throw new RangeError(`more than ${MOST_STRINGS} strings`);
    return new Array<string>(length).fill('');
  } catch (error) {
    throw new KilimError('LIMIT', 'there is no memory for a tensor of that size', { got: `${count} elements of ${type}` }, error);
  }
}

/** The length of the array that holds so many elements. */
function dataLength(type: DType, count: number): number {
  return isNarrow(type) ? packedLength(type, count) : numberCount(type, count);
}

/** So many elements are twice as many numbers where they are complex. */
function numberCount(type: DType, count: number): number {
  return type === 'complex64' || type === 'complex128' ? 2 * count : count;
}

/**
 * A copy of the dimensions.
 * @throws KilimError `SHAPE` where they are none.
 */
export function dimsOf(dims: readonly number[] | undefined): number[] {
  if (!Array.isArray(dims) && !isTypedArray(dims))
    throw new KilimError('SHAPE', 'a tensor needs `dims`, an array of numbers', { got: describe(dims) });
  const list = Array.from<number>(dims as readonly number[]);
  const bad = list.findIndex((d) => !Number.isSafeInteger(d) || d < 0);
  if (bad >= 0)
    throw new KilimError('SHAPE', 'a dimension must be a whole number, zero or more', {
      got: `[${list.map((d) => (typeof d === 'number' ? d : describe(d))).join(', ')}]`,
    });
  return list;
}

/** The product of the dimensions. */
export function elementCount(dims: readonly number[] | undefined): number {
  const list = dimsOf(dims);
  const count = list.includes(0) ? 0 : list.reduce((n, d) => n * d, 1);
  if (!Number.isSafeInteger(count)) throw new KilimError('LIMIT', 'no tensor has so many elements', { got: `[${list.join(', ')}]` });
  return count;
}

function wrongCount(type: DType, dims: readonly number[], expected: number, got: number): never {
  throw new KilimError('SHAPE', `the data does not fill a ${type} tensor of dimensions [${dimsOf(dims).join(', ')}]`, {
    expected: `${expected} elements`,
    got: `${got} elements`,
  });
}

/** Throws where a tensor's data does not agree with its type and dimensions. */
export function check(tensor: TensorLike): void {
  const count = elementCount(tensor?.dims);
  const { type, dims, data } = tensor;
  const expected = type === 'string' ? 'an array of strings' : arrayOf(type).name;
  if (type === 'string' ? !isStrings(data) : !isTypedArray(data) || !canHold(type, data)) {
    throw new KilimError('DTYPE', `the data of a ${type} tensor is in the wrong kind of array`, { expected, got: describe(data) });
  }
  if (isTypedArray(data)) bytesOf(data, 'INVALID_VALUE');
  if (data.length !== dataLength(type, count)) wrongCount(type, dims, dataLength(type, count), data.length);
}

/** A tensor in the form that crosses into the runtime: bytes, or strings. */
export interface WireTensor {
  name: string;
  type: DType;
  dims: readonly number[];
  bytes?: Uint8Array;
  texts?: readonly string[];
}

export function toWire(name: string, { type, dims, data }: TensorLike): WireTensor {
  if (!isTypedArray(data)) return { name, type, dims: dimsOf(dims), texts: data };
  return { name, type, dims: dimsOf(dims), bytes: bytesOf(data, 'INVALID_VALUE') };
}

/** Takes the bytes as they are; they are a buffer of their own. */
export function fromWire({ type, dims, bytes, texts }: WireTensor): Tensor {
  if (type === 'string' || !bytes) return tensorOf(type, dims, texts);
  const array = arrayOf(type);
  return tensorOf(type, dims, new array(bytes.buffer, bytes.byteOffset, bytes.byteLength / array.BYTES_PER_ELEMENT));
}
