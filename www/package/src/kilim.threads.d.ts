import type { CreateGlue, ThreadsGlue } from './glue.js';

export declare const createGlue: CreateGlue<ThreadsGlue>;
