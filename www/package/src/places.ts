import type { Variant } from './detect.js';
import type { Places } from './parts.js';
import { places as relaxed } from './parts.relaxed.js';
import { places as simd } from './parts.simd.js';
import { places as threads } from './parts.threads.js';

/** Where the parts of each build lie, beside the package's modules. */
export const placesOfBuild: Record<Variant, Places> = { simd, relaxed, threads };
