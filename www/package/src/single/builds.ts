import type { Variant } from '../detect.js';
import { KilimError } from '../errors.js';
import type { CreateGlue, Glue } from '../glue.js';
import { createGlue as relaxed } from '../kilim.relaxed.js';
import { createGlue as simd } from '../kilim.simd.js';

/** The script of a build's binary. That with threads is for sessions with workers. */
export async function scriptOf(build: Variant): Promise<{ createGlue: CreateGlue<Glue> }> {
  if (build === 'threads')
    throw new KilimError('UNSUPPORTED', 'the build `threads` is not in `kilim/single`', { expected: 'simd, relaxed' });
  return { createGlue: build === 'simd' ? simd : relaxed };
}
