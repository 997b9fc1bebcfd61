import { env } from 'onnxruntime-common';
import type { Tensor } from 'onnxruntime-common';
import { KilimError, Tensor as HostTensor } from '../index.js';

/** The parts of WebGPU's types that are used here. */
interface Buffer {
  mapAsync(mode: number): Promise<void>;
  getMappedRange(): ArrayBuffer;
  destroy(): void;
}
interface Device {
  readonly lost: Promise<unknown>;
  readonly queue: { submit(commands: readonly object[]): void; writeBuffer(buffer: unknown, offset: number, data: Uint8Array): void };
  createBuffer(about: { size: number; usage: number }): Buffer;
  createCommandEncoder(): { copyBufferToBuffer(from: unknown, a: number, to: Buffer, b: number, size: number): void; finish(): object };
  pushErrorScope(filter: 'validation'): void;
  popErrorScope(): Promise<{ message: string } | null>;
}
interface Gpu {
  requestAdapter(options: object): Promise<{ requestDevice(): Promise<Device> } | null>;
}

/** GPUMapMode.READ, GPUBufferUsage.MAP_READ and COPY_DST. */
const [READ, MAP_READ, COPY_DST] = [1, 1, 8];

let asked: Promise<Device> | undefined;
let device: Device | undefined;

/**
 * Makes `env.webgpu.device` a device of the page, where code asks for it or sets it. Kilim computes on another, in a worker: buffers of this
 * one are copied into inputs and out of outputs.
 */
export function offerDevice(): void {
  Object.defineProperty(env.webgpu, 'device', { get: () => (asked ??= request()), set: usePageDevice, configurable: true });
}

/** Takes `given` for the device that buffers of the page belong to. */
export function usePageDevice(given: unknown): void {
  if (typeof (given as Device | undefined)?.createBuffer !== 'function')
    throw new KilimError('INVALID_VALUE', 'Invalid GPU device set in `env.webgpu.device`. It must be a GPUDevice object.');
  device = given as Device;
  asked = Promise.resolve(device);
}

async function request(): Promise<Device> {
  const { gpu } = (globalThis.navigator ?? {}) as { gpu?: Gpu };
  const { powerPreference } = env.webgpu;
  const adapter = await gpu?.requestAdapter({ powerPreference });
  if (!adapter) throw new KilimError('DEVICE', 'WebGPU is not supported in current environment');
  const made = await adapter.requestDevice();
  device = made;
  made.lost.then(() => {
    if (device === made) device = asked = undefined;
  });
  return made;
}

/**
 * The elements of a tensor on a buffer of the page. The copy is submitted before the call returns.
 * @throws KilimError `UNSUPPORTED` where the buffer is of another device, or may not be copied from.
 */
export async function readFromPage(tensor: Tensor, what: string): Promise<HostTensor> {
  const [owner, made] = [deviceFor(what), new HostTensor(tensor.type, tensor.dims)];
  const bytes = bytesOf(made);
  if (bytes.length === 0) return made;
  const size = padded(bytes.length);
  owner.pushErrorScope('validation');
  const staging = owner.createBuffer({ size, usage: MAP_READ | COPY_DST });
  const encoder = owner.createCommandEncoder();
  encoder.copyBufferToBuffer(tensor.gpuBuffer, 0, staging, 0, size);
  owner.queue.submit([encoder.finish()]);
  try {
    refuse(await owner.popErrorScope(), what);
    await staging.mapAsync(READ);
    bytes.set(new Uint8Array(staging.getMappedRange(), 0, bytes.length));
  } finally {
    staging.destroy();
  }
  return made;
}

/**
 * Fills the buffer of the page that `given` is on.
 * @throws KilimError `UNSUPPORTED` where the buffer is of another device, or may not be written.
 */
export async function writeToPage(value: HostTensor, given: Tensor, what: string): Promise<void> {
  const owner = deviceFor(what);
  const bytes = bytesOf(value);
  const whole = new Uint8Array(padded(bytes.length));
  whole.set(bytes);
  owner.pushErrorScope('validation');
  owner.queue.writeBuffer(given.gpuBuffer, 0, whole);
  refuse(await owner.popErrorScope(), what);
}

/** Copies of buffers are whole words. */
const padded = (bytes: number): number => Math.ceil(bytes / 4) * 4;

function bytesOf({ data }: HostTensor): Uint8Array {
  const { buffer, byteOffset, byteLength } = data as Uint8Array;
  return new Uint8Array(buffer, byteOffset, byteLength);
}

function deviceFor(what: string): Device {
  if (device) return device;
  throw new KilimError('UNSUPPORTED', `${what}: Kilim cannot tell which device the buffer belongs to`, {
    hint: "make buffers on the device of `await env.webgpu.device`, or set that to the page's own",
  });
}

function refuse(error: { message: string } | null, what: string): void {
  if (!error) return;
  throw new KilimError('UNSUPPORTED', `${what}: the buffer cannot be copied: ${error.message}`, {
    hint: 'it must be of the device `env.webgpu.device`, and have the usages COPY_SRC and COPY_DST',
  });
}
