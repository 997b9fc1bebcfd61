import { describe } from '../describe.js';
import { KilimError } from '../index.js';
import type { DType } from '../index.js';

/** The order of a tensor's dimensions: `N` pictures, `C` channels, `H` rows, `W` columns. */
export type Layout = 'NCHW' | 'NHWC' | 'CHW' | 'HWC';

/** The channels of a tensor, in their order. */
export type Channels = 'RGB' | 'BGR' | 'gray' | 'RGBA';

/** What a picture of another size or shape becomes. */
export type Fit = 'stretch' | 'cover' | 'letterbox';

/** Filters that pictures are resampled by. */
export type Resample = 'nearest' | 'box' | 'bilinear' | 'bicubic' | 'lanczos';

/** A part of a picture, in its pixels. */
export interface Rectangle {
  x: number;
  y: number;
  width: number;
  height: number;
}

/** Columns and rows. */
export interface Size {
  width: number;
  height: number;
}

/** Where a picture goes. */
export interface PlaceOptions {
  /** Columns and rows of the tensor; a number is both. Without it they are those of the picture, or of `crop`. */
  size?: number | Size;
  /** The part of the picture that is taken, in whole pixels; all of it without this. */
  crop?: Rectangle;
  /**
   * `stretch` changes the ratio of the sides; `cover` fills the tensor and cuts off what is over, on both sides alike; `letterbox` shows all of the
   * picture and fills the rest with `padding`. `stretch` by default.
   */
  fit?: Fit;
  /** Pixels of the picture's shorter side before `cover` cuts off the rest, as in `Resize(256)` before `CenterCrop(224)`. */
  shorter?: number;
  /** Where `letterbox` puts the picture: in the middle, or in the upper left corner. `center` by default. */
  align?: 'center' | 'start';
}

/** How bytes and elements belong together: `element = (byte * scale − mean) / std`. */
export interface RangeOptions {
  /** The factor of bytes: 1/255 by default for floating-point elements, 1 for integers. */
  scale?: number;
  /** What is subtracted: one number, or one for each channel of the tensor in its order. 0 by default, 128 for `int8`. */
  mean?: number | readonly number[];
  /** What is divided by: one number, or one for each channel of the tensor in its order. 1 by default. */
  std?: number | readonly number[];
}

/** Options of `toTensor`. */
export interface PictureOptions<T extends DType = DType> extends PlaceOptions, RangeOptions {
  /** The element type, `float32` by default. Integers are rounded, halves upwards, and clamped. */
  type?: T;
  /** `NCHW` by default. */
  layout?: Layout;
  /** `RGB` by default. Grey is `(19595 R + 38470 G + 7471 B) / 65536`, rounded to a byte before anything else, as in Pillow. */
  channels?: Channels;
  /** The bytes around a letterboxed picture: one number, or one for each channel of the tensor in its order. 0 by default. */
  padding?: number | readonly number[];
  /** What is behind translucent pixels: red, green, blue. Without it alpha is ignored, or a channel of its own. */
  background?: readonly number[];
  /** The filter, `bilinear` by default. Bytes are those of Pillow's filter of this name. */
  resample?: Resample;
  /** Whether the filter is widened where the picture gets smaller, so that every pixel counts. True by default; OpenCV and TFLite do not. */
  antialias?: boolean;
}

/** Options of `toImageData`. */
export interface ImageOptions extends RangeOptions {
  /** The layout; by default the one that the tensor's dimensions speak for. */
  layout?: Layout;
  /** The channels; by default grey for one, `RGB` for three, `RGBA` for four. */
  channels?: Channels;
  /** Which picture of a batch: 0 by default. */
  item?: number;
}

/** A kind of value, and whether a value is one. */
interface Kind {
  expected: string;
  fits(value: unknown): boolean;
}

