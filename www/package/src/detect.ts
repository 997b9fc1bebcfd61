import { BUILT } from './built.js';
import { HAS_WORKERS } from './spawn.js';

/** The builds of the runtime; each needs what the one before it needs, and more. */
export const VARIANTS = ['simd', 'relaxed', 'threads'] as const;
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

/**
 * Whether products of bytes are added to the sum: the first compiler of V8 11.3 adds them to themselves. The function multiplies vectors of
 * 2 and 3 and adds four products each to 7.
 */
function addsProducts(): boolean {
  const type = [1, 5, 1, 96, 0, 1, 127]; // () -> i32
  // i8x16.splat of 2 and of 3, i32x4.splat of 7, i32x4.relaxed_dot_i8x16_i7x16_add_s, i32x4.extract_lane 0
  const body = [65, 2, 253, 15, 65, 3, 253, 15, 65, 7, 253, 17, 253, 147, 2, 253, 27, 0];
  const exported = [7, 5, 1, 1, 102, 0, 0];
  const code = [10, body.length + 4, 1, body.length + 2, 0, ...body, 11];
  const module = new WebAssembly.Module(new Uint8Array([...HEADER, ...type, ...FUNCTION, ...exported, ...code]));
  const { f } = new WebAssembly.Instance(module).exports as { f: () => number };
  return f() === 31;
}

/** Whether workers can have memory in common: the engine knows shared memory, and a page is cross-origin isolated. */
function sharesMemory(): boolean {
  const memory = [5, 4, 1, 3, 1, 1]; // one shared memory of one page
  return globalThis.crossOriginIsolated !== false && HAS_WORKERS && WebAssembly.validate(new Uint8Array([...HEADER, ...memory]));
}

/**
 * Which build this engine runs on one thread; `undefined` where it has no SIMD at all.
 *
 *     const supported = detectVariant() !== undefined;
 */
export function detectVariant(): Variant | undefined {
  return variantFor(1);
}

const runs: Record<Variant, () => boolean> = {
  // i8x16.popcnt is 0xfd 0x62, f32x4.relaxed_madd 0xfd 0x105.
  simd: () => probe(...ZERO, 253, 98),
  relaxed: () => probe(...ZERO, ...ZERO, ...ZERO, 253, 133, 2) && addsProducts(),
  threads: () => sharesMemory() && runs.relaxed(),
};

/** Whether the build with threads runs in this page once the page is cross-origin isolated. */
export const runsThreadsWhereIsolated = (): boolean => BUILT.includes('threads') && HAS_WORKERS && runs.relaxed();

/** Which build of this package this engine runs in this page on so many threads: the last that it can. */
export function variantFor(threads: number): Variant | undefined {
  return BUILT.filter((variant) => (threads > 1 || variant !== 'threads') && runs[variant]()).pop();
}
