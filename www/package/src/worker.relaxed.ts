import * as glue from './kilim.relaxed.js';
import { serve } from './serve.js';

serve(glue);
