import { createGlue } from './kilim.simd.js';
import { build } from './parts.simd.js';
import { serve } from './serve.js';

serve(createGlue, build);
