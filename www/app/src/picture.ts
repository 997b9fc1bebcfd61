import { KilimError, fromNumbers } from 'kilim';
import type { DType, Port, Tensor } from 'kilim';

/** How pictures lie in a tensor's last three dimensions. */
export type Layout = 'NCHW' | 'NHWC';

/** How bytes from 0 to 255 become elements. */
export const NORMALISATIONS = {
  unit: { label: '0 … 1', apply: (v: number) => v / 255 },
  signed: { label: '−1 … 1', apply: (v: number) => v / 127.5 - 1 },
  bytes: { label: '0 … 255', apply: (v: number) => v },
  imagenet: {
    label: 'ImageNet mean and deviation',
    apply: (v: number, channel: number) =>
      (v / 255 - ([0.485, 0.456, 0.406][channel] ?? 0.449)) / ([0.229, 0.224, 0.225][channel] ?? 0.226),
  },
} as const;
export type Normalisation = keyof typeof NORMALISATIONS;

/** The layout that an input's dimensions speak for; `null` where it cannot be a picture. */
export function guessLayout(dims: Port['dims']): Layout | null {
  if (!dims || dims.length < 3 || dims.length > 4) return null;
  const [first, , last] = dims.slice(-3);
  const channels = (dim: unknown) => dim === 1 || dim === 3 || dim === 4;
  if (channels(first)) return 'NCHW';
  return channels(last) ? 'NHWC' : null;
}

/** What models of such a layout and type mostly expect. */
export function guessNormalisation(layout: Layout, type: DType | null, channels: number): Normalisation {
  if (type !== null && !type.includes('float')) return 'bytes';
  if (channels === 1) return 'unit';
  return layout === 'NCHW' ? 'imagenet' : 'signed';
}

/**
 * Decodes a picture.
 * @throws KilimError `IO` where the file is not a picture that the browser reads.
 */
export async function readPicture(file: Blob): Promise<ImageBitmap> {
  try {
    return await createImageBitmap(file);
  } catch (error) {
    const name = file instanceof File ? `\`${file.name}\`` : 'the file';
    throw new KilimError(
      'IO',
      `${name} is not a picture that this browser can read`,
      { got: file.type || 'unknown type', hint: 'give a PNG, JPEG, WebP or GIF file' },
      error,
    );
  }
}

/** The picture, stretched to the tensor's height and width. */
export function pictureTensor(picture: ImageBitmap, type: DType, dims: number[], layout: Layout, normalisation: Normalisation): Tensor {
  const [a, b, c] = dims.slice(-3) as [number, number, number];
  const [channels, height, width] = layout === 'NCHW' ? [a, b, c] : [c, a, b];
  const canvas = new OffscreenCanvas(width, height);
  const context = canvas.getContext('2d');
  if (!context) throw new KilimError('LIMIT', 'this browser cannot draw a picture of that size');
  context.imageSmoothingQuality = 'high';
  context.drawImage(picture, 0, 0, width, height);
  const { data } = context.getImageData(0, 0, width, height);
  const { apply } = NORMALISATIONS[normalisation];
  const plane = width * height;
  const one = new Float64Array(plane * channels);
  for (let i = 0; i < plane; i++) {
    const [red, green, blue, alpha] = data.subarray(i * 4, i * 4 + 4) as unknown as [number, number, number, number];
    const grey = 0.299 * red + 0.587 * green + 0.114 * blue;
    for (let channel = 0; channel < channels; channel++) {
      const byte = channels === 1 ? grey : ([red, green, blue, alpha][channel] ?? 0);
      one[layout === 'NCHW' ? channel * plane + i : i * channels + channel] = apply(byte, channel);
    }
  }
  const batch = dims.length === 4 ? (dims[0] as number) : 1;
  const all = new Float64Array(one.length * batch);
  for (let n = 0; n < batch; n++) all.set(one, n * one.length);
  return fromNumbers(type, dims, all);
}
