import type { Variant } from './detect.js';
import type { CreateGlue, Glue } from './glue.js';
import type { Places } from './parts.js';
import { places as relaxed } from './parts.relaxed.js';
import { places as simd } from './parts.simd.js';
import { places as threads } from './parts.threads.js';

// Each is fetched only when a runtime of that build is to run in the thread that imports it.
const scripts: Record<Variant, () => Promise<{ createGlue: CreateGlue<Glue> }>> = {
  simd: () => import('./kilim.simd.js'),
  relaxed: () => import('./kilim.relaxed.js'),
  threads: () => import('./kilim.threads.js'),
};

/** The script of a build's binary. */
export const scriptOf = (build: Variant): Promise<{ createGlue: CreateGlue<Glue> }> => scripts[build]();

/** Where the parts of each build lie, beside the package's modules. */
export const placesOfBuild: Record<Variant, Places> = { simd, relaxed, threads };
