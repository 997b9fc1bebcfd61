import * as painter from '../painter.js';

/** What brings pictures to a GPU is here already, since service workers import nothing later. */
export const importPainter = async (): Promise<typeof painter> => painter;
