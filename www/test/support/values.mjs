// Values as the files of the ONNX suite hold them, and how far a result may be from them. Runs in the page.
import { fields } from './onnx.mjs';

/** The element types by their numbers in onnx.proto. */
const TYPES = [
  '',
  'float32',
  'uint8',
  'int8',
  'uint16',
  'int16',
  'int32',
  'int64',
  'string',
  'bool',
  'float16',
  'float64',
  'uint32',
  'uint64',
  'complex64',
  'complex128',
  'bfloat16',
  'float8e4m3fn',
  'float8e4m3fnuz',
  'float8e5m2',
  'float8e5m2fnuz',
  'uint4',
  'int4',
  'float4e2m1',
  'float8e8m0',
  'uint2',
  'int2',
];
const [DIMS, DATA_TYPE, INT32_DATA, STRING_DATA, NAME, RAW_DATA] = [1, 2, 5, 6, 8, 9];
const FLOATS = new Set(['float64', 'float32', 'float16', 'bfloat16', 'complex64', 'complex128']);

const all = (message, wanted) => message.filter(([field]) => field === wanted).map(([, value]) => value);

/** Numbers, each by itself or several packed into bytes. */
function* varints(values) {
  for (const value of values) {
    if (typeof value === 'bigint') {
      yield value;
      continue;
    }
    let [number, shift] = [0n, 0n];
    for (const byte of value) {
      number |= BigInt(byte & 127) << shift;
      shift += 7n;
      if (byte < 128) {
        yield number;
        [number, shift] = [0n, 0n];
      }
    }
  }
}

/** A `TensorProto`'s name. */
export const nameOf = (bytes) => new TextDecoder().decode(all(fields(bytes), NAME)[0]);

/** A `TensorProto` as one of the package's tensors; `Tensor` is its class. */
export function readTensor(Tensor, bytes) {
  const message = fields(bytes);
  const type = TYPES[Number(all(message, DATA_TYPE)[0])];
  const dims = all(message, DIMS).map(Number);
  if (type === 'string')
    return new Tensor(
      type,
      dims,
      all(message, STRING_DATA).map((text) => new TextDecoder().decode(text)),
    );
  const tensor = new Tensor(type, dims);
  const data = new Uint8Array(tensor.data.buffer);
  const [raw] = all(message, RAW_DATA);
  if (raw) data.set(raw);
  else
    [...varints(all(message, INT32_DATA))].forEach((number, i) => {
      tensor.data[i] = Number(BigInt.asIntN(32, number));
    });
  return tensor;
}

/** A tensor, an array of tensors, or `null`, as `port` says. */
export function readValue(Tensor, bytes, { kind, optional }) {
  if (kind !== 'tensor' && kind !== 'sequence') throw new Error(`a file of a ${kind}`);
  const [held] = optional ? all(fields(bytes), kind === 'sequence' ? 5 : 3) : [bytes];
  if (held === undefined) return null;
  return kind === 'sequence' ? all(fields(held), 3).map((tensor) => readTensor(Tensor, tensor)) : readTensor(Tensor, held);
}

/** Why a value is not the one that is wanted; `undefined` where it is. What is no float may be off by whole steps alone. */
export function differs(got, want, tolerance) {
  if (got === null || want === null) return got === want ? undefined : 'it is absent, or should be';
  if (!Array.isArray(want)) return tensorDiffers(got, want, tolerance);
  if (!Array.isArray(got) || got.length !== want.length) return `${got?.length} tensors, not ${want.length}`;
  return want.map((tensor, i) => tensorDiffers(got[i], tensor, tolerance)).find(Boolean);
}

function tensorDiffers(got, want, { rtol, atol }) {
  const unlike = unlikeness(got, want.type, want.dims);
  if (unlike) return unlike;
  if (!FLOATS.has(want.type) && atol < 1) return unequal(got, want);
  const near = FLOATS.has(want.type) ? rtol : 0;
  return firstWrong(got.toNumbers(), want.toNumbers(), (wanted) => atol + near * Math.abs(wanted));
}

/** The bytes of all integers among some values. */
export function integersOf(values) {
  const tensors = values.flat().filter((value) => /^(bool|u?int)/.test(value?.type));
  return tensors.flatMap(({ data }) => [...new Uint8Array(data.buffer, data.byteOffset, data.byteLength)]).join();
}

function unlikeness(got, type, dims) {
  const [shown, wanted] = [`${got.type}[${got.dims}]`, `${type}[${dims}]`];
  return shown === wanted ? undefined : `${shown}, not ${wanted}`;
}

/** What is unequal between two tensors; narrow floats are compared as numbers, since several bytes are NaN. */
function unequal(got, want) {
  const same = want.type.startsWith('float') ? [got.toNumbers(), want.toNumbers()] : [got.data, want.data];
  const at = [...same[1]].findIndex((wanted, i) => !(Object.is(same[0][i], wanted) || same[0][i] === wanted));
  return at < 0 ? undefined : `element ${at} is ${same[0][at]}, not ${same[1][at]}`;
}

function firstWrong(numbers, wanted, slack) {
  const right = (got, want, most) => Object.is(got, want) || got === want || Math.abs(got - want) <= most || most === Infinity;
  const at = wanted.findIndex((want, i) => !right(numbers[i], want, slack(want, i)));
  return at < 0 ? undefined : `element ${at} is ${numbers[at]}, not ${wanted[at]} ± ${slack(wanted[at], at)}`;
}

/** What differs from an element type and numbers, with a largest difference for each number. */
export function differsFrom(got, type, want, slack) {
  const unlike = unlikeness(got, type, want.dims);
  if (unlike) return unlike;
  if (want.type !== 'float64') return unequal(got, want);
  return firstWrong(got.toNumbers(), want.toNumbers(), (_, i) => slack[i]);
}
