import type { Variant } from '../detect.js';
import { createLocalEngine } from '../local.js';
import type { Part } from '../parts.js';
import type { Engine } from '../protocol.js';

/** A runtime in this thread, with `parts` of it, else all: the code is here already, since service workers import nothing later. */
export const createEngineHere = (variant: Variant, parts?: readonly Part[]): Promise<Engine> => createLocalEngine(variant, parts);
