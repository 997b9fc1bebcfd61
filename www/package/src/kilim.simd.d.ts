import type { CreateGlue, Glue } from './glue.js';

export declare const createGlue: CreateGlue<Glue>;
