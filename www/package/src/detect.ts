/** The builds of the runtime; each needs what the one before it needs, and more. */
export const VARIANTS = ['simd', 'relaxed'] as const;
export type Variant = (typeof VARIANTS)[number];

const HEADER = [0, 97, 115, 109, 1, 0, 0, 0];
const TYPE = [1, 5, 1, 96, 0, 1, 123]; // () -> v128
const FUNCTION = [3, 2, 1, 0];

/** A module of one function that gives a v128, made by the SIMD instruction `op` from zeros. */
function probe(...body: number[]): boolean {
  const code = [10, body.length + 4, 1, body.length + 2, 0, ...body, 11];
  return WebAssembly.validate(new Uint8Array([...HEADER, ...TYPE, ...FUNCTION, ...code]));
}

const ZERO = [65, 0, 253, 15]; // i32.const 0; i8x16.splat

/** Which build this engine runs; `undefined` where it has no SIMD at all. */
export function detectVariant(): Variant | undefined {
  // f32x4.relaxed_madd is 0xfd 0x105, i8x16.popcnt 0xfd 0x62.
  if (probe(...ZERO, ...ZERO, ...ZERO, 253, 133, 2)) return 'relaxed';
  return probe(...ZERO, 253, 98) ? 'simd' : undefined;
}
