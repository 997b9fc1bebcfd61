import { createGlue } from './kilim.simd.js';
import { places } from './parts.simd.js';
import { serve } from './serve.js';

serve(createGlue, places);
