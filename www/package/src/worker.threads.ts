import { createGlue } from './kilim.threads.js';
import { places } from './parts.threads.js';
import { serve } from './serve.js';

serve(createGlue, places);
