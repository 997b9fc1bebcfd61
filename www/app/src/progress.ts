import type { Progress } from 'kilim';
import { byId, formatBytes } from './dom.js';

const PHASES: Record<Progress['phase'], string> = {
  runtime: 'Starting the runtime',
  download: 'Reading the model',
  prepare: 'Placing the graph and preparing kernels',
};

/** Shows in the page's bar what a load is busy with. */
export function showProgress({ phase, loaded, total }: Progress): void {
  if (phase === 'runtime' && loaded === total) return; // the model may be coming in already
  const bar = byId<HTMLProgressElement>('progress-bar');
  if (phase === 'download' && total) {
    bar.max = total;
    bar.value = loaded;
  } else {
    bar.removeAttribute('value');
  }
  byId('progress-text').textContent =
    phase === 'download' ? `${PHASES[phase]}: ${formatBytes(loaded)}${total ? ` of ${formatBytes(total)}` : ''}` : `${PHASES[phase]} …`;
}
