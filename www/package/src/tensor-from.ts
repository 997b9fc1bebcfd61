import { pictures } from './entries.js';
import type { DeviceTensor } from './device.js';
import { toKilimError } from './errors.js';
import type { Picture, PictureOptions, SessionPictureOptions } from './pictures.js';
import { Tensor as Dense } from './tensor.js';
import type { DType, Tensor as TensorOf } from './tensor.js';

export type Tensor<T extends DType = DType> = TensorOf<T>;

/** A picture or a picture file, or several as a batch. */
type Sources = Picture | Blob | readonly (Picture | Blob)[];

function from<T extends DType = 'float32'>(sources: Sources, options: SessionPictureOptions<T>): Promise<TensorOf<T> | DeviceTensor>;
function from<T extends DType = 'float32'>(sources: Sources, options?: PictureOptions<T>): Promise<TensorOf<T>>;
async function from<T extends DType = 'float32'>(sources: Sources, options: PictureOptions<T> = {}): Promise<TensorOf<T> | DeviceTensor> {
  try {
    return await (await pictures()).tensorFrom(sources, options);
  } catch (error) {
    throw toKilimError(error);
  }
}

/**
 * Dense row-major tensors, and what makes them of pictures.
 *
 *     const mask = new Tensor('int64', [1, 2], BigInt64Array.of(1n, 0n));
 *     const image = await Tensor.from(new ImageData(224, 224), { mean: 0.5, std: 0.5 });
 */
export const Tensor = Object.assign(Dense, {
  /**
   * A tensor of a picture, or of several as a batch, `[N, 3, height, width]` where the options ask for nothing else. Files are decoded by the browser.
   * Its code is fetched by the first call; `toTensor` of `kilim/pictures` does it at once. With the option `session` the pictures go to the GPU of that
   * session without a detour over the CPU's memory, and the tensor stays there.
   *
   *     const image = await Tensor.from(file, { size: 224, mean: [0.485, 0.456, 0.406], std: [0.229, 0.224, 0.225] });
   *
   * @throws KilimError what `toTensor` of `kilim/pictures` throws; `IO` where a file is no picture that the browser reads.
   */
  from,
});
