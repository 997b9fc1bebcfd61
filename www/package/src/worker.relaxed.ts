import { createGlue } from './kilim.relaxed.js';
import { places } from './parts.relaxed.js';
import { serve } from './serve.js';

serve(createGlue, places);
