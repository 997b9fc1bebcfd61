import { importOwn } from './import-own.js';
import type * as painter from './painter.js';

/** Imports what brings pictures to a GPU. */
export const importPainter = (address: string): Promise<typeof painter> => importOwn(address);
