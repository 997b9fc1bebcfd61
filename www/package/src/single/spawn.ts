import { NoWorker } from '../thread.js';
import type { Thread } from '../thread.js';

export const HAS_WORKERS = false;

/** @throws NoWorker */
export function spawnWorker(): Thread {
  throw new NoWorker('`kilim/single` computes in the thread that imports it');
}

export const holdProcess = (): void => undefined;
