/** Numbers of 16 bits, for engines without `Float16Array`. */

const scratch = new DataView(new ArrayBuffer(4));

function bitsOf(value: number): number {
  scratch.setFloat32(0, value);
  return scratch.getUint32(0);
}

export function numberToBfloat(value: number): number {
  if (Number.isNaN(value)) return 0x7fc0;
  const bits = bitsOf(value);
  return ((bits + 0x7fff + ((bits >>> 16) & 1)) >>> 16) & 0xffff;
}

export function halfToNumber(bits: number): number {
  const sign = bits & 0x8000 ? -1 : 1;
  const exponent = (bits >> 10) & 31;
  const fraction = bits & 1023;
  if (exponent === 31) return fraction ? NaN : sign * Infinity;
  return exponent ? sign * 2 ** (exponent - 15) * (1 + fraction / 1024) : sign * 2 ** -24 * fraction;
}

export function numberToHalf(value: number): number {
  const sign = (bitsOf(value) >>> 16) & 0x8000;
  const size = Math.abs(value);
  if (Number.isNaN(value)) return 0x7e00;
  if (size >= 65520) return sign | 0x7c00;
  // The distance between neighbours at this size; below 2^-14 they are evenly spaced.
  const exponent = Math.max(Math.floor(Math.log2(size || 1e-9)), -14);
  const steps = roundEven(size / 2 ** (exponent - 10));
  return sign | (exponent === -14 ? steps : ((exponent + 14) << 10) + steps);
}

function roundEven(value: number): number {
  const floor = Math.floor(value);
  const rest = value - floor;
  return rest > 0.5 || (rest === 0.5 && floor % 2 === 1) ? floor + 1 : floor;
}
