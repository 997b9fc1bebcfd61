import { createGlue } from './kilim.threads.js';
import { build } from './parts.threads.js';
import { serve } from './serve.js';

serve(createGlue, build);
