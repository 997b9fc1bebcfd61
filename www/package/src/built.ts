import type { Variant } from './detect.js';

/** The builds that this package has. `scripts/build.mjs` writes another list into a package of fewer. */
export const BUILT: readonly Variant[] = ['simd', 'relaxed', 'threads'];
