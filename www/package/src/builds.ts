import type { Variant } from './detect.js';
import type { CreateGlue, Glue } from './glue.js';

// Each is fetched only when a runtime of that build is to run in the thread that imports it.
const scripts: Record<Variant, () => Promise<{ createGlue: CreateGlue<Glue> }>> = {
  simd: () => import('./kilim.simd.js'),
  relaxed: () => import('./kilim.relaxed.js'),
  threads: () => import('./kilim.threads.js'),
};

/** The script of a build's binary. */
export const scriptOf = (build: Variant): Promise<{ createGlue: CreateGlue<Glue> }> => scripts[build]();
