import { Tensor } from 'onnxruntime-common';
import type { InferenceSession } from 'onnxruntime-common';
import { DeviceTensor, KilimError, Tensor as HostTensor } from '../index.js';
import type { Port, Value } from '../index.js';
import { DeviceBuffer, deviceBufferOf } from './buffers.js';
import { failed } from './failures.js';
import { invalid } from './options.js';
import { writeToPage } from './page.js';

type Options = InferenceSession.SessionOptions;

/** Types of tensors that onnxruntime lets stay on a GPU. */
const ON_GPU = ['float32', 'float16', 'int32', 'int64', 'uint32', 'uint8', 'bool', 'int4', 'uint4'];

/**
 * The outputs that stay on the device.
 * @throws KilimError `INVALID_VALUE` for a place where outputs cannot be, in onnxruntime-web's words.
 */
export function keptOutputs(outputs: readonly Port[], options: Options): ReadonlySet<string> {
  const { preferredOutputLocation: wanted = options.enableGraphCapture ? 'gpu-buffer' : 'cpu' } = options;
  const gpu = (options.executionProviders ?? []).some((provider) => (typeof provider === 'string' ? provider : provider.name) === 'webgpu');
  const kept = outputs.filter(({ name, kind, optional, type }) => {
    const location = typeof wanted === 'string' ? wanted : (wanted[name] ?? 'cpu');
    if (location === 'cpu' || location === 'cpu-pinned') return false;
    if (location === 'ml-tensor') throw invalid('preferredLocation "ml-tensor" is not supported without using WebNN.');
    if (location !== 'gpu-buffer') throw invalid(`Not supported preferred output location: ${location}.`);
    if (!gpu) throw invalid('preferredLocation "gpu-buffer" is not supported without using WebGPU.');
    return kind === 'tensor' && !optional && ON_GPU.includes(type ?? '');
  });
  return new Set(kept.map(({ name }) => name));
}

/** What a run gave for an output, as the caller has it: in `given`, where there is a tensor to fill. */
export async function toOutput(name: string, value: Value | undefined, given: Tensor | null): Promise<Tensor> {
  if (value instanceof DeviceTensor) return given ? fillOnDevice(name, value, given) : onDevice(value);
  if (value === undefined || value === null || Array.isArray(value) || value instanceof Map) {
    throw new KilimError('UNSUPPORTED', `output '${name}' is no tensor`, { hint: 'name the outputs that are tensors in `fetches`' });
  }
  return given ? fill(name, value, given) : onHost(value);
}

function onHost({ type, data, dims }: HostTensor): Tensor {
  return new Tensor(type as 'float32', data as Float32Array, [...dims]);
}

/** An empty tensor is on the CPU, as it is with onnxruntime-web. */
function onDevice(tensor: DeviceTensor): Tensor {
  const { type, dims } = tensor;
  if (dims.includes(0)) {
    tensor.dispose();
    return onHost(new HostTensor(type, dims));
  }
  const buffer = new DeviceBuffer(tensor);
  return Tensor.fromGpuBuffer(buffer as never, {
    dataType: type as 'float32',
    dims: [...dims],
    download: async () => (await buffer.read()).data as Float32Array,
    dispose: () => buffer.destroy(),
  });
}

function fillOnDevice(name: string, value: DeviceTensor, given: Tensor): Tensor {
  checkPlace(name, value, given);
  deviceBufferOf(given)?.replace(value);
  return given;
}

async function fill(name: string, value: HostTensor, given: Tensor): Promise<Tensor> {
  checkPlace(name, value, given);
  if (given.location === 'gpu-buffer') {
    await writeToPage(value, given, `output '${name}'`);
    return given;
  }
  const place = given.data as unknown as { set?(data: ArrayLike<unknown>): void } & unknown[];
  const { data } = value;
  if (!ArrayBuffer.isView(data)) place.splice(0, place.length, ...data);
  else if (ArrayBuffer.isView(given.data)) bytesOf(given.data).set(bytesOf(data));
  return given;
}

const bytesOf = ({ buffer, byteOffset, byteLength }: ArrayBufferView): Uint8Array => new Uint8Array(buffer, byteOffset, byteLength);

function checkPlace(name: string, { type, dims }: HostTensor | DeviceTensor, given: Tensor): void {
  if (given.type !== type) {
    throw failed('run', 'DTYPE', `Unexpected output data type. Actual: (${given.type}) , expected: (${type})`, {
      got: given.type,
      expected: type,
    });
  }
  if (given.dims.length !== dims.length || given.dims.some((d, i) => d !== dims[i])) {
    const [expected, got] = [`{${dims.join(',')}}`, `{${given.dims.join(',')}}`];
    throw failed('run', 'SHAPE', `OutputName: ${name}: Verify that the pre-allocated tensor has the shape ${expected}, not ${got}`);
  }
}
