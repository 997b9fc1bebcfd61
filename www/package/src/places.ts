import type { Variant } from './detect.js';
import type { Build } from './parts.js';
import { build as relaxed } from './parts.relaxed.js';
import { build as simd } from './parts.simd.js';
import { build as threads } from './parts.threads.js';

/** The parts of each build, which lie beside the package's modules. */
export const PARTS_OF: Record<Variant, Build> = { simd, relaxed, threads };
