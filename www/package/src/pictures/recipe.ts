import { KilimError } from '../index.js';
import type { DType, Elements } from '../index.js';
import { ORDERS, elementsOf, perChannel, rangesOf, stridesOf } from './elements.js';
import type { Strides } from './elements.js';
import type { PictureOptions, Size } from './options.js';
import { sizeOf } from './pixels.js';
import type { Picture } from './pixels.js';
import { placeOf } from './place.js';
import type { Place } from './place.js';

/** What pictures become, worked out before a pixel is read. */
export interface Recipe<T extends DType> {
  type: T;
  dims: number[];
  /** Columns and rows that a picture has in the tensor. */
  size: Size;
  batch: { picture: Picture; place: Place }[];
  /** The byte of a pixel that each channel is. */
  order: readonly number[];
  /** The element that each byte of a channel becomes. */
  tables: Elements[];
  /** The byte of each channel around a letterboxed picture. */
  padding: number[];
  /** The elements of a picture. */
  count: number;
  strides: Strides;
}

/** @throws KilimError as `toTensor`. */
export function recipeOf<T extends DType>(pictures: Picture | readonly Picture[], options: PictureOptions<T>): Recipe<T> {
  const { type = 'float32' as T, layout = 'NCHW', channels = 'RGB', padding = 0 } = options;
  const all = Array.isArray(pictures) ? (pictures as readonly Picture[]) : [pictures as Picture];
  const batched = layout.startsWith('N');
  if (all.length === 0 || (all.length > 1 && !batched))
    throw new KilimError('SHAPE', `a tensor ${layout} is not made of ${all.length} pictures`, {
      hint: 'give one picture, or the layout NCHW or NHWC',
    });
  if (options.background && channels === 'RGBA') throw new KilimError('INVALID_VALUE', 'a picture in front of a `background` has no alpha');
  const batch = all.map((picture) => ({ picture, place: placeOf(sizeOf(picture), options) }));
  const size = sameSize(batch.map(({ place }) => place));
  const { width, height } = size;
  const order = ORDERS[channels];
  const dims = layout.endsWith('CHW') ? [order.length, height, width] : [height, width, order.length];
  return {
    type,
    dims: batched ? [all.length, ...dims] : dims,
    size,
    batch,
    order,
    tables: rangesOf(type, order.length, options).map((range) => elementsOf(type, range)),
    padding: perChannel('padding', padding, order.length).map((byte) => Math.min(255, Math.max(0, Math.round(byte)))),
    count: width * height * order.length,
    strides: stridesOf(layout, order.length, width * height),
  };
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
