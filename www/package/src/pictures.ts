/**
 * Tensors from pictures, and pictures from tensors.
 *
 *     const image = toTensor(video, { size: 224, fit: 'cover', mean: [0.485, 0.456, 0.406], std: [0.229, 0.224, 0.225] });
 *     const { scores } = await session.run({ image });
 */
import { made } from './given.js';
import { KilimError, Tensor, toNumbers } from './index.js';
import type { DType, DeviceTensor, Port, TensorLike } from './index.js';
import { ORDERS, rangesOf, stridesOf } from './pictures/elements.js';
import type { Strides } from './pictures/elements.js';
import { readImageOptions, readPictureOptions } from './pictures/options.js';
import type { Channels, ImageOptions, Layout, PictureOptions, Size } from './pictures/options.js';
import { checkPainter, painted } from './pictures/paint.js';
import type { Painter } from './pictures/paint.js';
import { blended, greyed, pixelsOf, readPicture, sizeOf } from './pictures/pixels.js';
import type { Picture } from './pictures/pixels.js';
import { placeOf } from './pictures/place.js';
import type { Place } from './pictures/place.js';
import { recipeOf } from './pictures/recipe.js';
import type { Recipe } from './pictures/recipe.js';
import { resample } from './pictures/resample.js';

export type {
  Channels,
  Fit,
  ImageOptions,
  Layout,
  PictureOptions,
  PlaceOptions,
  RangeOptions,
  Rectangle,
  Resample,
  Size,
} from './pictures/options.js';
export { readPicture } from './pictures/pixels.js';
export type { Picture, Pixels } from './pictures/pixels.js';

/**
 * A tensor of a picture, or of several as a batch: `[N, C, H, W]`, or in the order that `layout` says. Values are bytes of sRGB, resampled where the
 * size is another one, and brought into the model's range by `scale`, `mean` and `std`. All browsers and Node give the same elements for the same pixels.
 *
 *     const image = toTensor(new ImageData(640, 480), { size: 224, fit: 'letterbox', padding: 114 });
 *
 * @throws KilimError `INVALID_VALUE` for options and pictures that are none, `SHAPE` where the pictures of a batch differ in size, `DTYPE` for a type that
 * holds no shades, `IO` where pixels may not be read, `LIMIT` where there is no memory.
 */
export function toTensor<T extends DType = 'float32'>(pictures: Picture | readonly Picture[], options: PictureOptions<T> = {}): Tensor<T> {
  return made('a picture', () => tensorOf(pictures, options));
}

function tensorOf<T extends DType>(pictures: Picture | readonly Picture[], options: PictureOptions<T>): Tensor<T> {
  const read = readPictureOptions(options) as PictureOptions<T>;
  return filled(recipeOf(pictures, read), read);
}

/** The tensor of a recipe, by the CPU. */
function filled<T extends DType>(
  { type, dims, size, batch, order, tables, padding, count, strides }: Recipe<T>,
  read: PictureOptions,
): Tensor<T> {
  const { width, height } = size;
  const tensor = new Tensor(type, dims);
  const elements = tensor.data as { [place: number]: unknown };
  for (const [number, { picture, place }] of batch.entries()) {
    const bytes = bytesOf(picture, place, read);
    order.forEach((byte, channel) => {
      const start = number * count + channel * strides.channel;
      const table = tables[channel] as ArrayLike<unknown>;
      if (place.shown.width < width || place.shown.height < height) {
        const around = table[padding[channel] as number];
        for (let i = 0; i < width * height; i++) elements[start + i * strides.pixel] = around;
      }
      for (let y = 0, at = byte; y < place.shown.height; y++) {
        let to = start + ((place.y + y) * width + place.x) * strides.pixel;
        for (let x = 0; x < place.shown.width; x++, at += order.length, to += strides.pixel) elements[to] = table[bytes[at] as number];
      }
    });
  }
  return tensor;
}

/** The bytes that are shown, in the order of `RGB`, `RGBA` or grey. */
function bytesOf(picture: Picture, { crop, scaled, shown }: Place, options: PictureOptions): Uint8ClampedArray {
  const { channels = 'RGB', background, resample: filter, antialias } = options;
  const pixels = pixelsOf(picture, crop);
  const opaque = background ? blended(pixels, background) : pixels;
  const plane = channels === 'gray' ? greyed(opaque) : opaque;
  return resample(plane, ORDERS[channels].length, scaled, shown, filter, antialias);
}

