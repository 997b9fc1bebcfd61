import { createGlue } from './kilim.relaxed.js';
import { build } from './parts.relaxed.js';
import { serve } from './serve.js';

serve(createGlue, build);
