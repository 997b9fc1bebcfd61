import { createGlue } from './kilim.threads.js';
import { serve } from './serve.js';

serve(createGlue);
