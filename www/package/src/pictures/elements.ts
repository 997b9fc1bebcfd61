import { KilimError, fromNumbers } from '../index.js';
import type { DType, Elements } from '../index.js';
import type { Channels, Layout, RangeOptions } from './options.js';

/** Integer types with their least and their greatest element. */
const INTEGERS: Partial<Record<DType, [number, number]>> = {
  int8: [-128, 127],
  uint8: [0, 255],
  int16: [-(2 ** 15), 2 ** 15 - 1],
  uint16: [0, 2 ** 16 - 1],
  int32: [-(2 ** 31), 2 ** 31 - 1],
  uint32: [0, 2 ** 32 - 1],
  int64: [Number.MIN_SAFE_INTEGER, Number.MAX_SAFE_INTEGER],
  uint64: [0, Number.MAX_SAFE_INTEGER],
};
const FLOATS: readonly DType[] = ['float32', 'float64', 'float16', 'bfloat16'];

/** The bytes of a pixel, in the order in which a tensor has them. */
export const ORDERS: Record<Channels, readonly number[]> = { RGB: [0, 1, 2], BGR: [2, 1, 0], gray: [0], RGBA: [0, 1, 2, 3] };

/** The numbers of one channel. */
export interface Range {
  scale: number;
  mean: number;
  std: number;
}

/**
 * The numbers of each channel.
 * @throws KilimError `DTYPE` for a type that holds no shades, `SHAPE` where there are not as many numbers as channels.
 */
export function rangesOf(type: DType, channels: number, { scale, mean, std }: RangeOptions): Range[] {
  const integer = Object.hasOwn(INTEGERS, type);
  if (!integer && !FLOATS.includes(type))
    throw new KilimError('DTYPE', `pictures are not made of ${type}`, { expected: [...FLOATS, ...Object.keys(INTEGERS)].join(', ') });
  const means = perChannel('mean', mean ?? (type === 'int8' ? 128 : 0), channels);
  const stds = perChannel('std', std ?? 1, channels);
  return means.map((own, i) => ({ scale: scale ?? (integer ? 1 : 1 / 255), mean: own, std: stds[i] as number }));
}

/** @throws KilimError `SHAPE` where there are not as many numbers as channels. */
export function perChannel(option: string, given: number | readonly number[], channels: number): readonly number[] {
  if (typeof given === 'number') return new Array<number>(channels).fill(given);
  if (given.length !== channels)
    throw new KilimError('SHAPE', `\`${option}\` has not as many numbers as there are channels`, {
      expected: String(channels),
      got: String(given.length),
    });
  return given;
}

/** The element that each byte becomes. */
export function elementsOf(type: DType, { scale, mean, std }: Range): Elements {
  const bounds = INTEGERS[type];
  const values = Float64Array.from({ length: 256 }, (_, byte) => {
    const value = (byte * scale - mean) / std;
    return bounds ? Math.min(bounds[1], Math.max(bounds[0], Math.round(value))) : value;
  });
  return fromNumbers(type, [256], values).data;
}

/** Where the elements of pictures stand. */
export interface Strides {
  pixel: number;
  channel: number;
}

export const stridesOf = (layout: Layout, channels: number, pixels: number): Strides =>
  layout.endsWith('CHW') ? { pixel: 1, channel: pixels } : { pixel: channels, channel: 1 };
