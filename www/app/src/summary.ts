import type { Report } from 'kilim';
import { count, el, formatBytes } from './dom.js';

/** Backends, memory and crossings in numbers. */
export function summary(report: Report): HTMLElement {
  const nodesOn = (id: string) => report.nodes.filter(({ backend }) => backend === id).length;
  const fact = (label: string, value: string, title?: string) => el('div', { title }, el('dt', {}, label), el('dd', {}, value));
  const planned = report.nodes.length > 0;
  const cards = report.backends.map((backend) =>
    el(
      'article',
      { class: `backend ${backend.id}`, 'data-testid': `backend-${backend.id}` },
      el('h3', {}, el('span', { class: `tag ${backend.id}` }, backend.id), ` ${backend.device}`),
      planned &&
        el(
          'dl',
          { class: 'facts' },
          fact('Nodes', String(nodesOn(backend.id))),
          fact('Launches a run', String(backend.launches)),
          fact('Weights', formatBytes(backend.constantBytes)),
          fact('Intermediates', formatBytes(backend.intermediateBytes), 'Where they lie in the arena, one after another'),
          fact('Without sharing', formatBytes(backend.unsharedBytes), 'Had every intermediate its own buffer'),
          fact('At least', formatBytes(backend.lowerBoundBytes), 'The most that is alive at any one step'),
          fact(
            'Held in all',
            formatBytes(backend.plannedBytes),
            'Intermediates, what kernels need while they run, and what every kept plan has for itself: outputs, parameters',
          ),
        ),
    ),
  );
  const crossing = report.crossings.reduce((sum, { bytes }) => sum + bytes, 0);
  const notes = [
    `${count(report.nodesLoaded, 'node')} in the file${planned ? `, ${report.nodes.length} after optimisation` : ''}`,
    !planned
      ? null
      : report.crossings.length
        ? `${count(report.crossings.length, 'value')} to carry between backends, ${formatBytes(crossing)} a run`
        : 'nothing crosses between backends',
    report.unplannedStages ? `${count(report.unplannedStages, 'stage')} to plan when data has come` : null,
    report.threads,
    report.worker && `the page's own thread computes: ${report.worker}`,
    ...report.skipped.map(({ backend, reason }) => `${backend} is not used: ${reason}`),
  ];
  return el('div', {}, el('div', { class: 'backends-list' }, ...cards), el('p', { class: 'note' }, notes.filter(Boolean).join(' · ')));
}
