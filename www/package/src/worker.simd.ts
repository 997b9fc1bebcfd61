import { createGlue } from './kilim.simd.js';
import { serve } from './serve.js';

serve(createGlue);
