import type { MemoryPlan, Report } from 'kilim';
import { el, formatBytes, svg } from './dom.js';

const WIDTH = 960;
const HEIGHT = 260;
/** Tensors of one plan; more are a blur and slow. */
const LIMIT = 4000;

/** Where every intermediate is and when: time runs to the right, one step a kernel; addresses run upwards. */
export function memory(report: Report): HTMLElement {
  if (report.memory.length === 0) return el('p', { class: 'note' }, 'Intermediates are planned when the first input has come.');
  const legend = el(
    'div',
    { class: 'legend' },
    ...(['input', 'intermediate', 'output'] as const).map((role) => el('span', {}, el('i', { class: `swatch ${role}` }), role)),
    el('span', {}, el('i', { class: 'swatch least' }), 'the most that is alive at any one step'),
  );
  return el('div', {}, legend, ...report.memory.map(drawing));
}

function drawing(plan: MemoryPlan): HTMLElement {
  const place = [...plan.scope, `stage ${plan.stage}`].join(' / ');
  const title = el('h3', {}, el('span', { class: `tag ${plan.backend}` }, plan.backend), ` ${place}`);
  const ratio = plan.lowerBoundBytes ? ` (${(plan.bytes / plan.lowerBoundBytes).toFixed(2)} times the least)` : '';
  const note = `${plan.tensors.length} tensors of ${formatBytes(plan.unsharedBytes)} in ${formatBytes(plan.bytes)}${ratio}`;
  const figure =
    plan.tensors.length > LIMIT
      ? el('p', { class: 'note' }, 'Too many tensors to draw.')
      : el('div', { class: 'scroll arena' }, rectangles(plan, note));
  return el('div', { class: 'block', 'data-testid': `memory-${plan.backend}` }, title, el('p', { class: 'note' }, note), figure);
}

function rectangles(plan: MemoryPlan, label: string): SVGSVGElement {
  const across = WIDTH / Math.max(1, plan.steps);
  const up = HEIGHT / Math.max(1, plan.bytes);
  const tensors = plan.tensors.map(({ name, offset, bytes, first, last, role }) =>
    svg(
      'rect',
      { class: role, x: first * across, y: HEIGHT - (offset + bytes) * up, width: (last + 1 - first) * across, height: bytes * up },
      svg('title', {}, `${name}: ${formatBytes(bytes)} at ${offset}, steps ${first} to ${last}`),
    ),
  );
  const least = HEIGHT - plan.lowerBoundBytes * up;
  return svg(
    'svg',
    { viewBox: `0 0 ${WIDTH} ${HEIGHT}`, preserveAspectRatio: 'none', role: 'img', 'aria-label': label },
    ...tensors,
    svg('path', { class: 'least', d: `M0 ${least}H${WIDTH}` }),
  );
}
