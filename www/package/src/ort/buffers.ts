import type { Tensor } from 'onnxruntime-common';
import { KilimError } from '../index.js';
import type { DeviceTensor, Tensor as HostTensor } from '../index.js';

/**
 * What stands in a tensor's `gpuBuffer`. No `GPUBuffer`: the memory is in Kilim's worker, and WebGPU has no way to hand it to another thread.
 * `kilim/ort` alone takes it, in any tensor that is made of it.
 */
export class DeviceBuffer {
  readonly label = "a buffer in Kilim's worker";
  #tensor: DeviceTensor | undefined;

  constructor(tensor: DeviceTensor) {
    this.#tensor = tensor;
  }

  /** @throws KilimError `STATE` where it was disposed of. */
  get tensor(): DeviceTensor {
    if (!this.#tensor) throw new KilimError('STATE', 'The tensor is disposed.');
    return this.#tensor;
  }

  read(): Promise<HostTensor> {
    return this.tensor.read();
  }

  /** Holds `tensor` from now on. */
  replace(tensor: DeviceTensor): void {
    this.#tensor?.dispose();
    this.#tensor = tensor;
  }

  destroy(): void {
    this.#tensor?.dispose();
    this.#tensor = undefined;
  }
}

/** The buffer of a tensor on Kilim's device. */
export function deviceBufferOf(tensor: Tensor): DeviceBuffer | undefined {
  const buffer: unknown = tensor.location === 'gpu-buffer' ? tensor.gpuBuffer : undefined;
  return buffer instanceof DeviceBuffer ? buffer : undefined;
}
