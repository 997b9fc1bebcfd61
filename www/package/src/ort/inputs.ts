import type { Tensor } from 'onnxruntime-common';
import type { Feed, Port } from '../index.js';
import { deviceBufferOf } from './buffers.js';
import { failed } from './failures.js';
import { readFromPage } from './page.js';

/**
 * What Kilim is given for an input. The tensor may be of another copy of onnxruntime-common.
 * @throws KilimError `DTYPE` and `SHAPE` in onnxruntime's words, `UNSUPPORTED` for buffers of devices that are not known.
 */
export function toFeed(port: Port, tensor: Tensor): Feed | Promise<Feed> {
  const { name } = port;
  if (typeof tensor !== 'object' || tensor === null) throw new TypeError(`input '${name}' is no tensor`);
  const { location = 'cpu' } = tensor;
  if (location === 'gpu-buffer') return fromDevice(port, tensor);
  // A tensor that was disposed of is at `none`.
  if (location !== 'cpu' && location !== 'cpu-pinned') throw new Error(`invalid data location: ${location} for input "${name}"`);
  checkInput(port, tensor);
  return hostFeed(tensor.type, tensor.dims, tensor.data);
}

function hostFeed(type: string, dims: readonly number[], data: unknown): Feed {
  // Packed elements are bytes, whatever their sign.
  const bytes = data instanceof Int8Array && type === 'int4' ? new Uint8Array(data.buffer, data.byteOffset, data.byteLength) : data;
  return { type, dims, data: bytes } as Feed;
}

function fromDevice(port: Port, tensor: Tensor): Feed | Promise<Feed> {
  checkInput(port, tensor);
  const buffer = deviceBufferOf(tensor);
  if (!buffer) return readFromPage(tensor, `input '${port.name}'`);
  const kept = buffer.tensor;
  if (kept.type === tensor.type && same(kept.dims, tensor.dims)) return kept;
  // A tensor of other dimensions on the same buffer.
  const { type, dims } = tensor;
  return kept.read().then(({ data }) => hostFeed(type, dims, data));
}

const same = (a: readonly number[], b: readonly number[]): boolean => a.length === b.length && a.every((d, i) => d === b[i]);

const PLEASE = 'Please fix either the inputs/outputs or the model.';

function checkInput({ name, type, dims, kind }: Port, tensor: Tensor): void {
  if (kind !== 'tensor') return;
  if (type !== null && tensor.type !== type) {
    const message = `Unexpected input data type. Actual: (tensor(${said(tensor.type)})) , expected: (tensor(${said(type)}))`;
    throw failed('run', 'DTYPE', message, { input: name });
  }
  if (dims === null) return;
  if (dims.length !== tensor.dims.length) {
    const message = `Invalid rank for input: ${name} Got: ${tensor.dims.length} Expected: ${dims.length} ${PLEASE}`;
    throw failed('run', 'SHAPE', message, { input: name });
  }
  const wrong = dims.flatMap((d, i) =>
    typeof d === 'number' && d !== tensor.dims[i] ? [`\n index: ${i} Got: ${tensor.dims[i]} Expected: ${d}`] : [],
  );
  if (wrong.length > 0) {
    const message = `Got invalid dimensions for input: ${name} for the following indices${wrong.join('')}\n ${PLEASE}`;
    throw failed('run', 'SHAPE', message, { input: name });
  }
}

/** What onnxruntime's messages call the types that have another name there. */
const said = (type: string): string => ({ float32: 'float', float64: 'double' })[type] ?? type;
