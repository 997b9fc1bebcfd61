/** Brings pictures into a tensor on a GPU. Where a runtime is, it imports this module for the first of them. */
import { SHADER } from './painter-shader.js';

/** A picture, and what becomes of it. */
export interface PictureToPaint {
  /** Four bytes to a pixel, or what the browser copies to a GPU itself. */
  source: Uint8Array<ArrayBuffer> | Uint8ClampedArray<ArrayBuffer> | ImageBitmap;
  /** Where the source is bytes, the first that counts, and the bytes of a row. */
  offset: number;
  row: number;
  /** Columns and rows of the source that count. */
  size: { width: number; height: number };
  /** What the shader reads. */
  plan: Int32Array;
}

/** Pictures for a tensor. */
export interface PaintRequest {
  type: string;
  dims: readonly number[];
  /** Columns and rows that each picture has in the tensor. */
  size: { width: number; height: number };
  pictures: PictureToPaint[];
}

/** A tensor that is to be written, on a device of WebGPU. */
export interface Canvas {
  device: Device;
  buffer: object;
}

/** The parts of WebGPU's types that are used here. */
interface Texture {
  createView(): object;
  destroy(): void;
}
interface Pipeline {
  getBindGroupLayout(group: number): object;
}
interface Pass {
  setPipeline(pipeline: Pipeline): void;
  setBindGroup(group: number, resources: object): void;
  dispatchWorkgroups(x: number, y: number): void;
  end(): void;
}
interface Device {
  readonly limits: { maxTextureDimension2D: number; maxStorageBufferBindingSize: number; maxComputeWorkgroupsPerDimension: number };
  readonly queue: {
    submit(commands: readonly object[]): void;
    writeBuffer(buffer: object, offset: number, data: Int32Array): void;
    writeTexture(to: object, data: Uint8Array | Uint8ClampedArray, layout: object, size: readonly number[]): void;
    copyExternalImageToTexture(from: object, to: object, size: readonly number[]): void;
  };
  createBuffer(about: { size: number; usage: number }): { destroy(): void };
  createTexture(about: object): Texture;
  createShaderModule(about: { code: string }): object;
  createComputePipeline(about: object): Pipeline;
  createBindGroup(about: object): object;
  createCommandEncoder(): { beginComputePass(): Pass; finish(): object };
}

/** GPUBufferUsage.STORAGE and COPY_DST. */
const [STORAGE, COPY_TO_BUFFER] = [128, 8];
/** GPUTextureUsage.TEXTURE_BINDING, COPY_DST and RENDER_ATTACHMENT, which copies of pictures need. */
const TEXTURE = 4 | 2 | 16;
/** Threads along each side of a workgroup. */
const SIDE = 8;
/** Places of a plan where the columns of the shown part and the rows that its columns need are. */
const [SHOWN, ROWS] = [4, 7];

const kept = new WeakMap<Device, { across: Pipeline; down: Pipeline }>();

function pipelinesOf(device: Device): { across: Pipeline; down: Pipeline } {
  const known = kept.get(device);
  if (known) return known;
  const module = device.createShaderModule({ code: SHADER });
  const make = (entryPoint: string): Pipeline => device.createComputePipeline({ layout: 'auto', compute: { module, entryPoint } });
  const made = { across: make('across'), down: make('down') };
  kept.set(device, made);
  return made;
}

const wideOf = (plan: Int32Array): [columns: number, rows: number] => [plan[SHOWN] as number, plan[ROWS] as number];

/** Whether the device can take the pictures. */
export function fits({ limits }: Device, { size, pictures }: PaintRequest): boolean {
  const most = SIDE * limits.maxComputeWorkgroupsPerDimension;
  return pictures.every(({ size: own, plan }) => {
    const [columns, rows] = wideOf(plan);
    return (
      Math.max(own.width, own.height) <= limits.maxTextureDimension2D &&
      Math.max(4 * columns * rows, plan.byteLength) <= limits.maxStorageBufferBindingSize &&
      Math.max(size.width, size.height, columns, rows) <= most
    );
  });
}

/** Writes the pictures into the tensor, by commands that are submitted before the call returns. */
export function paint({ device, buffer: elements }: Canvas, { size, pictures }: PaintRequest): void {
  const { across, down } = pipelinesOf(device);
  for (const picture of pictures) {
    const [columns, rows] = wideOf(picture.plan);
    const texture = textureOf(device, picture);
    const plan = device.createBuffer({ size: picture.plan.byteLength, usage: STORAGE | COPY_TO_BUFFER });
    device.queue.writeBuffer(plan, 0, picture.plan);
    const wide = device.createBuffer({ size: 4 * columns * rows, usage: STORAGE });
    const resources: object[] = [{ buffer: plan }, texture.createView(), { buffer: wide }, { buffer: elements }];
    const encoder = device.createCommandEncoder();
    const pass = encoder.beginComputePass();
    const dispatch = (pipeline: Pipeline, bindings: readonly number[], width: number, height: number): void => {
      const entries = bindings.map((binding) => ({ binding, resource: resources[binding] }));
      pass.setPipeline(pipeline);
      pass.setBindGroup(0, device.createBindGroup({ layout: pipeline.getBindGroupLayout(0), entries }));
      pass.dispatchWorkgroups(Math.ceil(width / SIDE), Math.ceil(height / SIDE));
    };
    dispatch(across, [0, 1, 2], columns, rows);
    dispatch(down, [0, 2, 3], size.width, size.height);
    pass.end();
    device.queue.submit([encoder.finish()]);
    for (const used of [texture, plan, wide]) used.destroy();
  }
}

function textureOf(device: Device, { source, offset, row, size }: PictureToPaint): Texture {
  const extent = [size.width, size.height];
  const texture = device.createTexture({ size: extent, format: 'rgba8unorm', usage: TEXTURE });
  if ('buffer' in source) {
    device.queue.writeTexture({ texture }, source, { offset, bytesPerRow: row }, extent);
    return texture;
  }
  // The colours of transparent pixels stay, as they do where a picture is drawn from bytes.
  device.queue.copyExternalImageToTexture({ source }, { texture, premultipliedAlpha: false, colorSpace: 'srgb' }, extent);
  source.close();
  return texture;
}
