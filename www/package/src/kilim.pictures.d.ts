import type { CreateGlue } from './glue.js';
import type { PictureGlue } from './image-decoder.js';

export declare const createGlue: CreateGlue<PictureGlue>;
