/**
 * Tensors from pictures, and pictures from tensors.
 *
 *     const image = toTensor(video, { size: 224, fit: 'cover', mean: [0.485, 0.456, 0.406], std: [0.229, 0.224, 0.225] });
 *     const { scores } = await session.run({ image });
 */
import { made } from './given.js';
import { KilimError, Tensor, toNumbers } from './index.js';
import type { DType, Port, TensorLike } from './index.js';
import { ORDERS, elementsOf, perChannel, rangesOf, stridesOf } from './pictures/elements.js';
import type { Strides } from './pictures/elements.js';
import { readImageOptions, readPictureOptions } from './pictures/options.js';
import type { Channels, ImageOptions, Layout, PictureOptions, Size } from './pictures/options.js';
import { blended, greyed, pixelsOf, readPicture, sizeOf } from './pictures/pixels.js';
import type { Picture } from './pictures/pixels.js';
import { placeOf } from './pictures/place.js';
import type { Place } from './pictures/place.js';
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
  const read = readPictureOptions(options);
  const { type = 'float32' as T, layout = 'NCHW', channels = 'RGB', padding = 0 } = read as PictureOptions<T>;
  const all = Array.isArray(pictures) ? (pictures as readonly Picture[]) : [pictures as Picture];
  const batched = layout.startsWith('N');
  if (all.length === 0 || (all.length > 1 && !batched))
    throw new KilimError('SHAPE', `a tensor ${layout} is not made of ${all.length} pictures`, {
      hint: 'give one picture, or the layout NCHW or NHWC',
    });
  const places = all.map((picture) => placeOf(sizeOf(picture), read));
  const { width, height } = sameSize(places);
  const order = ORDERS[channels];
  const tables = rangesOf(type, order.length, read).map((range) => elementsOf(type, range));
  const fill = perChannel('padding', padding, order.length).map((byte) => Math.min(255, Math.max(0, Math.round(byte))));
  const count = width * height * order.length;
  const dims = layout.endsWith('CHW') ? [order.length, height, width] : [height, width, order.length];
  const tensor = new Tensor(type, batched ? [all.length, ...dims] : dims);
  const elements = tensor.data as { [place: number]: unknown };
  const strides = stridesOf(layout, order.length, width * height);
  for (const [number, picture] of all.entries()) {
    const place = places[number] as Place;
    const bytes = bytesOf(picture, place, channels, read);
    order.forEach((byte, channel) => {
      const start = number * count + channel * strides.channel;
      const table = tables[channel] as ArrayLike<unknown>;
      if (place.shown.width < width || place.shown.height < height) {
        const around = table[fill[channel] as number];
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
function bytesOf(picture: Picture, { crop, scaled, shown }: Place, channels: Channels, options: PictureOptions): Uint8ClampedArray {
  const { background, resample: filter, antialias } = options;
  if (background && channels === 'RGBA') throw new KilimError('INVALID_VALUE', 'a picture in front of a `background` has no alpha');
  const pixels = pixelsOf(picture, crop);
  const opaque = background ? blended(pixels, background) : pixels;
  const plane = channels === 'gray' ? greyed(opaque) : opaque;
  return resample(plane, ORDERS[channels].length, scaled, shown, filter, antialias);
}

function sameSize(places: readonly Place[]): Size {
  const [{ target }] = places as [Place];
  const other = places.find((place) => place.target.width !== target.width || place.target.height !== target.height);
  if (other)
    throw new KilimError('SHAPE', 'the pictures of a batch differ in size', {
      expected: `${target.width} × ${target.height} pixels`,
      got: `${other.target.width} × ${other.target.height}`,
      hint: 'the option `size` makes them alike',
    });
  return target;
}

/**
 * A tensor of pictures and of picture files, which are decoded first. `Tensor.from` calls it.
 *
 *     const images = await tensorFrom([new Blob(), new ImageData(640, 480)], { size: 224 });
 */
export async function tensorFrom<T extends DType = 'float32'>(
  pictures: Picture | Blob | readonly (Picture | Blob)[],
  options: PictureOptions<T> = {},
): Promise<Tensor<T>> {
  readPictureOptions(options);
  const decoded: ImageBitmap[] = [];
  const read = async (picture: Picture | Blob): Promise<Picture> => {
    if (!(picture instanceof Blob)) return picture;
    const bitmap = await readPicture(picture);
    decoded.push(bitmap);
    return bitmap;
  };
  try {
    return toTensor(Array.isArray(pictures) ? await Promise.all(pictures.map(read)) : await read(pictures as Picture | Blob), options);
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
