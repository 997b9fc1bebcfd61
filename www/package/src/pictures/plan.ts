import type { DType } from '../index.js';
import type { PictureOptions } from './options.js';
import type { Place } from './place.js';
import type { Recipe } from './recipe.js';
import { rowsOf, tapsOf } from './resample.js';
import type { Weights } from './resample.js';

/** Types whose elements have 32 bits each on a GPU. */
const OF_A_WORD: readonly DType[] = ['float32', 'int8', 'uint8', 'int16', 'uint16', 'int32', 'uint32'];

/** The 32 bits that each element is on a GPU; `undefined` for types whose elements have more or fewer there. */
export function wordsOf({ type, tables }: Recipe<DType>): Int32Array[] | undefined {
  if (!OF_A_WORD.includes(type)) return undefined;
  return tables.map((table) => (table instanceof Float32Array ? new Int32Array(table.buffer) : Int32Array.from(table as Int32Array)));
}

/** Bytes in one number, the first the lowest. */
const packed = (bytes: readonly number[]): number => bytes.reduce((sum, byte, i) => sum | (byte << (8 * i)), 0);

/**
 * What the shader `shaders/page/picture.wgsl` does with the picture of this number in a batch, in the order of its `Plan`. `undefined` for a background
 * that is not made of bytes.
 */
export function planOf(
  { size, order, padding, count, strides }: Recipe<DType>,
  words: readonly Int32Array[],
  { crop, scaled, shown, x, y }: Place,
  number: number,
  { channels, background, resample, antialias }: PictureOptions,
): Int32Array | undefined {
  if (background?.some((byte) => !Number.isInteger(byte) || byte < 0 || byte > 255)) return undefined;
  const { across, down } = tapsOf(crop, scaled, shown, resample, antialias);
  const { top, rows } = rowsOf(down);
  const lists = ({ first, count, weights }: Weights) => [first, count, weights];
  const parts = [...lists(across), ...lists(down), ...words];
  const lengthOf = (some: readonly Int32Array[]): number => some.reduce((sum, { length }) => sum + length, 0);
  const [downAt, wordsAt] = [lengthOf(parts.slice(0, 3)), lengthOf(parts.slice(0, 6))];
  const head = [
    ...[size.width, size.height, x, y, shown.width, shown.height],
    ...[top, rows],
    ...[order.length, number * count, strides.channel, strides.pixel],
    ...[channels === 'gray' ? 1 : 0, background ? packed(background) : -1],
    ...[packed(order), packed(padding)],
    ...[0, across.most, downAt, down.most, wordsAt],
  ];
  const length = head.length + lengthOf(parts);
  // A structure of WGSL ends at a multiple of the eight bytes that its vectors are aligned to.
  const plan = new Int32Array(length + (length % 2));
  plan.set(head);
  let at = head.length;
  for (const part of parts) {
    plan.set(part, at);
    at += part.length;
  }
  return plan;
}