const oneOf = (...words: readonly string[]): Kind => ({ expected: words.join(' or '), fits: (value) => words.includes(value as string) });
const isNumber = (value: unknown): value is number => typeof value === 'number' && Number.isFinite(value);
const isList = (value: unknown): value is readonly number[] => Array.isArray(value) && value.every(isNumber);
const isCount = (value: unknown): boolean => Number.isInteger(value) && (value as number) >= 1;
const number: Kind = { expected: 'a finite number', fits: isNumber };
const numbers: Kind = { expected: 'a finite number, or an array of them', fits: (value) => isNumber(value) || isList(value) };
const count: Kind = { expected: 'a whole number, one or more', fits: isCount };
const factor: Kind = { expected: 'a number that is not zero', fits: (value) => isNumber(value) && value !== 0 };

const PLACE: Record<keyof PlaceOptions, Kind> = {
  size: {
    expected: 'a whole number, or { width, height }',
    fits: (value) => isCount(value) || (isObject<Size>(value) && isCount(value.width) && isCount(value.height)),
  },
  crop: {
    expected: '{ x, y, width, height } in whole pixels',
    fits: (value) =>
      isObject<Rectangle>(value) &&
      [value.x, value.y].every((place) => Number.isInteger(place) && place >= 0) &&
      [value.width, value.height].every(isCount),
  },
  fit: oneOf('stretch', 'cover', 'letterbox'),
  shorter: count,
  align: oneOf('center', 'start'),
};
const RANGE: Record<keyof RangeOptions, Kind> = {
  scale: factor,
  mean: numbers,
  std: { expected: 'a number that is not zero, or an array of them', fits: (value) => [value].flat().every(factor.fits) },
};
const layout = oneOf('NCHW', 'NHWC', 'CHW', 'HWC');
const channels = oneOf('RGB', 'BGR', 'gray', 'RGBA');
const PICTURE: Record<keyof PictureOptions, Kind> = {
  ...PLACE,
  ...RANGE,
  // The table of elements refuses what it cannot make.
  type: { expected: 'an element type', fits: (value) => typeof value === 'string' },
  layout,
  channels,
  padding: numbers,
  background: { expected: 'three numbers', fits: (value) => isList(value) && value.length === 3 },
  resample: oneOf('nearest', 'box', 'bilinear', 'bicubic', 'lanczos'),
  antialias: { expected: 'true or false', fits: (value) => typeof value === 'boolean' },
};
const IMAGE: Record<keyof ImageOptions, Kind> = {
  ...RANGE,
  layout,
  channels,
  item: { ...number, fits: (value) => Number.isInteger(value) && (value as number) >= 0 },
};

function isObject<T>(value: unknown): value is T {
  return typeof value === 'object' && value !== null;
}

function readOptions<T extends object>(call: string, kinds: Record<keyof T, Kind>, given: unknown): T {
  if (given === undefined) return {} as T;
  if (!isObject<T>(given)) throw new KilimError('INVALID_VALUE', `the options of \`${call}\` are no object`, { got: describe(given) });
  const read: Partial<T> = {};
  for (const name of Object.keys(given) as (keyof T & string)[]) {
    if (!Object.hasOwn(kinds, name))
      throw new KilimError('INVALID_VALUE', `\`${call}\` has no option \`${name}\``, { expected: Object.keys(kinds).join(', ') });
    const value = given[name];
    if (value === undefined) continue;
    const { expected, fits } = kinds[name];
    if (!fits(value))
      throw new KilimError('INVALID_VALUE', `the option \`${name}\` is of another kind`, {
        expected,
        got: isList(value) || isNumber(value) ? String(value) : describe(value),
      });
    read[name] = value;
  }
  return read as T;
}

/** @throws KilimError `INVALID_VALUE` for an option that there is not, and for a value of another kind. */
export const readPictureOptions = (given: unknown): PictureOptions => readOptions<PictureOptions>('toTensor', PICTURE, given);

/** @throws KilimError `INVALID_VALUE` for an option that there is not, and for a value of another kind. */
export const readImageOptions = (given: unknown): ImageOptions => readOptions<ImageOptions>('toImageData', IMAGE, given);
