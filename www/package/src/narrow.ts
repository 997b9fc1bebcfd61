/**
 * Types of at most 8 bits. A tensor of one holds its elements as files do: packed, the first in the lowest bits.
 */

interface Narrow {
  bits: 2 | 4 | 6 | 8;
  /** The number that the bits of an element stand for. */
  decode(element: number): number;
}

const integer = (bits: 2 | 4, signed: boolean): Narrow => ({
  bits,
  decode: (element) => (signed && element >> (bits - 1) ? element - 2 ** bits : element),
});

/** Sign, exponent, mantissa; `special` says which magnitudes are no numbers. */
const minifloat = (
  bits: 4 | 6 | 8,
  mantissa: number,
  bias: number,
  special: (magnitude: number, negative: boolean) => number | undefined,
): Narrow => ({
  bits,
  decode(element) {
    const sign = 2 ** (bits - 1);
    const negative = element >= sign;
    const magnitude = element % sign;
    const exponent = magnitude >> mantissa;
    const fraction = (magnitude % 2 ** mantissa) / 2 ** mantissa;
    const size = special(magnitude, negative) ?? (exponent === 0 ? fraction * 2 ** (1 - bias) : (1 + fraction) * 2 ** (exponent - bias));
    return negative ? -size : size;
  },
});

const NONE = () => undefined;
const ALL_ONES = (magnitude: number) => (magnitude === 0x7f ? NaN : undefined);
const NEGATIVE_ZERO = (magnitude: number, negative: boolean) => (negative && magnitude === 0 ? NaN : undefined);
const INFINITY = (magnitude: number) => (magnitude === 0x7c ? Infinity : magnitude > 0x7c ? NaN : undefined);

const TYPES = {
  float8e4m3fn: minifloat(8, 3, 7, ALL_ONES),
  float8e4m3fnuz: minifloat(8, 3, 8, NEGATIVE_ZERO),
  float8e5m2: minifloat(8, 2, 15, INFINITY),
  float8e5m2fnuz: minifloat(8, 2, 16, NEGATIVE_ZERO),
  float8e8m0: { bits: 8, decode: (element) => (element === 255 ? NaN : 2 ** (element - 127)) },
  float6e2m3: minifloat(6, 3, 1, NONE),
  float6e3m2: minifloat(6, 2, 3, NONE),
  float4e2m1: minifloat(4, 1, 1, NONE),
  int4: integer(4, true),
  uint4: integer(4, false),
  int2: integer(2, true),
  uint2: integer(2, false),
} satisfies Record<string, Narrow>;

export type NarrowType = keyof typeof TYPES;

export const NARROW_TYPES = Object.keys(TYPES) as NarrowType[];

export function isNarrow(type: string): type is NarrowType {
  return Object.hasOwn(TYPES, type);
}

/** The bytes that so many elements take. */
export function packedLength(type: NarrowType, count: number): number {
  return Math.ceil((count * TYPES[type].bits) / 8);
}

/** The first `count` elements as numbers. */
export function unpack(type: NarrowType, count: number, packed: Uint8Array): Float64Array {
  const { bits, decode } = TYPES[type];
  return Float64Array.from({ length: count }, (_, i) => {
    const at = Math.floor((i * bits) / 8);
    const window = (packed[at] as number) + 256 * (packed[at + 1] ?? 0);
    return decode((window >> ((i * bits) % 8)) % 2 ** bits);
  });
}

/** Numbers as elements: the nearest there is, ties to even bits; for integers they are cut off first. */
export function pack(type: NarrowType, values: ArrayLike<number>): Uint8Array {
  const { bits, decode } = TYPES[type];
  const whole = type.includes('int');
  const all = Array.from({ length: 2 ** bits }, (_, element) => [element, decode(element)] as const);
  const finite = all.filter(([, number]) => Number.isFinite(number));
  const nan = all.find(([, number]) => Number.isNaN(number))?.[0] ?? 0;
  const numbers = finite.map(([, number]) => number);
  const [lowest, highest] = [Math.min(...numbers), Math.max(...numbers)];
  const encode = (value: number): number => {
    if (Number.isNaN(value)) return nan;
    const wanted = Math.min(Math.max(whole ? Math.trunc(value) : value, lowest), highest);
    const closer = ([a, x]: readonly [number, number], [b, y]: readonly [number, number]) => {
      const difference = Math.abs(x - wanted) - Math.abs(y - wanted);
      if (difference !== 0) return difference < 0;
      return x === y ? Object.is(x, wanted) : a % 2 < b % 2;
    };
    return finite.reduce((best, next) => (closer(next, best) ? next : best))[0];
  };
  const packed = new Uint8Array(packedLength(type, values.length));
  for (let i = 0; i < values.length; i++) {
    const at = Math.floor((i * bits) / 8);
    const window = encode(values[i] as number) << ((i * bits) % 8);
    packed[at] = (packed[at] as number) | window;
    if (window > 255) packed[at + 1] = window >> 8;
  }
  return packed;
}
