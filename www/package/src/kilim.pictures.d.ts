import type { CreateGlue } from './glue.js';
import type { PictureGlue } from './pictures.js';

export declare const createGlue: CreateGlue<PictureGlue>;
