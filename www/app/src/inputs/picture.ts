import type { DType, Tensor } from 'kilim';
import { toTensor } from 'kilim/pictures';
import type { InputOptions, PictureOptions, RangeOptions } from 'kilim/pictures';

/** How pictures lie in a tensor's last three dimensions. */
export type Layout = 'NCHW' | 'NHWC';

/** How bytes from 0 to 255 become elements: `(byte · scale − mean) / std`, by channels where there are three. */
export const NORMALISATIONS = {
  unit: { label: '0 … 1', scale: 1 / 255, mean: 0, std: 1 },
  signed: { label: '−1 … 1', scale: 1 / 255, mean: 0.5, std: 0.5 },
  bytes: { label: '0 … 255', scale: 1, mean: 0, std: 1 },
  imagenet: { label: 'ImageNet mean and deviation', scale: 1 / 255, mean: [0.485, 0.456, 0.406], std: [0.229, 0.224, 0.225] },
} as const;
export type Normalisation = keyof typeof NORMALISATIONS;

/** What models of such a layout and type mostly expect. */
export function guessNormalisation({ layout, type, channels }: InputOptions): Normalisation {
  if (!type.includes('float')) return 'bytes';
  if (channels === 'gray') return 'unit';
  return layout.endsWith('CHW') ? 'imagenet' : 'signed';
}

/** The range for so many channels: ImageNet's is that of three. */
export function rangeOf(normalisation: Normalisation, channels: number): RangeOptions {
  const { scale, mean, std } = NORMALISATIONS[normalisation];
  if (typeof mean === 'number') return { scale, mean, std };
  // Grey is about the mean of the colours; alpha is as bright.
  const [ownMean, ownStd] = [0.449, 0.226];
  if (channels === 1) return { scale, mean: ownMean, std: ownStd };
  const more = channels - mean.length;
  return { scale, mean: [...mean, ...Array<number>(more).fill(ownMean)], std: [...std, ...Array<number>(more).fill(ownStd)] };
}

const CHANNELS = { 1: 'gray', 3: 'RGB', 4: 'RGBA' } as const;

/** How a picture becomes a tensor of these dimensions: stretched to its height and width. */
export function pictureOptions(type: DType, dims: readonly number[], layout: Layout, normalisation: Normalisation): PictureOptions {
  const [a, b, c] = dims.slice(-3) as [number, number, number];
  const [channels, height, width] = layout === 'NCHW' ? [a, b, c] : [c, a, b];
  const order = CHANNELS[channels as keyof typeof CHANNELS];
  return {
    type,
    size: { width, height },
    layout: dims.length === 4 ? layout : layout === 'NCHW' ? 'CHW' : 'HWC',
    ...(order && { channels: order }),
    ...rangeOf(normalisation, channels),
  };
}

/** The picture, stretched to the tensor's height and width, for each of a batch. */
export function pictureTensor(picture: ImageBitmap, dims: readonly number[], options: PictureOptions): Tensor {
  return toTensor(Array<ImageBitmap>(dims.length === 4 ? (dims[0] as number) : 1).fill(picture), options);
}
