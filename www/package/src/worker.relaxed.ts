import { createGlue } from './kilim.relaxed.js';
import { serve } from './serve.js';

serve(createGlue);