/** Options of `Tensor.from` for a run of a session. */
export interface SessionPictureOptions<T extends DType = DType> extends PictureOptions<T> {
  /**
   * The session that the tensor is for. Where that computes on a GPU, pictures are brought there and become a `DeviceTensor`; pixels do not go over the
   * CPU's memory.
   */
  session: Painter;
}

/**
 * A tensor of pictures and of picture files, which are decoded first. `Tensor.from` calls it. With the option `session` it is on the GPU of that session
 * where it has one and elements have 32 bits or less, none of them halves; elsewhere, and where the GPU cannot take a picture, it is the tensor of `toTensor`.
 *
 *     const images = await tensorFrom([new Blob(), new ImageData(640, 480)], { size: 224 });
 */
export function tensorFrom<T extends DType = 'float32'>(
  pictures: Picture | Blob | readonly (Picture | Blob)[],
  options: SessionPictureOptions<T>,
): Promise<Tensor<T> | DeviceTensor>;
export function tensorFrom<T extends DType = 'float32'>(
  pictures: Picture | Blob | readonly (Picture | Blob)[],
  options?: PictureOptions<T>,
): Promise<Tensor<T>>;
export async function tensorFrom<T extends DType = 'float32'>(
  pictures: Picture | Blob | readonly (Picture | Blob)[],
  options: PictureOptions<T> | SessionPictureOptions<T> = {},
): Promise<Tensor<T> | DeviceTensor> {
  const { session, ...given } = options as SessionPictureOptions<T>;
  const read = readPictureOptions(typeof options === 'object' ? given : options) as PictureOptions<T>;
  if (session !== undefined) checkPainter(session);
  const decoded: ImageBitmap[] = [];
  const decode = async (picture: Picture | Blob): Promise<Picture> => {
    if (!(picture instanceof Blob)) return picture;
    const bitmap = await readPicture(picture);
    decoded.push(bitmap);
    return bitmap;
  };
  try {
    const all = Array.isArray(pictures) ? await Promise.all(pictures.map(decode)) : await decode(pictures as Picture | Blob);
    const recipe = made('a picture', () => recipeOf(all, read));
    return (session && (await painted(session, recipe, read))) ?? made('a picture', () => filled(recipe, read));
  } finally {
    for (const bitmap of decoded) bitmap.close();
  }
}

/** Where pixels of a picture are in a tensor: `x · scaleX + offsetX` and `y · scaleY + offsetY`. Boxes that a detector finds go back by the inverse. */
export interface Placement {
  scaleX: number;
  scaleY: number;
  offsetX: number;
  offsetY: number;
}

/**
 * The place that `toTensor` gives a picture with the same options.
 *
 *     const { scaleX, offsetX } = placementOf({ width: 640, height: 480 }, { size: 224, fit: 'letterbox' });
 *     const left = (112 - offsetX) / scaleX;
 *
 * @throws KilimError `INVALID_VALUE` for options and pictures that are none.
 */
export function placementOf(picture: Picture | Size, options: PictureOptions = {}): Placement {
  return made('a picture', () => {
    const { crop, scaled, shown, x, y } = placeOf(sizeOf(picture as Picture), readPictureOptions(options));
    const [scaleX, scaleY] = [scaled.width / crop.width, scaled.height / crop.height];
    return { scaleX, scaleY, offsetX: x - shown.x - crop.x * scaleX, offsetY: y - shown.y - crop.y * scaleY };
  });
}

/** What an input's dimensions say of a picture for it. */
export interface InputOptions {
  type: DType;
  layout: Layout;
  channels: Channels;
  /** Where the model fixes it. */
  size?: Size;
}

/**
 * The options that follow from an input of a model: element type, layout, channels and size; `undefined` where it takes no picture. What a model seldom
 * says is left to the caller: the range of its elements, and whether blue comes first.
 *
 *     const [input] = session.inputs;
 *     const options = input && optionsFor(input);
 *     const image = toTensor(new ImageData(640, 480), { ...options, mean: 0.5, std: 0.5 });
 */
export function optionsFor(input: Pick<Port, 'dims' | 'type'>): InputOptions | undefined {
  return made('an input', () => inputOptions(input));
}

