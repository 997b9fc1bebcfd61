import * as glue from './kilim.simd.js';
import { serve } from './serve.js';

serve(glue);