function inputOptions({ dims, type }: Pick<Port, 'dims' | 'type'>): InputOptions | undefined {
  const found = layoutOf(dims ?? []);
  if (!found) return undefined;
  const { layout, channels, width, height } = found;
  const fixed = typeof width === 'number' && typeof height === 'number' && width > 0 && height > 0;
  return { type: type ?? 'float32', layout, channels, ...(fixed && { size: { width, height } }) };
}

type Dim = number | string | null | undefined;

const NAMES: Partial<Record<number, Channels>> = { 1: 'gray', 3: 'RGB', 4: 'RGBA' };

/** The layout that dimensions speak for: 1, 3 or 4 channels before the sides, or behind them. */
function layoutOf(dims: readonly Dim[]): { layout: Layout; channels: Channels; width: Dim; height: Dim } | undefined {
  if (dims.length < 3 || dims.length > 4) return undefined;
  const batch = dims.length === 4 ? 'N' : '';
  const [a, b, c] = dims.slice(-3);
  const [first, last] = [NAMES[a as number], NAMES[c as number]];
  if (first) return { layout: `${batch}CHW`, channels: first, width: c, height: b };
  return last && { layout: `${batch}HWC`, channels: last, width: b, height: a };
}

/**
 * The picture that a tensor `[N, C, H, W]`, `[C, H, W]`, `[H, W]`, or one with the channels last, holds: `byte = (element · std + mean) / scale`, rounded
 * and clamped. In Node, which has no `ImageData`, an object with the same fields.
 *
 *     const picture: ImageData = toImageData(output, { mean: 0.5, std: 0.5 });
 *
 * @throws KilimError `SHAPE` where the dimensions are not those of a picture, `DTYPE` for elements that are no shades, `INVALID_VALUE` for options
 * that are none.
 */
export function toImageData(tensor: TensorLike, options: ImageOptions = {}): ImageData {
  return made('a tensor', () => imageOf(tensor, options));
}

function imageOf(tensor: TensorLike, options: ImageOptions): ImageData {
  const read = readImageOptions(options);
  const { dims, type } = tensor;
  const { channels, width, height, strides, start } = pictureIn(dims, read);
  const order = ORDERS[channels];
  const values = toNumbers(tensor);
  const data = new Uint8ClampedArray(4 * width * height).fill(255);
  rangesOf(type, order.length, read).forEach(({ scale, mean, std }, channel) => {
    const byte = order[channel] as number;
    let at = start + channel * strides.channel;
    for (let to = byte; to < data.length; to += 4, at += strides.pixel) {
      const value = ((values[at] as number) * std + mean) / scale;
      data[to] = value;
      if (channels === 'gray') data[to + 1] = data[to + 2] = value;
    }
  });
  if (typeof ImageData === 'undefined') return { data, width, height, colorSpace: 'srgb' } as ImageData;
  return new ImageData(data, width, height);
}

interface Held extends Size {
  channels: Channels;
  strides: Strides;
  start: number;
}

function pictureIn(given: readonly number[], { layout: wanted, channels: order, item = 0 }: ImageOptions): Held {
  const dims = given.length === 2 ? [1, ...given] : [...given];
  const found = wanted ? layoutAs(wanted, dims) : layoutOf(dims);
  const count = order && ORDERS[order].length;
  const [width, height] = [Number(found?.width), Number(found?.height)];
  if (!found || (order && ORDERS[found.channels].length !== count) || !(width > 0 && height > 0))
    throw new KilimError('SHAPE', 'these are not the dimensions of a picture', {
      expected: `${wanted ?? '[N, C, H, W], [C, H, W], [H, W], [N, H, W, C] or [H, W, C]'} with ${count ?? '1, 3 or 4'} channels`,
      got: `[${given.join(', ')}]`,
    });
  const batch = dims.length === 4 ? (dims[0] as number) : 1;
  if (item >= batch) throw new KilimError('INVALID_VALUE', `there is no picture ${item} in the batch`, { got: `${batch} pictures` });
  const channels = order ?? found.channels;
  const each = ORDERS[channels].length;
  return {
    channels,
    width,
    height,
    strides: stridesOf(found.layout, each, width * height),
    start: item * each * width * height,
  };
}

function layoutAs(layout: Layout, dims: readonly number[]): ReturnType<typeof layoutOf> {
  if (layout.length !== dims.length) return undefined;
  const size = (letter: string): number => dims[layout.indexOf(letter)] as number;
  const channels = NAMES[size('C')];
  return channels && { layout, channels, width: size('W'), height: size('H') };
}
